"""SQL over the tables of one run, for whoever asks on behalf of somebody else: read-only, with limits, without a way out.

The tables are those of `tfhook export --to sqlite`, made when they are first asked for and kept until another run is, in a folder that
goes with the process. A query may read them and call functions of SQLite, nothing else: no other file, no setting, no extension.
"""
from __future__ import annotations

import os
import sqlite3
import tempfile
import time
from typing import Any, Dict, List, Optional, Tuple
from urllib.parse import quote

from .command import TfhookError, output

MOST_ROWS = 200
SECONDS = 10.0  # for a query
MEMORY = 256 << 20
STEPS = 10000  # of SQLite's machine, between looks at the clock
OWN = "only SELECT of the run's own tables is allowed"
RECURSIVE = 33  # sqlite3 has no name for it before Python 3.11


def allowed(action: int, what: Optional[str], name: Optional[str], _database: Optional[str], _trigger: Optional[str]) -> int:
    """SQLite asks this of each part of a query before it runs."""
    if action == sqlite3.SQLITE_FUNCTION:
        return sqlite3.SQLITE_DENY if name == "load_extension" else sqlite3.SQLITE_OK
    return sqlite3.SQLITE_OK if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, RECURSIVE) else sqlite3.SQLITE_DENY


def newest(path: str) -> float:
    """When a run last changed."""
    if not os.path.isdir(path):
        return os.stat(path).st_mtime
    return max([os.stat(path).st_mtime] + [entry.stat().st_mtime for entry in os.scandir(path)])


class Tables:
    """The tables of the run that was asked for last."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="tfhook-tables-")
        self.file = os.path.join(self.folder.name, "run.sqlite")
        self.of: Optional[Tuple[str, float]] = None

    def open(self, path: str, seconds: float) -> sqlite3.Connection:
        of = (path, newest(path))
        if self.of != of:
            self.of = None
            output(["export", "--to", "sqlite", "--force", "-o", self.file, path], seconds, empty=True)
            self.of = of
        database = sqlite3.connect("file:%s?mode=ro&immutable=1" % quote(self.file), uri=True)
        database.execute("PRAGMA temp_store = MEMORY")
        database.execute("PRAGMA hard_heap_limit = %d" % MEMORY)
        until = time.monotonic() + SECONDS
        database.set_progress_handler(lambda: time.monotonic() > until, STEPS)
        database.set_authorizer(allowed)
        return database

    def ask(self, path: str, query: str, seconds: float) -> Dict[str, Any]:
        """Columns and the first rows, and whether there are more; TfhookError says what is wrong with the query."""
        database = self.open(path, seconds)
        try:
            cursor = database.execute(query)
            rows: List[Any] = cursor.fetchmany(MOST_ROWS + 1)
            columns = [column[0] for column in cursor.description or ()]
        except (sqlite3.Error, sqlite3.Warning, ValueError, MemoryError) as error:
            said = {"interrupted": "the query took longer than %g s" % SECONDS, "not authorized": OWN, "authorization denied": OWN}
            raise TfhookError(said.get(str(error), str(error) or "out of memory"), 2) from error
        finally:
            database.close()
        shown = [[cell.hex() if isinstance(cell, bytes) else cell for cell in row] for row in rows[:MOST_ROWS]]
        return {"columns": columns, "rows": shown, "more": len(rows) > MOST_ROWS}
