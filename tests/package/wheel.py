#!/usr/bin/env python3
"""The wheel installs with pip alone. Its command records a job on the simulated GPU that it brings, and names the right class;
`python -m tfhook` is the same command; the preload has $LIB in it, as after `make install`. Where neither libunwind nor libgcc is
installed, calls have backtraces all the same. Uninstalling leaves no file."""
# timeout: 600
import os
import sys

if os.environ.get("TFH_SAN"):
    sys.exit(77)  # what is packed has no sanitizer
import installed
from installed import check, failed, run, tmp

wheel = installed.wheel()
bin = installed.environment()
empty = installed.files(tmp + "/env")
run(bin + "/pip", "install", "--no-index", "--disable-pip-version-check", wheel)

with open(installed.src + "/include/tfhook/version.h") as f:
    version = f.read().split('VERSION "')[1].split('"')[0]
for command in ([bin + "/tfhook"], [bin + "/python", "-m", "tfhook"]):
    check(run(*command, "version").stdout == "tfhook %s\n" % version, "version", command)
check(run(bin + "/python", "-m", "tfhook", "no-such", want=2).stderr.startswith("tfhook:"), "status of python -m tfhook")
check("/lib/tfhook/$LIB/libtfhook.so'" in run(bin + "/tfhook", "env").stdout, "musl's programs are passed over")

run(bin + "/python", "-c", "from tfhook.fleet import *; [text_of(name) for name in VIEWS + QUERIES]")

report = installed.record(bin, tmp + "/run")
# Where other work lets no samples through, the wait is known as the host's only.
check(report["verdict"]["class"] in ("input-bound", "host-bound"), "verdict", report["verdict"])
check(report["steps"]["count"] >= 50, "steps", report["steps"])
check(run(bin + "/tfhook", "demo", "quick", want=125, env=dict(os.environ, TFH_PY="/bin/false")).stderr.find("needs a python3") > 0,
      "the demo finds its scripts")

# The loader finds nothing but empty files by the names of unwinders.
os.makedirs(tmp + "/hidden")
for name in ("libunwind.so.8", "libgcc_s.so.1"):
    open(f"{tmp}/hidden/{name}", "w").close()
run(bin + "/tfhook", "run", "-q", "-o", tmp + "/stacks", "--", installed.build + "/tests/hook/stacks",
    env=dict(os.environ, LD_LIBRARY_PATH=f"{tmp}/hidden:{tmp}/env/lib/tfhook/sim", TFHOOK_STACKS="copy"))
installed.check_backtraces(run(bin + "/tfhook", "report", "--json", tmp + "/stacks").stdout)

run(bin + "/pip", "uninstall", "-y", "tfhook")
check(installed.files(tmp + "/env") == empty, "left behind", set(installed.files(tmp + "/env")) - set(empty))
sys.exit(failed())
