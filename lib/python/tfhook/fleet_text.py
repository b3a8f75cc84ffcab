"""The text output of `tfhook fleet`, in 80 columns."""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence

from .text import shown

WIDTH = 80
Row = Mapping[str, Any]


def hours(value: Optional[float]) -> str:
    if value is None:
        return "n/a"
    return "{:,.0f}".format(value) if abs(value) >= 99.5 else "%.3g" % value


def percent(value: Optional[float]) -> str:
    return "n/a" if value is None else "%.0f %%" % (100 * value) if abs(value) >= 0.0995 else "%.1f %%" % (100 * value)


def share(part: Optional[float], whole: Optional[float]) -> str:
    return percent(part / whole) if part is not None and whole else "n/a"


def gain(low: Optional[float], high: Optional[float]) -> str:
    if high is None:
        return "n/a"
    return "at best " + hours(high) if not low else "%s to %s" % (hours(low), hours(high))


def named(text: str) -> str:
    return shown(text) or "n/a"


def fit(text: str, width: int) -> str:
    """Shortens a text at its beginning: the end of a path is more informative."""
    text = named(text)
    return text if len(text) <= width else "..." + text[3 - width:]


def place(row: Row) -> str:
    if not row.get("file"):
        return "n/a"
    return "%s:%s" % (str(row["file"]).rsplit("/", 1)[-1], row["line"])


def table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> List[str]:
    """Formats a table. Each row has texts, then a number for each of `heads`. The texts share the width that the numbers leave."""
    if not rows:
        return []
    left = len(rows[0]) - len(heads)
    widths = [max(len(head), *(len(cells[left + i]) for cells in rows)) for i, head in enumerate(heads)]

    def numbers(cells: Sequence[str]) -> str:
        return "".join("  %*s" % (width, cell) for width, cell in zip(widths, cells))
    room = WIDTH - len(numbers(heads)) - 2 * left
    wanted = [max(len(named(cells[i])) for cells in rows) for i in range(left)]
    while sum(wanted) > room and max(wanted) > 8:
        wanted[wanted.index(max(wanted))] -= 1
    wanted[-1] += max(room - sum(wanted), 0)
    lines = ["  " + "  ".join("%-*s" % (width, fit(cell, width)) for width, cell in zip(wanted, cells)) + numbers(cells[left:])
             for cells in rows]
    return ["", title.ljust(WIDTH - len(numbers(heads))) + numbers(heads), *lines]


def overview(lake: str, total: Row) -> List[str]:
    used = total["gpu_h"]
    lines = ["%s   %s to %s" % (fit(lake, 54), total["first_day"], total["last_day"]), "",
             "GPU HOURS  %s" % hours(used),
             "  runs     %s   of jobs with %s names" % (hours(total["runs"]), hours(total["jobs"])),
             "  judged   %s  %s" % (hours(total["judged_gpu_h"]), share(total["judged_gpu_h"], used)),
             "  lost     %s  %s   to the causes below" % (hours(total["lost_gpu_h"]), share(total["lost_gpu_h"], used))]
    if total["failed_runs"]:
        lines.append("  failed   %s  %s   in runs that ended with an error (%s)" % (
            hours(total["failed_gpu_h"]), share(total["failed_gpu_h"], used), hours(total["failed_runs"])))
    return lines


class Answer(NamedTuple):
    """A table: of each row first the texts, then a number for each of `heads`."""
    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


def by(title: str, column: str, rows: Sequence[Row]) -> Answer:
    return Answer(title, ["runs", "used", "lost", "share"], [
        [row[column], row["cause"] or "", hours(row["runs"]), hours(row["gpu_h"]), hours(row["lost_gpu_h"]),
         share(row["lost_gpu_h"], row["gpu_h"])] for row in rows])


def changed(row: Row) -> str:
    return "%s -> %s" % (row["old_image"], row["new_image"])


def job(row: Row) -> str:
    return ("%s/%s" % (row["team"], row["job"])).lstrip("/")


def answers(rows: Mapping[str, List[Dict[str, Any]]]) -> List[Answer]:
    """All tables, in the order in which they are shown."""
    total = rows["total"][0]
    return [
        Answer("LOOK AT FIRST, GPU h", ["lost", "gain"], [
            [job(row), row["cause"], place(row), hours(row["lost_gpu_h"]), gain(row["gain_low_h"], row["gain_high_h"])] for row in rows["jobs"]]),
        Answer("LOST BY CAUSE, GPU h", ["lost", "share", "jobs", "gain without it"], [
            [row["cause"], hours(row["lost_gpu_h"]), share(row["lost_gpu_h"], total["gpu_h"]), hours(row["jobs"]),
             gain(row["gain_low_h"], row["gain_high_h"])] for row in rows["causes"]]),
        by("TEAMS, GPU h", "team", rows["teams"]),
        by("FRAMEWORKS, GPU h", "framework", rows["frameworks"]),
        by("IMAGES, GPU h", "image", rows["images"]),
        Answer("LINES, GPU h", ["jobs", "lost", "gain"], [
            [place(row), row["function"] or "", hours(row["jobs"]), hours(row["lost_gpu_h"]), gain(row["gain_low_h"], row["gain_high_h"])]
            for row in rows["lines"]]),
        Answer("SLOWER WITH AN IMAGE", ["jobs", "slower", "+-", "GPU h lost"], [
            [changed(row), hours(row["jobs"]), percent(row["slower"]), percent(row["plus_minus"]), hours(row["lost_gpu_h"])]
            for row in rows["image_changes"]]),
        Answer("JOBS SLOWER WITH AN IMAGE", ["slower", "95 %", "GPU h lost"], [
            [job(row), changed(row), percent(row["slower"]), "%s to %s" % (percent(row["low"]), percent(row["high"])), hours(row["lost_gpu_h"])]
            for row in rows["regressions"]]),
        Answer("HOSTS SLOW IN EVERY JOB", ["jobs", "runs", "slower", "at least", "GPU h lost"], [
            [row["host"], hours(row["jobs"]), hours(row["runs"]), percent(row["slower"]), percent(row["at_least"]), hours(row["lost_gpu_h"])]
            for row in rows["hosts"]]),
    ]


def nothing(rows: Mapping[str, List[Dict[str, Any]]]) -> List[str]:
    """What was looked for and not found."""
    return [none for name, none in (("image_changes", "no image made jobs slower beyond chance"), ("hosts", "no host is slow in every job"))
            if not rows[name]]


def render(lake: str, rows: Mapping[str, List[Dict[str, Any]]], most: Optional[int]) -> str:
    """Formats the answers, with at most `most` rows of each table; None: all."""
    lines = overview(lake, rows["total"][0])
    for one in answers(rows):
        lines += table(one.title, one.heads, one.rows[:most])
        if most is not None and len(one.rows) > most:
            lines.append("  and %d more (--all)" % (len(one.rows) - most))
    for none in nothing(rows):
        lines += ["", none]
    return "\n".join(lines)
