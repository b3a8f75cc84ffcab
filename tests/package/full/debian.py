#!/usr/bin/env python3
"""The .deb: lintian has nothing to say; in a fresh Debian, dpkg installs it, a job on its simulated GPU gets the right class, and
removing it leaves nothing. `make install` with any PREFIX, LIBDIR and DESTDIR puts nothing elsewhere; pkg-config then
compiles and links a reader with libtft, shared and static; uninstall leaves nothing. As root."""
# timeout: 1800
import glob
import json
import os
import shutil
import sys

sys.path += [os.path.join(os.environ["TFH_SRC"], "tests", folder) for folder in ("package", "glibc")]
import installed
import roots
from installed import build, check, failed, run, src, tmp

READER = """#include <stdio.h>
#include <tfhook/tft.h>
int main(int argc, char **argv)
{
	struct tft_file *file = argc == 2 ? tft_file_open(argv[1], NULL, 0) : NULL;
	struct tft_record record;
	int n = 0;

	while (file && tft_file_next(file, &record) == 1)
		n++;
	printf("%d records\\n", n);
	return !file;
}
"""


def package():
    run("make", "-s", "-C", src, "O=" + build, "-o", "all", "deb", "DIST=" + tmp + "/dist",
        env=dict(os.environ, DEBFULLNAME="A Builder", DEBEMAIL="builder@debian.org"))
    found = glob.glob(tmp + "/dist/*.deb")
    check(len(found) == 1, "one package", found)
    said = run("lintian", "--allow-root", "--fail-on", "warning,error", found[0], want=None)
    check(said.returncode == 0 and not said.stdout.strip(), "lintian", said.stdout, said.stderr)
    return found[0]


def in_debian(deb):
    root = roots.debian(["bullseye"], ["python3", "python3-venv"])
    check(root, "no Debian")
    place = root + "/opt/tfhook-deb"
    shutil.rmtree(place, ignore_errors=True)
    os.makedirs(place + "/tests")
    for folder in ("evidence", "jobs"):
        shutil.copytree(f"{src}/tests/{folder}", f"{place}/tests/{folder}")
    shutil.copy(deb, place)

    def step(command, **env):
        done = roots.within(root, "cd /opt/tfhook-deb && " + command, **env)
        check(done.returncode == 0, command, done.stdout[-500:], done.stderr[-500:])
        return done.stdout

    step("dpkg -i *.deb")
    step("tfhook run -q -o run -- python3 tests/evidence/jobs.py queue_of_sleeper --steps 60",
         LD_LIBRARY_PATH="/usr/lib/x86_64-linux-gnu/tfhook/sim")
    verdict = json.loads(step("tfhook report --json run"))["verdict"]
    check(verdict["class"] in ("input-bound", "host-bound"), "verdict", verdict)
    check("/usr/lib/x86_64-linux-gnu/tfhook/$LIB/libtfhook.so'" in step("tfhook env"), "env")
    step("dpkg -P tfhook")
    left = [path for path in glob.glob(root + "/usr/**/*tfhook*", recursive=True)]
    check(not left, "left behind", left)
    shutil.rmtree(place)


def prefix(at, libdir, destdir):
    """Installed, used through pkg-config, removed again."""
    settings = ["PREFIX=" + at, "LIBDIR=" + libdir, "DESTDIR=" + destdir]
    run("make", "-s", "-C", src, "O=" + build, "-o", "all", "install", *settings)
    top = (destdir or at) + "/"
    check(all(path.startswith(destdir + at + "/") for path in installed.files(top)), "elsewhere", top)
    if not destdir:
        with open(tmp + "/reader.c", "w") as f:
            f.write(READER)
        env = dict(os.environ, PKG_CONFIG_PATH=libdir + "/pkgconfig", LD_LIBRARY_PATH=libdir)
        flags = run("pkg-config", "--cflags", "--libs", "libtft", env=env).stdout.split()
        run("gcc", "-o", tmp + "/reader", tmp + "/reader.c", *flags)
        run(tmp + "/reader", src + "/tests/golden/format-1.0.tft", env=env)
        run(tmp + "/reader", src + "/LICENSE", env=env, want=1)
        flags = run("pkg-config", "--static", "--cflags", "--libs", "libtft", env=env).stdout.replace("-ltft", "-l:libtft.a").split()
        run("gcc", "-o", tmp + "/reader", tmp + "/reader.c", *flags)
        run(tmp + "/reader", src + "/tests/golden/format-1.0.tft")
        check(run(at + "/bin/tfhook", "version").stdout.split()[1] == run("pkg-config", "--modversion", "libtft", env=env).stdout.strip(),
              "version")
    run("make", "-s", "-C", src, "O=" + build, "-o", "all", "uninstall", *settings)
    check(not installed.files(top), "left behind", installed.files(top))


if os.geteuid():
    sys.exit("the test makes a system of its own: sudo make check-install")
run(src + "/scripts/bootstrap", "lintian")
prefix(tmp + "/prefix", tmp + "/prefix/lib64", "")
prefix("/opt/tfhook", "/opt/tfhook/lib", tmp + "/image")
in_debian(package())
sys.exit(failed())
