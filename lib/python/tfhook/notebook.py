"""`%tfhook [DIR]` shows the page of a run, by default the newest one, in a notebook."""
from __future__ import annotations

import html
import importlib
from typing import Any

from .run import page


def show(line: str) -> Any:
    """Shows the page in a sandboxed frame, so its scripts reach neither the notebook nor a network."""
    display = importlib.import_module("IPython.display")
    path = line.strip().strip("'\"")
    return display.HTML('<div><iframe sandbox="allow-scripts" style="width: 100%%; height: 800px; border: 0" srcdoc="%s"></iframe></div>'
                % html.escape(page(path) if path else page()))
