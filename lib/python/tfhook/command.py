"""Runs the `tfhook` command that belongs to this package, and returns its output.

The command does all the work in a process of its own, for three reasons: unlike libtft it contains the analysis; fields are only
ever added to its JSON; and a damaged recording cannot crash the interpreter.
"""
from __future__ import annotations

import os
import shutil
import subprocess
from typing import Optional, Sequence

#: Exit codes after which the command has printed its result: success, incomplete, nothing to analyse.
PRINTED = (0, 4, 5)


class TfhookError(Exception):
    """The command's error message, with its exit code (2 usage, 3 unreadable, 127 not found, ...)."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def find() -> str:
    """The command's path: bin/tfhook in the nearest folder above this package that has one (an environment's, or the prefix of
    `make install`), else the one on PATH."""
    folder = os.path.dirname(os.path.abspath(__file__))
    while True:
        above = os.path.dirname(folder)
        if above == folder:
            break
        folder = above
        path = os.path.join(folder, "bin", "tfhook")
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    found = shutil.which("tfhook")
    if not found:
        raise TfhookError("the tfhook command is neither beside the Python package nor on PATH; install tfhook again", 127)
    return found


def output(arguments: Sequence[str], seconds: Optional[float] = None, empty: bool = False) -> str:
    """Returns what the command prints; `empty`: that may be nothing. Raises its message if it fails or takes longer than `seconds`."""
    try:
        done = subprocess.run([find(), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=seconds)
    except subprocess.TimeoutExpired:
        raise TfhookError("tfhook %s took longer than %g s" % (arguments[0], seconds or 0), 124) from None
    if done.returncode not in PRINTED or (done.returncode and not done.stdout and not empty):
        said = done.stderr.decode("utf-8", "replace").strip()
        raise TfhookError(said or "tfhook %s ended with status %d" % (arguments[0], done.returncode), done.returncode)
    return done.stdout.decode("utf-8", "replace")
