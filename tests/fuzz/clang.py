#!/usr/bin/env python3
"""What must hold: clang compiles every C source without a warning (fuzzers, and builds with CC=clang, stop at one). It warns of things that gcc does not.
timeout: 300"""
import json
import os
import shlex
import shutil
import subprocess
import sys

if not shutil.which("clang"):
    sys.exit(77)
os.chdir(os.environ["TFH_SRC"])
subprocess.run(["make", "-s", "compile_commands.json"], check=True)
files = {}  # flags -> files
with open("compile_commands.json") as f:
    for entry in json.load(f):
        flags = tuple(w for w in shlex.split(entry["command"])[1:] if w not in ("-c", entry["file"]))
        if entry["file"].endswith(".c"):
            files.setdefault(flags, []).append(entry["file"])
failed = [flags for flags, some in files.items() if subprocess.run(["clang", "-fsyntax-only", *flags, *some]).returncode]
sys.exit(bool(failed))
