"""`%tfhook [DIR]` shows the page of a run, or of the newest one here, in a notebook."""
from __future__ import annotations

import html
import importlib
from typing import Any

from .run import page


def show(line: str) -> Any:
    """The page in a frame of its own, whose scripts reach neither the notebook nor a network."""
    display = importlib.import_module("IPython.display")
    path = line.strip().strip("'\"")
    return display.HTML('<div><iframe sandbox="allow-scripts" style="width: 100%%; height: 800px; border: 0" srcdoc="%s"></iframe></div>'
                % html.escape(page(path) if path else page()))
