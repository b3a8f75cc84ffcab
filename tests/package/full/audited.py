#!/usr/bin/env python3
"""auditwheel finds in the wheel nothing that its name does not promise: it runs on every glibc from 2.17 on.
The same input makes the same wheel."""
# timeout: 600
import os
import subprocess
import sys

sys.path.append(os.path.join(os.environ["TFH_SRC"], "tests/package"))
import installed
from installed import check, failed, run

done = subprocess.run([installed.src + "/scripts/python-env", "package"], stdout=subprocess.PIPE, text=True)
if done.returncode:
    sys.exit(77)
wheel = installed.wheel()
with open(wheel, "rb") as f:
    first = f.read()
with open(installed.wheel(), "rb") as f:
    check(first == f.read(), "two builds differ")
said = run(done.stdout.split()[-1], "-m", "auditwheel", "show", wheel).stdout
check('is consistent with the following platform tag:\n"manylinux_2_17_x86_64"' in said, "auditwheel", said)
sys.exit(failed())
