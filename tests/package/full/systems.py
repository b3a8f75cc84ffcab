#!/usr/bin/env python3
"""Other systems, as fresh as they come, with the Python and the pip that they have: the wheel installs, a job on its simulated GPU
gets the right class, calls have backtraces though no libunwind is installed, `python3 -m tfhook` works, and uninstalling leaves no file.
Three releases of Debian, and one with Fedora's layout, where the loader takes the recorder from lib64. As root."""
# timeout: 1800
import json
import os
import shutil
import sys

sys.path += [os.path.join(os.environ["TFH_SRC"], "tests", folder) for folder in ("package", "glibc")]
import installed
import roots
from installed import check, failed, src

PLACE = "opt/tfhook-wheel"


PYTHON = ["python3", "python3-venv"]
FEDORA = "fedora-like"


def systems():
    """The folder of each that can be had."""
    for suite in ("bullseye", "bookworm", "trixie"):
        yield roots.debian([suite], PYTHON)
    yield roots.fedora_like("trixie", PYTHON)


def step(root, command, **env):
    if FEDORA in root:
        env["PYTHONPLATLIBDIR"] = "lib64"
    done = roots.within(root, f"cd /{PLACE} && {command}", **env)
    check(done.returncode == 0, f"status {done.returncode} of {command} in {root}", done.stdout[-1000:], done.stderr[-1000:])
    return done.stdout


def try_in(root, wheel):
    place = f"{root}/{PLACE}"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(f"{src}/tests", f"{place}/tests", ignore=lambda folder, names: [
        n for n in names if folder == f"{src}/tests" and n not in ("evidence", "jobs")])
    shutil.copy(wheel, place)
    step(root, "python3 -m venv env")
    empty = installed.files(f"{place}/env")
    step(root, f"env/bin/pip install --no-index {os.path.basename(wheel)}")
    folder = "lib64" if FEDORA in root else "lib/x86_64-linux-gnu"
    step(root, f'eval "$(env/bin/tfhook env)" && LD_DEBUG=files /bin/true 2>&1 | grep "/lib/tfhook/{folder}/libtfhook.so"')
    step(root, "env/bin/tfhook run -q -o run -- env/bin/python tests/evidence/jobs.py queue_of_sleeper --steps 60",
         LD_LIBRARY_PATH=f"/{PLACE}/env/lib/tfhook/sim")
    verdict = json.loads(step(root, "env/bin/python -m tfhook report --json run"))["verdict"]
    # Where other work lets no samples through, the wait is known as the host's only.
    check(verdict["class"] in ("input-bound", "host-bound"), "verdict in", root, verdict)
    shutil.copy(f"{installed.build}/tests/hook/stacks", place)
    step(root, "env/bin/tfhook run -q -o stacks-run -- ./stacks", LD_LIBRARY_PATH=f"/{PLACE}/env/lib/tfhook/sim", TFHOOK_STACKS="copy")
    installed.check_backtraces(step(root, "test ! -e /usr/lib/*/libunwind.so.8 && env/bin/tfhook report --json stacks-run"))
    versions = step(root, "env/bin/pip --version; env/bin/python --version; ldd --version")
    step(root, "env/bin/pip uninstall -y tfhook")
    check(installed.files(f"{place}/env") == empty, "left behind in", root)
    shutil.rmtree(place)
    pip, python, libc = [line.split(" from ")[0] for line in versions.splitlines()[:3]]
    print(f"{os.path.basename(root)}: {libc}, {python}, {pip}: {verdict['class']}, {verdict['cause']}")


if os.geteuid():
    sys.exit("the test makes systems of its own: sudo make check-install")
wheel = installed.wheel()
made = 0
for system in systems():
    if system:
        made += 1
        try_in(system, wheel)
check(made, "no other system could be made")
sys.exit(failed())
