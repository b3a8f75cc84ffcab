"""Appends runs to a lake (tfhook.lake).

usage: python -m tfhook.collect -o LAKE [--labels NAME=VALUE,...] PATH...     (or `tfhook collect`)

PATH is a run directory, a digest, another profiler's trace, or a folder that is searched for run directories.
"""
from __future__ import annotations

import argparse
import concurrent.futures
import datetime
import hashlib
import json
import os
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from . import facts as facts_of
from .command import TfhookError, output
from .facts import Facts, time_of
from .lake import Lake, Row, arrow
from .text import finish, say, shown

DEEPEST = 4      # levels of folders below PATH that are searched for runs
TOGETHER = 500   # runs in a batch
SECONDS = 3600.0  # limit for judging a run
FRAMEWORKS = ("PyTorch", "JAX", "TensorFlow")
#: Parts of a run that are lost time besides steps, by their kind in the report's tree.
BESIDE = {"before": "start-up", "start-up": "start-up", "skip": "start-up", "after": "shut-down"}


def is_run(names: Sequence[str]) -> bool:
    return "run.json" in names or any(name.endswith(".tft") for name in names)


def find(path: str) -> Iterator[str]:
    if not os.path.isdir(path):
        yield path
        return
    top = os.path.abspath(path)
    for folder, names, files in os.walk(top):
        names.sort()
        if folder[len(top):].count("/") >= DEEPEST or is_run(files):
            names.clear()
        if is_run(files):
            yield folder


def fingerprint(path: str, labels: Mapping[str, str]) -> str:
    """A hash that changes when a file of the run changes."""
    files = [path] if not os.path.isdir(path) else [entry.path for entry in os.scandir(path) if not entry.name.endswith(".new")]
    seen = []
    for file in sorted(files):
        status = os.stat(file)
        seen.append([os.path.basename(file), status.st_size, status.st_mtime_ns])
    return hashlib.sha256(json.dumps([seen, sorted(labels.items())]).encode()).hexdigest()[:32]


def _times(value: Optional[float], by: Optional[float]) -> Optional[float]:
    return None if value is None or by is None else value * by


def _versions(report: Mapping[str, Any]) -> Dict[str, str]:
    return {one["name"]: one["version"] for one in report.get("software", ()) if one["version"] not in ("", "?")}


def _gain(what: Mapping[str, Any], mean: float, steps: int) -> Tuple[Optional[float], Optional[float], Optional[float]]:
    """What removing something would save, in seconds of the run: the prediction, at least, at best."""
    def saved(step: Optional[float]) -> Optional[float]:
        return None if step is None else max(mean - step, 0.0) * steps
    high = saved(what["low_s"])
    return saved(what["step_s"]), saved(what["high_s"]), what.get("run_saved_s") if high is None else high


def losses(report: Mapping[str, Any], gpus: int) -> Iterator[Row]:
    """The table of lost time, in GPU seconds of the whole run. Rows of kind `cause` add up; rows of kind `line` are parts of them."""
    beside: Dict[str, float] = {}
    for part in report["tree"]["parts"] if report.get("tree") else ():
        if part["kind"] in BESIDE and part["wall_s"]:
            beside[BESIDE[part["kind"]]] = beside.get(BESIDE[part["kind"]], 0.0) + part["wall_s"]
    for cause, seconds in beside.items():
        yield {"kind": "cause", "cause": cause, "blocked_gpu_s": seconds * gpus}
    steps = report["steps"]
    if not steps["count"] or not steps["total_s"]:
        return
    mean, n = steps["total_s"] / steps["count"], steps["total"]
    causes = [one for one in report["causes"] if one["part"] != "compute"]
    without = {what["remove"]: what for what in report["whatif"]}
    for one in causes:
        row = {"kind": "cause", "cause": one["cause"], "blocked_gpu_s": one["s_per_step"] * n * gpus}
        what = without.get(one["part"])
        # The prediction is for the whole part, so each cause gets its share.
        of_part = sum(other["s_per_step"] for other in causes if other["part"] == one["part"])
        if what and of_part:
            share = one["s_per_step"] / of_part * gpus
            row.update(zip(("gain_gpu_s", "gain_low_gpu_s", "gain_high_gpu_s"),
                           (_times(gain, share) for gain in _gain(what, mean, n))))
        yield row
    verdict, found = report["verdict"], False
    for place in report.get("whatif_places", ()):
        gains = (_times(gain, gpus) for gain in _gain(place, mean, n))
        yield dict(zip(("gain_gpu_s", "gain_low_gpu_s", "gain_high_gpu_s"), gains), kind="line", file=place["file"],
                   line=place["line"], function=place["function"], cause=verdict["cause"] if place["verdict"] else None,
                   blocked_gpu_s=_times(place["s_per_step"], n * gpus))
        found = found or place["verdict"]
    place = verdict.get("place")
    if place and not found:
        yield {"kind": "line", "file": place["file"], "line": place["line"], "function": place["function"],
               "cause": verdict["cause"], "blocked_gpu_s": _times(place["s_per_step"], n * gpus)}


def ranks(report: Mapping[str, Any]) -> Iterator[Row]:
    """The table of ranks. own_s: a step without the rank's waits for others."""
    for rank in report.get("ranks", ()):
        step, waits = rank["step_s"], rank.get("waits_for_others_s")
        yield {"rank": rank["rank"], "host": rank.get("host"), "steps": rank.get("steps"), "step_s": step,
               "own_s": None if step is None or waits is None else step - waits, "class": rank["class"],
               "cause": rank["cause"], "straggler": rank["straggler"]}
    steps = report["steps"]
    if not report.get("ranks") and steps["count"] and steps["total_s"]:
        mean = steps["total_s"] / steps["count"]
        yield {"rank": 0, "host": report["run"]["host"], "steps": steps["count"], "step_s": mean, "own_s": mean,
               "class": report["verdict"]["class"], "cause": report["verdict"]["cause"], "straggler": False}


def of_hosts(path: str) -> Dict[str, Any]:
    """The report of a job whose hosts have digests of their own. Its causes are those of the rank whose own step takes longest,
    because all others wait for that rank."""
    told = json.loads(output(["report", "--ranks", "--json", path], SECONDS))
    late = max(told["ranks"], key=lambda rank: rank["own_s"] or 0.0)
    slow = {found["rank"] for found in told["findings"] if found["what"] == "slow-rank"}
    digest = late["host"] + facts_of.OF_HOST
    if digest not in facts_of.digests_of_hosts(path):
        raise TfhookError("%s: no %s in it" % (path, digest), 3)
    report: Dict[str, Any] = json.loads(output(["report", "--json", os.path.join(path, digest)], SECONDS))
    report["generations"] = told.get("generations")
    report["world"].update(ranks=told["world"], seen=len(told["ranks"]), hosts=len({rank["host"] for rank in told["ranks"]}))
    report["ranks"] = [{**rank, "waits_for_others_s": None if rank["own_s"] is None else rank["step_s"] - rank["own_s"], "class": None,
                        "cause": None, "straggler": rank["rank"] in slow} for rank in told["ranks"]]
    return report


def gpu_seconds(report: Mapping[str, Any], gpus: int) -> Optional[float]:
    """An elastic job holds the GPUs of one start of its ranks until the next start begins, often with fewer."""
    until = report["run"]["wall_s"]
    if until is None:
        return None
    starts = report.get("generations") or [{"ranks": gpus}]
    total = 0.0
    for at, one in reversed(list(enumerate(starts))):
        begin = one["begin_s"] if at else 0.0
        total += one["ranks"] * max(until - begin, 0.0)
        until = begin
    return total


def rows_of(path: str, facts: Facts, labels: Mapping[str, str]) -> Dict[str, List[Row]]:
    """The rows of a run in each table, from its report."""
    report = of_hosts(path) if facts_of.digests_of_hosts(path) else json.loads(output(["report", "--json", path], SECONDS))
    told, world, steps, verdict, end = (report[key] for key in ("run", "world", "steps", "verdict", "end"))
    if not facts.command:
        facts = Facts(told["host"] or "", told["start_utc"] or "", os.path.abspath(path), tuple(told["command"]))
    began = time_of(facts.start_utc)
    if not began:
        raise TfhookError("%s: the time of the run is unknown" % path, 3)
    gpus = max(world["ranks"], world["seen"], 1)
    versions = _versions(report)
    wall = told["wall_s"]
    run = dict(
        facts_of.attributes(facts, path, labels), framework=next((name for name in FRAMEWORKS if name in versions), None),
        software=", ".join("%s %s" % one for one in sorted(versions.items())) or None, versions=sorted(versions.items()),
        ranks=world["ranks"], seen=world["seen"], hosts=world["hosts"], gpus=gpus, start_utc=began, wall_s=wall,
        gpu_s=gpu_seconds(report, gpus), steps=steps["total"], step_median_s=steps["median_s"], step_p95_s=steps["p95_s"],
        ended=end["how"], code=end["code"] if end["how"] == "exit" else end["signal"], cause=verdict["cause"],
        share=verdict["share"], confidence=verdict["confidence"], tier=verdict["tier"], lost_events=report["quality"]["dropped"],
        unattributed=report["quality"]["unattributed_share"])
    run["class"] = verdict["class"]
    tables = {"losses": list(losses(report, gpus)), "ranks": list(ranks(report)), "runs": [run]}
    run["content"] = hashlib.sha256(json.dumps(tables, sort_keys=True, default=str).encode()).hexdigest()[:32]
    run.update(path=os.path.abspath(path), collected=datetime.datetime.now(datetime.timezone.utc))
    for rows in tables.values():
        for row in rows:
            row.update(run=facts.run, day=began.date())
    return tables


class Collector:
    """Collects runs and appends them to a lake in batches."""

    def __init__(self, lake: Lake, labels: Mapping[str, str]) -> None:
        self.lake, self.labels = lake, labels
        self.added = self.known = self.skipped = 0
        self._sources: Set[Tuple[str, str]] = set()
        self._contents: Set[Tuple[str, str]] = set()
        self._days: Set[datetime.date] = set()
        self._waiting: Dict[str, List[Row]] = {}

    def _look_up(self, day: datetime.date) -> None:
        if day not in self._days:
            self._days.add(day)
            for run, source, content in self.lake.known(day):
                self._sources.add((run, source))
                self._contents.add((run, content))

    def first_look(self, path: str) -> Optional[Tuple[str, Facts, str]]:
        """What has to be judged; None if the lake already has the run in this state."""
        facts, source = facts_of.read(path), fingerprint(path, self.labels)
        if facts.day:
            self._look_up(facts.day)
        if (facts.run, source) not in self._sources:
            return path, facts, source
        self.known += 1
        return None

    def take(self, tables: Dict[str, List[Row]], source: str) -> None:
        run = tables["runs"][0]
        self._look_up(run["day"])
        if (run["run"], run["content"]) in self._contents:
            self.known += 1
            return
        self._contents.add((run["run"], run["content"]))
        run["source"] = source
        for table, rows in tables.items():
            self._waiting.setdefault(table, []).extend(rows)
        self.added += 1
        if len(self._waiting["runs"]) >= TOGETHER:
            self.write()

    def write(self) -> None:
        if self._waiting:
            waiting, self._waiting = self._waiting, {}
            self.lake.append(waiting)

    def skip(self, path: str, error: Exception) -> None:
        text = " ".join(str(error).split())
        text = text[len("tfhook: "):] if text.startswith("tfhook: ") else text
        say("collect: skipped: %s" % (text if path in text else "%s: %s" % (path, text)))
        self.skipped += 1

    def collect(self, paths: Sequence[str], jobs: int) -> None:
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            judged: Dict[concurrent.futures.Future[Dict[str, List[Row]]], Tuple[str, str]] = {}
            for path in (found for given in paths for found in find(given)):
                try:
                    todo = self.first_look(path)
                except OSError as error:
                    self.skip(path, error)
                    continue
                except TfhookError as error:
                    if error.code == 125:
                        raise
                    self.skip(path, error)
                    continue
                if todo:
                    judged[pool.submit(rows_of, todo[0], todo[1], self.labels)] = (path, todo[2])
                if len(judged) >= 4 * jobs:
                    self._finish(judged, concurrent.futures.FIRST_COMPLETED)
            self._finish(judged, concurrent.futures.ALL_COMPLETED)
        self.write()

    def _finish(self, judged: Dict[concurrent.futures.Future[Dict[str, List[Row]]], Tuple[str, str]], when: str) -> None:
        done, _ = concurrent.futures.wait(judged, return_when=when)
        for future in done:
            path, source = judged.pop(future)
            try:
                tables = future.result()
            except (TfhookError, ValueError, KeyError, TypeError) as error:
                self.skip(path, error)
                continue
            self.take(tables, source)


def main() -> int:
    parser = argparse.ArgumentParser("tfhook collect", allow_abbrev=False)
    parser.add_argument("-o", "--output", metavar="LAKE", required=True)
    parser.add_argument("--labels", default="", metavar="NAME=VALUE,...")
    parser.add_argument("path", nargs="+")
    args = parser.parse_args()
    try:
        arrow("pyarrow.parquet")
        labels = facts_of.labels_of(args.labels)
        if args.labels and len(labels) != args.labels.count(",") + 1:
            raise TfhookError("collect: invalid --labels '%s': expected name=value,name=value" % args.labels, 2)
        lake = Lake(args.output)
        collector = Collector(lake, labels)
        collector.collect(args.path, min(8, os.cpu_count() or 1))
    except TfhookError as error:
        say(str(error))
        return error.code
    except OSError as error:
        say("collect: %s" % error)
        return 3
    print(shown("%s: %d added, %d already there, %d skipped" % (lake.name, collector.added, collector.known, collector.skipped)))
    if not collector.added + collector.known:
        return 3 if collector.skipped else 5
    return 4 if collector.skipped else 0


if __name__ == "__main__":
    finish(main())
