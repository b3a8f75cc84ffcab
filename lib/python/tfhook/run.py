"""A recording as objects: the contents of `tfhook report --json` and `--steps --json`.

Times are in seconds, shares are between 0 and 1, and None means unknown. Names, paths and texts may come from the
recorded program: treat them as data.
"""
from __future__ import annotations

import dataclasses
import functools
import importlib
import json
import os
import tempfile
from typing import Any, Dict, Mapping, Optional, Tuple, Type, TypeVar, Union

from .command import output

__all__ = ["Advice", "Evidence", "Part", "Place", "Rank", "Run", "Step", "StepTimes", "Verdict", "WhatIf", "load"]

T = TypeVar("T")
#: Fields whose name in JSON is a Python keyword.
KEYWORDS = {"cls": "class"}
Evidence = Tuple[str, ...]


def _make(kind: Type[T], data: Mapping[str, Any], **given: Any) -> T:
    """Makes an object from the fields that the JSON object also has. Fields that only a newer command has are ignored."""
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        name = KEYWORDS.get(field.name, field.name)
        if field.name not in given and name in data:
            value = data[name]
            given[field.name] = tuple(value) if isinstance(value, list) else value
    return kind(**given)


@dataclasses.dataclass(frozen=True)
class Place:
    """The line of Python at which most of a cause's time was sampled."""
    file: str
    line: int
    function: str
    s_per_step: Optional[float] = None
    #: Two standard errors of `s_per_step`.
    off_s: Optional[float] = None


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What holds the job back. `cls` is None if the data does not support a class; `missing` then says why."""
    #: "input-bound", "host-bound", ...
    cls: Optional[str]
    #: "input.read", "host.launch", ...
    cause: Optional[str]
    #: Share of the training time.
    share: Optional[float]
    #: "high", "medium" or "low".
    confidence: Optional[str]
    #: The evidence: "A" device times and dependencies, "B" device times, "C" host calls only.
    tier: str
    text: Optional[str]
    evidence: Evidence
    place: Optional[Place]
    missing: Optional[str] = None
    missing_do: Optional[str] = None


@dataclasses.dataclass(frozen=True)
class StepTimes:
    """All training steps together."""
    count: int
    warmup: int
    total: int
    median_s: Optional[float]
    p95_s: Optional[float]
    total_s: Optional[float]


@dataclasses.dataclass(frozen=True)
class Part:
    """A part of the mean step; the shares of all parts add to 1."""
    name: str
    s_per_step: Optional[float]
    share: Optional[float]


@dataclasses.dataclass(frozen=True)
class WhatIf:
    """The predicted step without `remove`: between `low_s` and `high_s`. `step_s` is None if only these bounds are known."""
    remove: str
    step_s: Optional[float]
    low_s: Optional[float]
    high_s: Optional[float]
    speedup: Optional[float]
    ceiling_speedup: Optional[float]
    run_saved_s: Optional[float]


@dataclasses.dataclass(frozen=True)
class Advice:
    """What to do next. `gain` is the greatest possible speed-up factor."""
    finding: str
    evidence: Optional[str]
    gain: Optional[float]
    do: Optional[str]


@dataclasses.dataclass(frozen=True)
class Rank:
    """One rank of a job with several."""
    rank: int
    host: Optional[str]
    critical: bool
    straggler: bool
    cls: Optional[str]
    cause: Optional[str]
    step_s: Optional[float]


@dataclasses.dataclass(frozen=True)
class Step:
    """One step of one rank."""
    rank: Optional[int]
    index: int
    #: Since the start of the run.
    start_s: float
    dur_s: float
    #: "train", "eval", "checkpoint", ...; None if unknown.
    segment: Optional[str]
    cls: Optional[str]
    cause: Optional[str]
    #: Seconds by part.
    breakdown: Mapping[str, float]


@dataclasses.dataclass(frozen=True)
class Run:
    """A recorded run, or another profiler's trace."""
    path: str
    command: Evidence
    host: Optional[str]
    wall_s: Optional[float]
    #: RFC 3339.
    start_utc: Optional[str]
    verdict: Verdict
    step_times: StepTimes
    breakdown: Tuple[Part, ...]
    what_if: Tuple[WhatIf, ...]
    advice: Tuple[Advice, ...]
    ranks: Tuple[Rank, ...]
    #: The whole of `tfhook report --json` (docs/report.schema.json).
    json: Mapping[str, Any] = dataclasses.field(repr=False, compare=False)

    @functools.cached_property
    def steps(self) -> Tuple[Step, ...]:
        """All steps in order. Read on first access."""
        lines = output(["report", "--steps", "--json", self.path], empty=True).splitlines()
        return tuple(_make(Step, json.loads(line)) for line in lines)

    def columns(self) -> Dict[str, list[Any]]:
        """The steps as columns, with one more column for each part of the breakdown."""
        parts = sorted({part for step in self.steps for part in step.breakdown})
        names = [field.name for field in dataclasses.fields(Step) if field.name != "breakdown"]
        table: Dict[str, list[Any]] = {name: [getattr(step, name) for step in self.steps] for name in names}
        table.update((part + "_s", [step.breakdown.get(part, 0.0) for step in self.steps]) for part in parts)
        return table

    def to_pandas(self) -> Any:
        """The steps as a pandas DataFrame. Needs pandas."""
        return importlib.import_module("pandas").DataFrame(self.columns())

    def to_arrow(self) -> Any:
        """The steps as a pyarrow Table. Needs pyarrow."""
        return importlib.import_module("pyarrow").table(self.columns())

    def page(self) -> str:
        """The HTML page of `tfhook report --html`, which needs no network."""
        return page(self.path)


def page(*path: str) -> str:
    """The HTML page of a run: of the newest one below the current folder if no path is given."""
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "page.html")
        output(["report", "--html", file, *map(os.path.abspath, path)], empty=True)
        with open(file, encoding="utf-8") as f:
            return f.read()


def load(path: Union[str, os.PathLike[str]]) -> Run:
    """Reads a run directory, a folder of .tft files, or another profiler's trace. Raises TfhookError if it cannot be read. A run
    without steps is not an error; its verdict says what is missing."""
    name = os.path.abspath(path)
    text = output(["report", "--json", name])
    data = json.loads(text)
    place = data["verdict"].get("place")
    return _make(
        Run, data["run"], path=name, json=data, step_times=_make(StepTimes, data["steps"]),
        verdict=_make(Verdict, data["verdict"], place=_make(Place, place) if place else None),
        breakdown=tuple(_make(Part, part) for part in data["breakdown"]),
        what_if=tuple(_make(WhatIf, what) for what in data["whatif"]),
        advice=tuple(_make(Advice, advice) for advice in data["advice"]),
        ranks=tuple(_make(Rank, rank) for rank in data.get("ranks", ())))
