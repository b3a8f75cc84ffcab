#!/usr/bin/env python3
"""A container image made by the two lines that docs/install.md gives, by buildah on a base of Debian's packages: a job in a container of it is
recorded and gets the right class. As root."""
# timeout: 900
import json
import os
import shutil
import sys

sys.path += [os.path.join(os.environ["TFH_SRC"], "tests", folder) for folder in ("package", "glibc")]
import installed
import roots
from installed import check, failed, run, src, tmp

RECIPE = ["COPY tfhook-*.whl /tmp/", "RUN pip install /tmp/tfhook-*.whl"]
# Debian's own Python takes no packages; those of images for training do.
FILE = ["FROM localhost/base", "RUN python3 -m venv /env", "ENV PATH=/env/bin:$PATH PIP_NO_INDEX=1", *RECIPE, "COPY tests /tests"]
JOB = "cd /tmp && tfhook run -q -o run -- python3 /tests/evidence/jobs.py queue_of_sleeper --steps 60 >/dev/null && tfhook report --json run"


def buildah(*words):
    policy = ["--signature-policy", tmp + "/policy.json"] if words[0] in ("from", "commit", "bud") else []
    return run("buildah", "--root", tmp + "/images", "--runroot", tmp + "/running", "--storage-driver", "vfs", words[0], *policy, *words[1:]).stdout.strip()


if os.geteuid():
    sys.exit("the test makes a system of its own: sudo make check-install")
with open(src + "/docs/install.md") as f:
    text = f.read()
check(all(line in text for line in RECIPE), "docs/install.md has another recipe")
run(src + "/scripts/bootstrap", "containers")
root = roots.debian(["trixie"], ["python3", "python3-venv"]) or sys.exit(77)
with open(tmp + "/policy.json", "w") as f:
    json.dump({"default": [{"type": "insecureAcceptAnything"}]}, f)  # images that are made here
base = buildah("from", "scratch")
run("cp", "-a", root + "/.", buildah("mount", base))
buildah("umount", base)
buildah("commit", "--rm", base, "localhost/base")

context = tmp + "/context"
for folder in ("evidence", "jobs"):
    shutil.copytree(f"{src}/tests/{folder}", f"{context}/tests/{folder}")
shutil.copy(installed.wheel(), context)
with open(context + "/Containerfile", "w") as f:
    f.write("\n".join(FILE) + "\n")
buildah("bud", "--isolation", "chroot", "--pull-never", "--network", "host", "-t", "localhost/job", context)
job = buildah("from", "--pull-never", "localhost/job")
said = json.loads(buildah("run", "--isolation", "chroot", "--network", "host", "--env", "LD_LIBRARY_PATH=/env/lib/tfhook/sim", job, "--", "sh", "-c", JOB))
check(said["verdict"]["class"] in ("input-bound", "host-bound") and said["steps"]["total"] >= 50, "verdict", said["verdict"], said["steps"])
sys.exit(failed())
