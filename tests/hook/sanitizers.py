#!/usr/bin/env python3
"""Programs built with a sanitizer run under the preload as without it: same exit status, no report, recording on or off,
and what is recorded is what the driver saw, call by call. gcc must be there; a sanitizer or compiler that is not is left out."""
import os
import shutil
import subprocess
import sys

from compare import build, check, compare, failed, records_of, src, tmp, truth_of

if os.environ.get("TFH_SAN"):
    sys.exit(77)
SANITIZERS = ("address", "thread", "undefined", "leak", "memory")
# The runtime must come first in the process; gcc's are libraries.
FIRST = {"address": "libasan.so", "leak": "liblsan.so"}


def compiled(cc, sanitizer, source, name):
    program = f"{tmp}/{name}"
    done = subprocess.run([cc, "-O1", "-g", f"-fsanitize={sanitizer}", "-o", program, source, "-ldl", "-lpthread"],
                          capture_output=True)
    return program if done.returncode == 0 else None


def preload(cc, sanitizer, library):
    first = FIRST.get(sanitizer) if cc == "gcc" else None
    if not first:
        return library
    path = subprocess.run([cc, f"-print-file-name={first}"], capture_output=True, text=True, check=True).stdout.strip()
    return f"{path} {library}"


def go(program, **settings):
    return subprocess.run([program, "4", "100"], env=dict(os.environ, LD_LIBRARY_PATH=f"{build}/sim", **settings),
                          capture_output=True, text=True, timeout=60)


def look(cc, sanitizer):
    name = f"{cc}-{sanitizer}"
    program = compiled(cc, sanitizer, f"{src}/tests/hook/linked/sanitized.c", name)
    try:
        plain = go(program) if program else None
    except subprocess.TimeoutExpired:  # the program's end under GCC 13's leak sanitizer, on newer kernels
        return False
    if not program or plain.returncode != 3:  # not here, or not on this kernel
        return False
    for library in ("libtfhook.so", "libtfhook-noexport.so"):
        off = go(program, TFHOOK="0", LD_PRELOAD=preload(cc, sanitizer, f"{build}/lib/{library}"))
        check((off.returncode, off.stdout, off.stderr) == (3, plain.stdout, plain.stderr), name, library, "off", off)
    place = f"{tmp}/{name}.run"
    os.mkdir(place)
    on = go(program, TFHOOK_DIR=place, SIM_TRUTH=f"{place}/truth",
            LD_PRELOAD=preload(cc, sanitizer, f"{build}/lib/libtfhook.so"))
    check((on.returncode, on.stdout, on.stderr) == (3, plain.stdout, plain.stderr), name, on)
    compare(name, records_of(place), truth_of(place), place)
    return True


seen = [f"{cc} {sanitizer}" for cc in ("gcc", "clang") if shutil.which(cc) for sanitizer in SANITIZERS
        if look(cc, sanitizer)]
print(", ".join(seen))
check("gcc address" in seen and "gcc thread" in seen, "gcc's sanitizers are missing")
sys.exit(failed())
