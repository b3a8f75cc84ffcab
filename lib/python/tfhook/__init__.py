"""tfhook in Python: recordings as objects, and marks that a training program may set.

    import tfhook

    run = tfhook.load("tfhook-train-20261125T120000Z-1a2b")   # see tfhook.run
    print(run.verdict.cls, run.verdict.cause, run.verdict.place)
    slowest = max(run.steps, key=lambda step: step.dur_s)

    for batch in dataset:                                     # in the job: see tfhook.marks
        with tfhook.step_scope("train"):
            ...

Without the preloaded recorder, marks do nothing. `python -m tfhook` runs the command. In a notebook, `%load_ext tfhook` defines
`%tfhook DIR`, which shows the page of a run.
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .marks import (active, flush, pause, range_pop, range_push, range_scope, resume, step, step_begin, step_end,
                    step_scope)

if TYPE_CHECKING:
    from .command import TfhookError
    from .run import Run, load

__all__ = [
    "Run", "TfhookError", "active", "flush", "load", "pause", "range_pop", "range_push", "range_scope", "resume", "step",
    "step_begin", "step_end", "step_scope",
]
# Imported on first use, so that a job that only sets marks does not pay for them.
_LATER = {"Run": ".run", "TfhookError": ".command", "load": ".run"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError("module 'tfhook' has no attribute %r" % name)
    return getattr(importlib.import_module(_LATER[name], __name__), name)


def load_ipython_extension(shell: Any) -> None:
    """Called by `%load_ext tfhook`."""
    from .notebook import show
    shell.register_magic_function(show, "line", "tfhook")
