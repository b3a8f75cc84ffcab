#!/usr/bin/env python3
"""A conda package (`make conda`), in a channel of its own: rattler, which pixi and conda use, solves for it and installs it into an environment; the
`tfhook` there records a job with its simulated GPU and gives it the right class, call sites included; a program links with libtft by its pkg-config file;
removing the package leaves no file. Two builds are the same bytes."""
# timeout: 900
import asyncio
import json
import os
import subprocess
import sys

sys.path.append(os.path.join(os.environ["TFH_SRC"], "tests/package"))
import installed
from installed import build, check, failed, files, run, src, tmp

done = subprocess.run([src + "/scripts/python-env", "conda"], stdout=subprocess.PIPE, text=True)
if done.returncode:
    sys.exit(77)
if sys.executable != done.stdout.split()[-1]:
    os.execv(done.stdout.split()[-1], [done.stdout.split()[-1], *sys.argv])
import rattler
from rattler.index import index_fs

CHANNEL, PLACE = tmp + "/channel", tmp + "/env"


def package(folder):
    run("make", "-s", "-C", src, "O=" + build, "-o", "all", "conda", "DIST=" + folder)
    name, = os.listdir(folder)
    with open(f"{folder}/{name}", "rb") as f:
        return name, f.read()


name, content = package(CHANNEL + "/linux-64")
check((name, content) == package(tmp + "/again"), "a second build differs")
print(name, len(content))


async def install():
    await index_fs(CHANNEL)
    records = await rattler.solve([rattler.Channel(CHANNEL)], ["tfhook"], platforms=["linux-64", "noarch"],
                                  virtual_packages=rattler.VirtualPackage.detect())
    check([str(r.name.normalized) for r in records] == ["tfhook"], "solved", records)
    await rattler.install(records, PLACE, cache_dir=tmp + "/cache", show_progress=False)
    return records


def record(program, out, **env):
    run(PLACE + "/bin/tfhook", "run", "-q", "-o", out, "--", *program, env=dict(os.environ, LD_LIBRARY_PATH=PLACE + "/lib/tfhook/sim", **env))
    return run(PLACE + "/bin/tfhook", "report", "--json", out).stdout


asyncio.run(install())
verdict = json.loads(record([sys.executable, src + "/tests/evidence/jobs.py", "queue_of_sleeper", "--steps", "60"], tmp + "/run"))["verdict"]
check(verdict["class"] in ("input-bound", "host-bound"), "verdict", verdict)  # the latter where other work lets no samples through
installed.check_backtraces(record([build + "/tests/hook/stacks"], tmp + "/stacks", TFHOOK_STACKS="copy"))
with open(tmp + "/reader.c", "w") as f:
    f.write("#include <tfhook/tft.h>\nint main(int argc, char **argv) { return !tft_file_open(argv[argc - 1], 0, 0); }\n")
flags = run("pkg-config", "--cflags", "--libs", "libtft", env=dict(os.environ, PKG_CONFIG_PATH=PLACE + "/lib/pkgconfig")).stdout.split()
run("gcc", "-o", tmp + "/reader", tmp + "/reader.c", *flags)
recorded = [path for path in files(tmp + "/run") if path.endswith(".tft")]
run(tmp + "/reader", recorded[0], env=dict(os.environ, LD_LIBRARY_PATH=PLACE + "/lib"))
print(rattler.__version__ if hasattr(rattler, "__version__") else "", verdict["class"], verdict["cause"])

asyncio.run(rattler.install([], PLACE, cache_dir=tmp + "/cache", show_progress=False))
left = [path for path in files(PLACE) if not path.startswith(PLACE + "/conda-meta/") and path != PLACE + "/CACHEDIR.TAG"]  # rattler's own
check(not left, "left behind", left)
sys.exit(failed())
