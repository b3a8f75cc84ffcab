"""Makes text safe for terminals: names from recorded programs cannot move the cursor, reorder a line or hide in it."""
from __future__ import annotations

import os
import sys
import unicodedata
from typing import Any, NoReturn


def shown(text: Any) -> str:
    """Escapes control characters, bidi controls, zero-width characters and invalid UTF-8 as \\x1b, \\u202e, \\xff, like
    base/clean.h in the command."""
    return "".join(_escaped(c) for c in str(text))


def _escaped(c: str) -> str:
    number = ord(c)
    if 0xDC80 <= number <= 0xDCFF:  # a byte that is not UTF-8
        return "\\x%02x" % (number - 0xDC00)
    if unicodedata.category(c)[0] not in "CZ" or c == " ":
        return c
    return ("\\x%02x" if number < 0x100 else "\\u%04x" if number < 0x10000 else "\\U%08x") % number


def say(text: str) -> None:
    """Prints one line on stderr. `text` may contain untrusted strings."""
    print("tfhook: " + shown(text), file=sys.stderr)


def finish(code: int) -> NoReturn:
    """Ends the process. A closed pipe is not an error."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)
