"""Queries about a fleet of jobs. DuckDB or Spark runs the same queries on a lake (tfhook.lake).

usage: python -m tfhook.fleet LAKE [--since DAY] [--until DAY] [--json|--html FILE] [--engine spark --master URL]     (`tfhook fleet`)

Each file of sql/ is a SELECT that every engine runs unchanged. Some are views, created in the order of VIEWS. They read lake_runs,
lake_losses and lake_ranks, which are the Parquet files of these tables.
"""
from __future__ import annotations

import argparse
import datetime
import decimal
import json
import math
import os
import re
import urllib.parse
from typing import Any, Dict, List, Optional, Tuple

from . import fleet_page
from .command import TfhookError
from .fleet_text import render
from .lake import NAMES, TABLES, Lake, arrow, need, schema
from .text import finish, say, shown

SQL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sql")
VIEWS = ("runs", "losses", "ranks", "image_pairs", "host_own", "host_steps")
QUERIES = ("total", "causes", "teams", "frameworks", "images", "lines", "regressions", "image_changes", "hosts", "jobs")
#: Views that several queries read and that are much smaller than their tables. They are computed once.
KEPT = ("runs", "losses", "image_pairs", "host_own", "host_steps")
Rows = List[Dict[str, Any]]


def text_of(name: str) -> str:
    with open(os.path.join(SQL, name + ".sql"), encoding="utf-8") as f:
        return f.read()


class DuckDB:
    """DuckDB, in this process."""

    def __init__(self) -> None:
        duckdb = need("duckdb", "duckdb>=1.1")
        self.errors: Any = duckdb.Error
        self.connection = duckdb.connect()
        self.connection.execute("SET TimeZone = 'UTC'")

    def open(self, lake: Lake, first: datetime.date, last: datetime.date) -> None:
        for table in TABLES:
            parts = lake.parts(table, first, last)
            if lake.is_url:
                dataset = arrow("pyarrow.dataset")
                self.connection.register("lake_" + table, dataset.dataset(parts, schema(table), "parquet", lake.files))
            else:
                names = ", ".join("'%s'" % part.replace("'", "''") for part in parts)
                # The columns that the files lack, which an earlier version wrote, are null.
                self.connection.register("no_" + table, schema(table).empty_table())
                self.connection.execute("CREATE TEMP VIEW lake_%s AS SELECT * FROM no_%s UNION ALL BY NAME SELECT * FROM "
                                        "read_parquet([%s], union_by_name => true, hive_partitioning => false)" % (table, table, names))

    def view(self, name: str, query: str) -> None:
        self.connection.execute("CREATE TEMP %s %s AS %s" % ("TABLE" if name in KEPT else "VIEW", name, query))

    def ask(self, query: str) -> Rows:
        cursor = self.connection.execute(query)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row)) for row in cursor.fetchall()]

    def close(self) -> None:
        self.connection.close()


def columns(table: str) -> str:
    """The columns as a Spark schema, so that Spark need not read the files to infer it."""
    kinds = {"string": "STRING", "int32": "INT", "int64": "BIGINT", "double": "DOUBLE", "bool": "BOOLEAN", "timestamp": "TIMESTAMP",
             NAMES: "MAP<STRING, STRING>"}
    return ", ".join("`%s` %s" % (name, kinds[kind]) for name, kind in TABLES[table].items()) + ", day DATE"


def for_spark(lake: Lake) -> Tuple[str, Dict[str, str]]:
    """Where Spark finds the lake, and the settings of Hadoop's connector that say what an s3:// URL of Arrow's says."""
    if not lake.is_url:
        return lake.root, {}
    url = urllib.parse.urlsplit(lake.place)
    if url.scheme != "s3":
        return url._replace(query="").geturl().rstrip("/"), {}
    given = dict(urllib.parse.parse_qsl(url.query))
    settings = {"access.key": url.username, "secret.key": url.password, "endpoint.region": given.get("region")}
    if "endpoint_override" in given:
        settings.update({"endpoint": "%s://%s" % (given.get("scheme", "https"), given["endpoint_override"]), "path.style.access": "true"})
    return "s3a://" + lake.root, {"spark.hadoop.fs.s3a." + name: urllib.parse.unquote(value) for name, value in settings.items() if value}


class Spark:
    """Spark, on a cluster or in local processes."""

    def __init__(self, master: str, lake: Lake) -> None:
        sql = need("pyspark.sql", "pyspark>=4")
        self.errors: Any = need("pyspark.errors", "pyspark>=4").PySparkException
        builder = sql.SparkSession.builder.appName("tfhook fleet").master(master)
        # The default of 200 partitions is for clusters. Locally they would take longer than the queries.
        if master.startswith("local"):
            builder = builder.config("spark.sql.shuffle.partitions", str(2 * (os.cpu_count() or 1)))
        self.folder, settings = for_spark(lake)
        for name, value in (*settings.items(), ("spark.sql.session.timeZone", "UTC"), ("spark.ui.showConsoleProgress", "false"),
                            ("spark.sql.ansi.enabled", "false"), ("spark.log.level", "ERROR")):
            builder = builder.config(name, value)
        try:
            self.session = builder.getOrCreate()
        except Exception as error:  # any exception of Java
            raise TfhookError("fleet: Spark does not start: %s" % " ".join(str(error).split())[:300], 125) from None

    def open(self, lake: Lake, first: datetime.date, last: datetime.date) -> None:
        for table in TABLES:
            frame = self.session.read.schema(columns(table)).parquet("%s/%s" % (self.folder, table))
            frame.where("day BETWEEN DATE '%s' AND DATE '%s'" % (first, last)).createOrReplaceTempView("lake_" + table)

    def view(self, name: str, query: str) -> None:
        self.session.sql("CREATE OR REPLACE TEMPORARY VIEW %s AS %s" % (name, query))
        if name in KEPT:
            self.session.catalog.cacheTable(name)

    def ask(self, query: str) -> Rows:
        return [row.asDict() for row in self.session.sql(query).collect()]

    def close(self) -> None:
        self.session.stop()


def _plain(value: Any) -> Any:
    """Converts a value to what JSON can represent, equally for every engine."""
    if isinstance(value, decimal.Decimal):
        value = float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
    return value.isoformat() if isinstance(value, datetime.date) else value


def answer(lake: Lake, first: datetime.date, last: datetime.date, engine: str = "duckdb", master: str = "local[*]") -> Dict[str, Rows]:
    """The rows of all queries, by the queries' names."""
    for table in ("runs", "losses", "ranks"):
        parts = lake.parts(table, first, last)
        if not parts and not any(lake.days(table)):
            raise TfhookError("%s: no lake with runs; `tfhook collect -o %s DIR...` makes one" % (lake.name, lake.name), 5)
        if not parts:
            raise TfhookError("%s: no runs of these days (--since, --until)" % lake.name, 5)
        lake.check(parts)
    asked = Spark(master, lake) if engine == "spark" else DuckDB()
    try:
        asked.open(lake, first, last)
        for name in VIEWS:
            asked.view(name, text_of(name))
        return {name: [{key: _plain(value) for key, value in row.items()} for row in asked.ask(text_of(name))] for name in QUERIES}
    except asked.errors as error:
        raise TfhookError("%s: %s" % (lake.name, " ".join(str(error).split())[:500]), 3) from None
    finally:
        asked.close()


def day_of(text: Optional[str], other: datetime.date) -> datetime.date:
    """Parses a day: 2026-11-16, or 7d for seven days ago."""
    if not text:
        return other
    ago = re.fullmatch(r"(\d{1,4})d", text)
    if ago:
        return datetime.datetime.now(datetime.timezone.utc).date() - datetime.timedelta(int(ago.group(1)))
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise TfhookError("fleet: '%s' is not a day: expected 2026-11-16, or 7d for the last seven" % text, 2) from None


def days(args: argparse.Namespace) -> Tuple[datetime.date, datetime.date]:
    return day_of(args.since, datetime.date.min), day_of(args.until, datetime.date.max)


def main() -> int:
    parser = argparse.ArgumentParser("tfhook fleet", allow_abbrev=False)
    parser.add_argument("lake")
    for name in ("since", "until"):
        parser.add_argument("--" + name, metavar="DAY")
    for name in ("all", "json"):
        parser.add_argument("--" + name, action="store_true")
    parser.add_argument("--html", metavar="FILE")
    parser.add_argument("--engine", choices=("duckdb", "spark"), default="duckdb")
    parser.add_argument("--master", default="local[*]")
    args = parser.parse_args()
    try:
        first, last = days(args)
        if args.html and args.json:
            raise TfhookError("fleet: --html and --json exclude each other", 2)
        if args.html:
            fleet_page.check_file(args.html)
        lake = Lake(args.lake)
        rows = answer(lake, first, last, args.engine, args.master)
        if args.html:
            fleet_page.write(args.html, fleet_page.page(lake.name, rows))
    except TfhookError as error:
        say(str(error))
        return error.code
    except OSError as error:
        say("fleet: %s" % error)
        return 3
    if args.html:
        return 0
    if args.json:
        print(json.dumps(dict({"schema": "tfhook.fleet/1", "lake": shown(lake.name), "engine": args.engine}, **rows), indent=1))
    else:
        print(render(lake.name, rows, None if args.all else 8))
    return 0


if __name__ == "__main__":
    finish(main())
