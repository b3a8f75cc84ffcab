#!/usr/bin/env python3
"""Walking a stack reads no memory that is not there, whatever unwind tables, registers and caches of earlier walks say: each program of
frames.c ends as without the preload, and its copies have backtraces."""
import os
import shutil
import subprocess
import sys

build, tmp = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
if os.environ.get("TFH_SAN"):
    sys.exit(77)
tests = f"{build}/tests/hook"
for case in ("false", "loaded", "mapped", "deep"):
    env = dict(os.environ, LD_LIBRARY_PATH=f"{build}/sim", TFHOOK_STACKS="copy")
    command = [f"{tests}/frames", case, tests]
    alone = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True)
    if alone.returncode == 77:
        sys.exit(77)
    assert alone.returncode == 0, (case, "alone", alone)
    done = subprocess.run([f"{build}/bin/tfhook", "run", "-q", "-o", f"{tmp}/{case}", "--", *command], env=env, stdout=subprocess.PIPE, text=True)
    assert (done.returncode, done.stdout) == (0, ""), (case, done)
    files = [open(f"{tmp}/{case}/{name}", "rb").read() for name in os.listdir(f"{tmp}/{case}")]
    assert any(b"BTRC" in text for text in files), (case, "no backtraces")
# Valgrind checks what system calls read.
if shutil.which("valgrind"):
    env = dict(os.environ, LD_LIBRARY_PATH=f"{build}/sim", TFHOOK_STACKS="copy", TFHOOK_DIR=f"{tmp}/valgrind", LD_PRELOAD=f"{build}/lib/libtfhook.so")
    done = subprocess.run(["valgrind", "-q", "--error-exitcode=9", f"{tests}/stacks", "5", "time"], env=env, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0 and "\n==" not in "\n" + done.stderr, done  # "--": a system call that it does not know
