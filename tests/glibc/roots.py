"""Other systems in a folder each, made by debootstrap and kept for the next time; as root."""
import glob
import os
import shutil
import subprocess
import sys

build, src = os.environ["TFH_BUILD"], os.environ["TFH_SRC"]
MIRROR = "http://deb.debian.org/debian"
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"


def bootstrap(suite, root, *more):
    """What debootstrap said where it failed, else None."""
    shutil.rmtree(root, ignore_errors=True)
    done = subprocess.run(["debootstrap", "--variant=minbase", *more, suite, root, MIRROR], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.stdout[-400:] if done.returncode else None


def debian(suites, packages=()):
    """The folder of the first of these suites that Debian's mirror has, with more packages than the least; None if it has none."""
    if subprocess.run([f"{src}/scripts/bootstrap", "debootstrap"]).returncode:
        sys.exit(1)
    for suite in suites:
        root = "-".join([f"{build}/roots/{suite}", *packages])
        if os.path.exists(f"{root}/ready"):
            return root
        said = bootstrap(suite, root, *["--include=" + ",".join(packages)] if packages else [])
        if not said:
            open(f"{root}/ready", "w").close()
            return root
    print("no system could be made:", said)
    return None


def foreign(suite, architecture, packages):
    """The folder of a suite for another processor, unpacked only: to compile with, and to run single programs in by an emulator."""
    if subprocess.run([f"{src}/scripts/bootstrap", "debootstrap"]).returncode:
        sys.exit(1)
    root = f"{build}/roots/{suite}-{architecture}"
    if not os.path.exists(f"{root}/ready"):
        said = bootstrap(suite, root, f"--arch={architecture}", "--download-only", "--include=" + ",".join(packages))
        if said:
            print("no system could be made:", said)
            return None
        for package in glob.glob(f"{root}/var/cache/apt/archives/*.deb"):
            subprocess.run(["dpkg", "-x", package, root], check=True)
            os.unlink(package)
        open(f"{root}/ready", "w").close()
    return root


def download(suite, architecture, name, folder):
    """Unpacks one package, without what it depends on, into a folder; what apt-get said where it failed, else None."""
    place = f"{build}/roots/apt-{suite}-{architecture}"
    os.makedirs(place + "/lists/partial", exist_ok=True)
    with open(place + "/sources", "w") as f:
        f.write(f"deb [signed-by={KEYS}] {MIRROR} {suite} main\n")
    settings = {"Dir::Etc::sourcelist": place + "/sources", "Dir::Etc::sourceparts": "-", "Dir::State::lists": place + "/lists", "Dir::Cache": place,
                "Dir::State::status": "/dev/null", "APT::Architecture": architecture, "APT::Architectures": architecture,
                "Acquire::Languages": "none", "APT::Sandbox::User": "root"}
    apt = ["apt-get", *[word for key, value in settings.items() for word in ("-o", f"{key}={value}")]]
    for command in (["update"], ["download", name]):
        done = subprocess.run(apt + command, cwd=place, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            return done.stdout[-400:]
    package, = glob.glob(f"{place}/{name}_*.deb")
    subprocess.run(["dpkg", "-x", package, folder], check=True)
    shutil.rmtree(place)
    return None


def fedora_like(suite, packages):
    """A system with Fedora's layout, made of Debian's packages: libraries in /usr/lib64, to which /lib64 leads, and a glibc that was built for that (its
    $LIB is lib64, and it looks nowhere else); Python's own modules in /usr/lib64, too (PYTHONPLATLIBDIR=lib64). Debian builds such a glibc for 32-bit
    systems that run 64-bit programs. None where it cannot be made."""
    root = f"{build}/roots/fedora-like-{suite}"
    if os.path.exists(f"{root}/ready"):
        return root
    base = debian([suite], packages)
    if not base:
        return None
    shutil.rmtree(root, ignore_errors=True)
    subprocess.run(["cp", "-a", base, root], check=True)
    os.unlink(root + "/ready")
    usr = root + "/usr"
    libc = build + "/roots/libc6-amd64"
    shutil.rmtree(libc, ignore_errors=True)
    said = download(suite, "i386", "libc6-amd64", libc)
    if said:
        print("no glibc for /lib64:", said)
        return None
    shutil.rmtree(usr + "/lib64")
    os.rename(usr + "/lib/x86_64-linux-gnu", usr + "/lib64")
    subprocess.run(["cp", "-a", "--remove-destination", f"{libc}/usr/lib64/.", usr + "/lib64/"], check=True)
    for modules in glob.glob(usr + "/lib/python3.*"):
        os.rename(modules, usr + "/lib64/" + os.path.basename(modules))
    subprocess.run(f"rm -rf {root}/etc/ld.so.* {libc}", shell=True, check=True)
    open(f"{root}/ready", "w").close()
    return root


def within(root, command, **env):
    """Runs a shell command in that system, with a /proc and a /dev/shm of its own that vanish with it."""
    script = 'mount -t proc proc "$1/proc" && mount -t tmpfs none "$1/dev/shm" && exec chroot "$@"'
    settings = [f"{k}={v}" for k, v in dict(LC_ALL="C", **env).items()]
    return subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", root, "/usr/bin/env", *settings, "/bin/sh", "-c", command],
                          env=dict(PATH="/usr/sbin:/usr/bin:/sbin:/bin", HOME="/root"), capture_output=True, text=True)
