"""Runs programs on NVIDIA's libraries with liblookups.so in front, with and without the recorder, and compares what each
lookup of a driver's name came back with."""
import glob
import json
import os
import re
import subprocess
import sys
sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/common")
from common import check, failed  # noqa: E402

build, src, tmp = (os.environ[k] for k in ("TFH_BUILD", "TFH_SRC", "TFH_TMP"))
if os.environ.get("TFH_SAN"):
    sys.exit(77)
hooked = set(re.findall(r"^CUDA_FN(?:_BY_HAND|_HOST|_LAUNCH)?\((\w+)", open(f"{src}/lib/base/cuda_api.def").read(), re.M))
by_hand = set(re.findall(r"^CUDA_FN_BY_HAND\((\w+)", open(f"{src}/lib/base/cuda_api.def").read(), re.M))
HOOK, NOEXPORT = f"{build}/lib/libtfhook.so", f"{build}/lib/libtfhook-noexport.so"
SPY = f"{build}/tests/hook/liblookups.so"
LEAST = 400  # lookups of a runtime; CUDA 12 makes 419, CUDA 13 makes 440
LIBRARIES = os.environ.get("TFH_LIBRARIES", "")  # more folders to find libraries in


def run(name, command, *preload, **settings):
    place = f"{tmp}/{name}"
    os.mkdir(place)
    env = dict(os.environ, LD_LIBRARY_PATH=f"{build}/sim:{LIBRARIES}", LD_PRELOAD=":".join(preload), TFHOOK_DIR=place,
               LOOKUPS=f"{place}/lookups", **settings)
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    answers = []
    if SPY in preload:
        answers = [line.split() for line in open(f"{place}/lookups")]
    return (done.returncode, done.stdout, done.stderr), answers, glob.glob(f"{place}/tfhook-*")


def same_answers(name, plain, ours, exported=True):
    check(len(plain) == len(ours), name, "lookups", len(plain), len(ours))
    for a, b in zip(plain, ours):
        asked, real, owner, got, target = a[:6], a[7], b[6], b[7], b[8]
        check(asked == b[:6], name, "asked or answered differently", a, b)
        if real not in hooked:
            check(a[6:] == b[6:], name, "touched", a, b)
            continue
        check(owner.startswith("libtfhook"), name, "not ours", a, b)
        check(got == (real if exported else "-"), name, "another wrapper", a, b)
        # Those by hand are not among the entries in assembly.
        check(target == real or real in by_hand, name, "the wrapper calls another", a, b)


def recorded(name, runs):
    check(len(runs) == 1, name, "runs", runs)
    for place in runs:
        told = subprocess.run([f"{build}/bin/tfhook", "report", "--json", place], capture_output=True, text=True)
        check(json.loads(told.stdout)["quality"]["unhooked"] == 0, name, "unhooked", told.stdout, told.stderr)
        told = subprocess.run([f"{build}/bin/tfhook", "info", place], capture_output=True, text=True)
        check(told.returncode == 0 and "does not record" not in told.stdout.lower(), name, "info", told)


def prove(name, runtimes, command, door="v2", **settings):
    bare, _, _ = run(name + "-bare", command)
    check(bare[0] == 0 and "driver: 0" in bare[1], name, "client", bare)
    result, plain, _ = run(name + "-plain", command, SPY, **settings)
    check(result == bare, name, "the observer disturbs", result, bare)
    check(sum(a[0] == door for a in plain) >= LEAST * runtimes, name, "lookups", len(plain))
    result, ours, runs = run(name + "-hooked", command, SPY, HOOK, **settings)
    check(result == bare, name, "with tfhook", result, bare)
    same_answers(name, plain, ours)
    check(sum(a[0] == door and a[6] == "libtfhook.so" for a in ours) >= 150 * runtimes, name, "too few are ours")
    recorded(name, runs)
    result, ours, runs = run(name + "-noexport", command, SPY, NOEXPORT, **settings)
    check(result == bare, name, "without exports", result, bare)
    same_answers(name, plain, ours, exported=False)
    recorded(name, runs)
    result, _, runs = run(name + "-alone", command, HOOK)
    check(result == bare, name, "without the observer", result, bare)
    recorded(name, runs)
    plain = [a for a in plain if a[0] == door]
    print(f"{name}: {len(plain)} lookups, {sum(a[3] == '2' for a in plain)} of them per-thread, "
          f"{sum(a[7] in hooked for a in plain)} hooked")
