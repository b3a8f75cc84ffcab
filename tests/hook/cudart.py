#!/usr/bin/env python3
"""NVIDIA's own runtime library, of both generations, shared, static and several in one process: each of its hundreds
of lookups comes back with our wrapper of exactly the function that the driver answered, or with the driver's own
pointer where nothing is to be recorded. The runtime then refuses the simulated driver, as it does without tfhook. Nothing
is left unhooked.
timeout: 240"""
import os
import subprocess
import sys

from lookups import build, check, failed, prove, src, tmp

CLIENT = f"{build}/tests/hook/cudart"
CALLS = "cudaGetDeviceCount cudaMalloc cudaMemcpy cudaStreamCreate cudaRuntimeGetVersion cudaDriverGetVersion " \
        "cudaGetLastError".split()


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
sys.exit(failed())
