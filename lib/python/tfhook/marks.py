"""Marks that a Python program may set for tfhook: steps, ranges, pause and resume.

Without the preloaded library, the functions do nothing.

    import tfhook

    for batch in dataset:
        with tfhook.step_scope("train"):
            with tfhook.range_scope("loss"):
                ...

or call tfhook.step() once per iteration. Marks belong to the calling thread.
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


# PyDLL keeps the GIL, since these calls take less time than releasing it. flush() waits, so it releases the GIL.
_library = ctypes.PyDLL(None)
_step_begin = _find(_library, "tfhook_step_begin", ctypes.c_char_p)
_range_push = _find(_library, "tfhook_range_push", ctypes.c_char_p)
_flush = _find(ctypes.CDLL(None), "tfhook_flush", ctypes.c_uint, restype=ctypes.c_int)
_active = _find(_library, "tfhook_active", restype=ctypes.c_int)

#: Ends the step that step_begin() began.
step_end: Callable[[], None] = _find(_library, "tfhook_step_end")
#: Marks a boundary: the time between two calls is one step.
step: Callable[[], None] = _find(_library, "tfhook_step")
#: Ends the innermost range.
range_pop: Callable[[], None] = _find(_library, "tfhook_range_pop")
#: Stops recording until resume() was called as often as pause().
pause: Callable[[], None] = _find(_library, "tfhook_pause")
resume: Callable[[], None] = _find(_library, "tfhook_resume")


def step_begin(name: Optional[str] = None) -> None:
    """Begins a step. The name distinguishes kinds of steps ("train", "eval")."""
    _step_begin(name.encode() if name is not None else None)


def range_push(name: str) -> None:
    """Begins a named range. Ranges nest."""
    _range_push(name.encode())


def flush(seconds: float = 2.0) -> int:
    """Writes everything recorded so far and waits for that at most `seconds`. Returns 0 or a negative errno."""
    return int(_flush(int(seconds * 1000)))


def active() -> bool:
    """Whether the library is loaded and recording."""
    return bool(_active())


@contextlib.contextmanager
def step_scope(name: Optional[str] = None) -> Iterator[None]:
    """Makes the block one step. Also usable as a decorator."""
    step_begin(name)
    try:
        yield
    finally:
        step_end()


@contextlib.contextmanager
def range_scope(name: str) -> Iterator[None]:
    """Makes the block a named range. Also usable as a decorator."""
    range_push(name)
    try:
        yield
    finally:
        range_pop()
