"""Other systems in a folder each, made by debootstrap and kept for the next time; as root."""
import glob
import os
import shutil
import subprocess
import sys

build, src = os.environ["TFH_BUILD"], os.environ["TFH_SRC"]


def debian(suites, packages=()):
    """The folder of the first of these suites that Debian's mirror has, with more packages than the least; None if it has none."""
    if subprocess.run([f"{src}/scripts/bootstrap", "debootstrap"]).returncode:
        sys.exit(1)
    for suite in suites:
        root = "-".join([f"{build}/roots/{suite}", *packages])
        if os.path.exists(f"{root}/ready"):
            return root
        shutil.rmtree(root, ignore_errors=True)
        more = ["--include=" + ",".join(packages)] if packages else []
        done = subprocess.run(["debootstrap", "--variant=minbase", *more, suite, root, "http://deb.debian.org/debian"], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode == 0:
            open(f"{root}/ready", "w").close()
            return root
    print("no system could be made:", done.stdout[-400:])
    return None


def foreign(suite, architecture, packages):
    """The folder of a suite for another processor, unpacked only: to compile with, and to run single programs in by an emulator."""
    if subprocess.run([f"{src}/scripts/bootstrap", "debootstrap"]).returncode:
        sys.exit(1)
    root = f"{build}/roots/{suite}-{architecture}"
    if not os.path.exists(f"{root}/ready"):
        shutil.rmtree(root, ignore_errors=True)
        done = subprocess.run(["debootstrap", f"--arch={architecture}", "--variant=minbase", "--download-only",
                               "--include=" + ",".join(packages), suite, root, "http://deb.debian.org/debian"], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            print("no system could be made:", done.stdout[-400:])
            return None
        for package in glob.glob(f"{root}/var/cache/apt/archives/*.deb"):
            subprocess.run(["dpkg", "-x", package, root], check=True)
            os.unlink(package)
        open(f"{root}/ready", "w").close()
    return root


def within(root, command, **env):
    """Runs a shell command in that system, with a /proc and a /dev/shm of its own that vanish with it."""
    script = 'mount -t proc proc "$1/proc" && mount -t tmpfs none "$1/dev/shm" && exec chroot "$@"'
    settings = [f"{k}={v}" for k, v in dict(LC_ALL="C", **env).items()]
    return subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", root, "/usr/bin/env", *settings, "/bin/sh", "-c", command],
                          env=dict(PATH="/usr/sbin:/usr/bin:/sbin:/bin", HOME="/root"), capture_output=True, text=True)
