#!/usr/bin/env python3
"""In the oldest Debian that its mirror still has (TFH_ROOT names the folder of another system): programs of that system run under
the preload with the output and the exit status that they have without; `tfhook run` records a job, and the recording is the
driver's own log, call by call; report and doctor work. Run by `make check-glibc`, as root, with a download of 70 MB."""
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


def main():
    if os.geteuid():
        sys.exit("the test makes a system of its own: sudo make check-glibc")
    root = os.environ.get("TFH_ROOT")
    if not root:
        root = roots.debian(SUITES) or sys.exit(1)
    place = f"{root}/{PLACE}"
    shutil.rmtree(place, ignore_errors=True)
    os.makedirs(f"{place}/work")
    for folder in ("bin", "lib", "sim"):
        os.makedirs(f"{place}/{folder}")
        for file in glob.glob(f"{build}/{folder}/*"):
            if re.search(r"/tfhook$|\.so(\.\d+)?$", file):
                shutil.copy(file, f"{place}/{folder}")
    shutil.copy(f"{build}/tests/glibc/client", place)
    programs(root)
    calls = job(root)
    shutil.rmtree(place)
    libc = within(root, "ldd --version").stdout.splitlines()
    print(f"{root}: {libc[0] if libc else 'glibc of unknown version'}; {calls} calls compared")
    return compare.failed()


sys.exit(main())
