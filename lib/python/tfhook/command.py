"""The `tfhook` command that belongs to this package, and how its results reach Python.

Everything is asked of the command, in a process of its own: it has the judge, which libtft does not; its JSON has a schema that
only grows; and a recording that is damaged beyond its checks cannot end the interpreter.
"""
from __future__ import annotations

import os
import shutil
import subprocess
from typing import Optional, Sequence

#: Exit codes of the command with which it still has printed its result: fine, incomplete, nothing to analyse.
PRINTED = (0, 4, 5)


class TfhookError(Exception):
    """What the command said, and its exit code (2 usage, 3 unreadable, 127 not found, ...)."""

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
    """What the command prints, which may be nothing if `empty`; its message as an exception where it failed, or took longer."""
    try:
        done = subprocess.run([find(), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=seconds)
    except subprocess.TimeoutExpired:
        raise TfhookError("tfhook %s took longer than %g s" % (arguments[0], seconds or 0), 124) from None
    if done.returncode not in PRINTED or (done.returncode and not done.stdout and not empty):
        said = done.stderr.decode("utf-8", "replace").strip()
        raise TfhookError(said or "tfhook %s ended with status %d" % (arguments[0], done.returncode), done.returncode)
    return done.stdout.decode("utf-8", "replace")
