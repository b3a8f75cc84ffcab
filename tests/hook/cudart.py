#!/usr/bin/env python3
"""NVIDIA's own runtime library, of both generations, shared, static and several in one process: each of its hundreds
of lookups comes back with our wrapper of exactly the function that the driver answered, or with the driver's own
pointer where nothing is to be recorded. The runtime then refuses the simulated driver, as it does without us. Nothing
is left unhooked.
timeout: 240"""
import glob
import json
import os
import re
import subprocess
import sys

build, src, tmp = (os.environ[k] for k in ("TFH_BUILD", "TFH_SRC", "TFH_TMP"))
if os.environ.get("TFH_SAN"):
    sys.exit(77)
hooked = set(re.findall(r"^CUDA_FN(?:_BY_HAND)?\((\w+)", open(f"{src}/lib/base/cuda_api.def").read(), re.M))
HOOK, NOEXPORT = f"{build}/lib/libtfhook.so", f"{build}/lib/libtfhook-noexport.so"
SPY, CLIENT = f"{build}/tests/hook/liblookups.so", f"{build}/tests/hook/cudart"
LEAST = 400  # lookups of a runtime; CUDA 12 makes 419, CUDA 13 makes 440
CALLS = "cudaGetDeviceCount cudaMalloc cudaMemcpy cudaStreamCreate cudaRuntimeGetVersion cudaDriverGetVersion " \
        "cudaGetLastError".split()
failures = 0


def check(condition, *what):
    global failures
    if not condition:
        failures += 1
        if failures < 20:
            print("FAILED:", *what)


def libraries():
    """Folder of the runtime library by generation; the wheels' where no toolkit is at hand."""
    found = {}
    for generation in ("12", "13"):
        fragment = f"{tmp}/{generation}.mk"
        if subprocess.run([f"{src}/scripts/cuda-headers", fragment, generation]).returncode:
            continue
        for include in open(fragment).read().split(":=")[1].split():
            for name in ("lib64", "lib"):
                place = os.path.normpath(f"{include}/../{name}")
                if os.path.exists(f"{place}/libcudart.so.{generation}"):
                    found.setdefault(generation, place)
    return found


def link(name, library, *flags):
    """A program or library with a static runtime inside; None where the toolkit has none."""
    if not os.path.exists(library):
        return None
    out = f"{tmp}/{name}"
    with open(out + ".c", "w") as text:
        for call in CALLS:
            text.write(f"extern char {call}[];\nvoid *const rt_{call} = {call};\n")
    done = subprocess.run([os.environ.get("CC", "cc"), "-fPIC", "-o", out, out + ".c", *flags, library, "-ldl", "-lrt",
                           "-lpthread"], capture_output=True, text=True)
    check(done.returncode == 0, name, "link", done.stderr)
    return out


def run(name, command, *preload, **settings):
    place = f"{tmp}/{name}"
    os.mkdir(place)
    env = dict(os.environ, LD_LIBRARY_PATH=f"{build}/sim", LD_PRELOAD=":".join(preload), TFHOOK_DIR=place,
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
        # cuGetProcAddress is not one of the entries in assembly.
        check(target == real or real.startswith("cuGetProcAddress"), name, "the wrapper calls another", a, b)


def recorded(name, runs):
    check(len(runs) == 1, name, "runs", runs)
    for place in runs:
        told = subprocess.run([f"{build}/bin/tfhook", "report", "--json", place], capture_output=True, text=True)
        check(json.loads(told.stdout)["quality"]["unhooked"] == 0, name, "unhooked", told.stdout, told.stderr)
        told = subprocess.run([f"{build}/bin/tfhook", "info", place], capture_output=True, text=True)
        check(told.returncode == 0 and "does not record" not in told.stdout.lower(), name, "info", told)


def prove(name, runtimes, command, door="v2", **settings):
    bare, _, _ = run(name + "-bare", command)
    check(bare[0] == 0 and bare[1].count("malloc") == runtimes and " malloc 0 " not in bare[1], name, "client", bare)
    result, plain, _ = run(name + "-plain", command, SPY, **settings)
    check(result == bare, name, "the observer disturbs", result, bare)
    check(sum(a[0] == door for a in plain) >= LEAST * runtimes, name, "lookups", len(plain))
    result, ours, runs = run(name + "-hooked", command, SPY, HOOK, **settings)
    check(result == bare, name, "with us", result, bare)
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


places = libraries()
if not places:
    print("no CUDA runtime library can be had here")
    sys.exit(77)
together = []
for generation, place in places.items():
    shared, static = f"{place}/libcudart.so.{generation}", f"{place}/libcudart_static.a"
    prove(f"shared-{generation}", 1, [CLIENT, shared])
    # A driver without cuGetProcAddress is asked for each name by dlsym.
    prove(f"old-{generation}", 1, [CLIENT, shared], "dlsym", LOOKUPS_OLD="1")
    together.append(shared)
    program = link(f"program-{generation}", static, f"{src}/tests/hook/cudart.c", "-rdynamic")
    if program:
        prove(f"static-{generation}", 1, [program, "-"])
        together += [link(f"lib{generation}{copy}.so", static, "-shared") for copy in "ab"]
prove("together", len(together), [CLIENT, *together])
if failures:
    print(failures, "failures")
sys.exit(failures != 0)
