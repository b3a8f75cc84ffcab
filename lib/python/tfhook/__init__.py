"""tfhook in Python: marks that a training program may set, and recordings as objects.

    import tfhook

    for batch in dataset:                      # in the job: see tfhook.marks
        with tfhook.step_scope("train"):
            ...

In a process without the preloaded recorder, marks do nothing. `python -m tfhook` is the command.
"""
from .command import TfhookError
from .marks import (active, flush, pause, range_pop, range_push, range_scope, resume, step, step_begin, step_end,
                    step_scope)

__all__ = [
    "TfhookError", "active", "flush", "pause", "range_pop", "range_push", "range_scope", "resume", "step", "step_begin",
    "step_end", "step_scope",
]
