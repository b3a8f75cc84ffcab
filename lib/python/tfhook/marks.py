"""Marks that a Python program may set for tfhook: steps, ranges, pause and resume.

In a run without the preloaded library every function does nothing.

    import tfhook

    for batch in dataset:
        with tfhook.step_scope("train"):
            with tfhook.range_scope("loss"):
                ...

or call tfhook.step() once per turn of the loop. Marks belong to the calling thread.
"""
from __future__ import annotations

import contextlib
import ctypes
from typing import Any, Callable, Iterator, Optional

__all__ = [
    "active", "flush", "pause", "range_pop", "range_push", "range_scope", "resume", "step",
    "step_begin", "step_end", "step_scope",
]


def _find(library: ctypes.CDLL, name: str, *argtypes: Any, restype: Any = None) -> Callable[..., Any]:
    try:
        function = getattr(library, name)
    except AttributeError:
        return lambda *args: 0 if restype else None
    function.argtypes = argtypes
    function.restype = restype
    found: Callable[..., Any] = function
    return found


# PyDLL keeps the interpreter lock: these calls take less time than giving it up. Flush waits, so it does give it up.
_library = ctypes.PyDLL(None)
_step_begin = _find(_library, "tfhook_step_begin", ctypes.c_char_p)
_range_push = _find(_library, "tfhook_range_push", ctypes.c_char_p)
_flush = _find(ctypes.CDLL(None), "tfhook_flush", ctypes.c_uint, restype=ctypes.c_int)
_active = _find(_library, "tfhook_active", restype=ctypes.c_int)

#: A step ends that step_begin began.
step_end: Callable[[], None] = _find(_library, "tfhook_step_end")
#: One step lies between this call and the next.
step: Callable[[], None] = _find(_library, "tfhook_step")
#: The innermost range ends.
range_pop: Callable[[], None] = _find(_library, "tfhook_range_pop")
#: Recording stops until as many resumes as pauses were called.
pause: Callable[[], None] = _find(_library, "tfhook_pause")
resume: Callable[[], None] = _find(_library, "tfhook_resume")


def step_begin(name: Optional[str] = None) -> None:
    """A step begins; the name tells kinds of steps apart ("train", "eval")."""
    _step_begin(name.encode() if name is not None else None)


def range_push(name: str) -> None:
    """A named range begins; ranges nest."""
    _range_push(name.encode())


def flush(seconds: float = 2.0) -> int:
    """Writes what is recorded so far, waiting at most so long. 0, or a negative errno."""
    return int(_flush(int(seconds * 1000)))


def active() -> bool:
    """True if the library is loaded and recording now."""
    return bool(_active())


@contextlib.contextmanager
def step_scope(name: Optional[str] = None) -> Iterator[None]:
    """The block is one step; also usable as a decorator."""
    step_begin(name)
    try:
        yield
    finally:
        step_end()


@contextlib.contextmanager
def range_scope(name: str) -> Iterator[None]:
    """The block is a named range; also usable as a decorator."""
    range_push(name)
    try:
        yield
    finally:
        range_pop()
