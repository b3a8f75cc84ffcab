"""A lake: a data set of Parquet files with the runs of a fleet. `tfhook collect` appends to it, and any engine can read it.

    LAKE/runs/day=2026-11-16/<batch>.parquet      a row for each state of a run
    LAKE/losses/day=2026-11-16/<batch>.parquet    a row for each cause, and for each line of the program, that a run lost time to
    LAKE/ranks/day=2026-11-16/<batch>.parquet     a row for each rank of a run

The day is that of the run's begin (UTC). A file is written once, under a unique name, and never changed. `run` and `batch`
together identify a state of a run. A batch's rows of `runs` are written after those of the other tables, and rows without a row of
`runs` do not count. So any number of collectors may write at the same time, and one that is killed leaves nothing that is read.

LAKE is a folder, or a URL that pyarrow knows (s3://bucket/folder?endpoint_override=...).
"""
from __future__ import annotations

import concurrent.futures
import datetime
import importlib
import os
import posixpath
import re
import uuid
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Tuple

from .command import TfhookError

#: The schema's version. It stays the same when columns are added, and increases if the meaning of a column changes.
SCHEMA = 1
KEY = b"tfhook.lake"
NAMES = "map<string, string>"
#: The columns of each table, with Arrow's names of their types.
TABLES: Mapping[str, Mapping[str, str]] = {
    "losses": {
        "run": "string", "batch": "string", "kind": "string", "cause": "string", "file": "string", "line": "int32",
        "function": "string", "blocked_gpu_s": "double", "gain_gpu_s": "double", "gain_low_gpu_s": "double",
        "gain_high_gpu_s": "double",
    },
    "ranks": {
        "run": "string", "batch": "string", "rank": "int32", "host": "string", "steps": "int64", "step_s": "double",
        "own_s": "double", "class": "string", "cause": "string", "straggler": "bool",
    },
    # Written last.
    "runs": {
        "run": "string", "batch": "string", "collected": "timestamp", "source": "string", "content": "string", "job": "string",
        "attempt": "int32", "cluster": "string", "owner": "string", "team": "string", "image": "string", "hardware": "string",
        "labels": NAMES, "framework": "string", "software": "string", "versions": NAMES, "settings": "string", "ranks": "int32",
        "seen": "int32", "hosts": "int32", "gpus": "int32", "start_utc": "timestamp", "wall_s": "double", "gpu_s": "double",
        "steps": "int64", "step_median_s": "double", "step_p95_s": "double", "ended": "string", "code": "int32", "class": "string",
        "cause": "string", "share": "double", "confidence": "string", "tier": "string", "lost_events": "int64",
        "unattributed": "double", "path": "string",
    },
}
Row = Dict[str, Any]


def need(module: str, package: str) -> Any:
    """Imports a module. If it is missing, raises an error that says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise TfhookError("this needs %s: python3 -m pip install '%s'" % (module.split(".")[0], package), 125) from None


def arrow(module: str) -> Any:
    return need(module, "pyarrow>=14")


def schema(table: str) -> Any:
    pa = arrow("pyarrow")
    kinds = {"timestamp": pa.timestamp("us", tz="UTC"), NAMES: pa.map_(pa.string(), pa.string()), "bool": pa.bool_(), "double": pa.float64()}
    fields = [pa.field(name, kinds.get(kind) or getattr(pa, kind)()) for name, kind in TABLES[table].items()]
    return pa.schema(fields, metadata={KEY: str(SCHEMA).encode()})


class Lake:
    """A lake, which may not exist yet."""

    def __init__(self, place: str) -> None:
        fs = arrow("pyarrow.fs")
        self.place = place
        #: For messages: without credentials.
        self.name = re.sub(r"//[^/@]*@", "//", place)
        self.is_url = "://" in place
        try:
            if self.is_url:
                self.files, self.root = fs.FileSystem.from_uri(place)
            else:
                self.files, self.root = fs.LocalFileSystem(), os.path.abspath(place)
        except (OSError, ValueError) as error:
            raise TfhookError("%s: %s" % (self.name, error), 2) from None
        self._selector = fs.FileSelector
        #: In an object store, an object appears only when it is complete. A file gets its name only then.
        self.is_store = self.files.type_name in ("s3", "gcs", "abfs")

    def days(self, table: str) -> Iterator[Tuple[datetime.date, str]]:
        """The days of a table, with their folders."""
        for info in self._list(posixpath.join(self.root, table)):
            name = posixpath.basename(info.path)
            if name.startswith("day="):
                try:
                    yield datetime.date.fromisoformat(name[len("day="):]), info.path
                except ValueError:
                    pass

    def parts(self, table: str, first: datetime.date, last: datetime.date) -> List[str]:
        """The files of a table for a range of days, in any order."""
        return [info.path for day, folder in self.days(table) if first <= day <= last for info in self._list(folder)
                if info.path.endswith(".parquet")]

    def _list(self, folder: str) -> Any:
        return self.files.get_file_info(self._selector(folder, allow_not_found=True))

    def check(self, paths: Sequence[str]) -> None:
        """Raises an error for a file that a newer version wrote. Collectors of several versions may write to a lake, so each is looked at."""
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            for _ in pool.map(self._check, paths):
                pass

    def _check(self, path: str) -> None:
        try:
            metadata = arrow("pyarrow.parquet").read_schema(path, filesystem=self.files).metadata or {}
        except (ValueError, OSError) as error:  # Arrow's errors are subclasses of these
            raise TfhookError("%s: %s" % (path, " ".join(str(error).split())), 3) from None
        number = metadata.get(KEY, b"")
        if not number.isdigit():
            raise TfhookError("%s: not a file that `tfhook collect` wrote" % path, 3)
        if int(number) > SCHEMA:
            raise TfhookError("%s: a newer tfhook wrote it (schema %s); install that one" % (path, number.decode()), 3)

    def known(self, day: datetime.date) -> Iterator[Tuple[str, str, str]]:
        """(run, source, content) of all states of the runs that began on a day."""
        pq = arrow("pyarrow.parquet")
        parts = self.parts("runs", day, day)
        self.check(parts)
        for path in parts:
            table = pq.read_table(path, filesystem=self.files, columns=["run", "source", "content"], partitioning=None)
            yield from zip(*(table[name].to_pylist() for name in ("run", "source", "content")))

    def append(self, rows: Mapping[str, Sequence[Row]]) -> None:
        """Appends runs with all their rows as one batch. Each row also has a `day`."""
        batch = uuid.uuid4().hex
        for table in TABLES:
            by_day: Dict[datetime.date, List[Row]] = {}
            for row in rows.get(table, ()):
                by_day.setdefault(row["day"], []).append(dict(row, batch=batch))
            for day, some in by_day.items():
                self._write(posixpath.join(self.root, table, "day=%s" % day), batch, table, some)

    def _write(self, folder: str, batch: str, table: str, rows: Sequence[Row]) -> None:
        pa = arrow("pyarrow")
        kind = schema(table)
        data = pa.table({name: pa.array([row.get(name) for row in rows], kind.field(name).type) for name in kind.names}, schema=kind)
        whole = posixpath.join(folder, batch + ".parquet")
        # Readers of Parquet ignore names that begin with a dot.
        part = whole if self.is_store else posixpath.join(folder, ".%s.new" % batch)
        if not self.is_store:
            self.files.create_dir(folder, recursive=True)
        sink = pa.BufferOutputStream()
        arrow("pyarrow.parquet").write_table(data, sink, compression="zstd")
        try:
            with self.files.open_output_stream(part) as out:
                out.write(sink.getvalue())
            if part != whole:
                if not self.is_url:
                    _sync(part)
                self.files.move(part, whole)
        except OSError:
            if part != whole and self.files.get_file_info(part).is_file:
                self.files.delete_file(part)
            raise


def _sync(path: str) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
