#!/usr/bin/env python3
"""In the oldest Debian that its mirror still has (TFH_ROOT names the folder of another system): programs of that system run under
the preload with the output and the exit status that they have without; `tfhook run` records a job, and the recording is the
driver's own log, call by call; report and doctor work. Lookups and backtraces wait for no callback of dl_iterate_phdr, although that
glibc cannot find an object without its lock. Run by `make check-glibc`, as root, with a download of 90 MB."""
# timeout: 900
import glob
import os
import re
import shutil
import sys

sys.path.append(os.path.join(os.environ["TFH_SRC"], "tests/hook"))
import compare
import roots
from compare import build, check
from roots import within

SUITES = ("stretch", "buster", "bullseye", "bookworm")
PLACE = "opt/tfhook-test"


def programs(root):
    """Those of the system, with and without; also switched off, and with every library that is for preloading."""
    command = 'ls / && printf "%s\\n" a b | sort -r | while read x; do echo $x; done; bash -c "exit 5"'
    plain = within(root, command)
    check(plain.returncode == 5 and plain.stdout, "the system works", plain)
    for library in ("libtfhook.so", "libtfhook-noexport.so"):
        for value in "01":
            other = within(root, command, LD_PRELOAD=f"/{PLACE}/lib/{library}", TFHOOK=value)
            check((plain.returncode, plain.stdout, plain.stderr) == (other.returncode, other.stdout, other.stderr), library, other)
    other = within(root, command, LD_AUDIT=f"/{PLACE}/lib/libtfhook-audit.so")
    check((plain.returncode, plain.stdout, plain.stderr) == (other.returncode, other.stdout, other.stderr), "audit", other)


def job(root):
    work = f"/{PLACE}/work"
    settings = dict(LD_LIBRARY_PATH=f"/{PLACE}/sim", SIM_TRUTH=f"{work}/truth")
    done = within(root, f"cd {work} && ../bin/tfhook run -q -o tfhook-run -- ../client", **settings)
    check((done.returncode, done.stdout, done.stderr) == (7, "copied\n", ""), "job", done)
    place = root + work
    counts = compare.compare("old system", compare.records_of(place), compare.truth_of(place), place)
    check(counts["calls"] >= 3000, "calls compared", counts)
    report = within(root, f"/{PLACE}/bin/tfhook report --all {work}/tfhook-run")
    check(report.returncode in (0, 5) and "0 dropped" in report.stdout, "report", report)
    doctor = within(root, f"/{PLACE}/bin/tfhook doctor")
    check("ok    the recorder is loaded into processes" in doctor.stdout, "doctor", doctor)
    return counts["calls"]


def loader_held(root):
    """tests/hook/loader_held.py's job with the system's own Python."""
    for what in ("lookups", "backtraces"):
        done = within(root, f"cd /{PLACE}/work && timeout 60 python3 ../loader_held.py {what}", LD_LIBRARY_PATH=f"/{PLACE}/sim",
                      LD_PRELOAD=f"/{PLACE}/lib/libtfhook.so", TFHOOK_DIR=f"/{PLACE}/work", TFHOOK_STACKS="copy", TFHOOK_VERBOSE="1")
        check((done.returncode, done.stdout) == (0, "done\n"), "loader held", what, done)
        check("no backtraces" not in done.stderr, "backtraces", done)


def main():
    if os.geteuid():
        sys.exit("the test makes a system of its own: sudo make check-glibc")
    root = os.environ.get("TFH_ROOT")
    if not root:
        root = roots.debian(SUITES, ("python3",)) or sys.exit(1)
    place = f"{root}/{PLACE}"
    shutil.rmtree(place, ignore_errors=True)
    os.makedirs(f"{place}/work")
    for folder in ("bin", "lib", "sim"):
        os.makedirs(f"{place}/{folder}")
        for file in glob.glob(f"{build}/{folder}/*"):
            if re.search(r"/tfhook$|\.so(\.\d+)?$", file):
                shutil.copy(file, f"{place}/{folder}")
    shutil.copy(f"{build}/tests/glibc/client", place)
    shutil.copy(f"{os.environ['TFH_SRC']}/tests/hook/loader_held.py", place)
    programs(root)
    calls = job(root)
    loader_held(root)
    shutil.rmtree(place)
    libc = within(root, "ldd --version").stdout.splitlines()
    print(f"{root}: {libc[0] if libc else 'glibc of unknown version'}; {calls} calls compared")
    return compare.failed()


sys.exit(main())
