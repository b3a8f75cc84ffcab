"""Converts the rows of `tfhook export` to a Parquet file, in bounded memory.

usage: python -m tfhook.parquet <ROWS >FILE     (started by `tfhook export --to parquet`)

It needs pyarrow. Names come from the recorded program and are treated as data.
"""
from __future__ import annotations

import sys
from typing import Any, BinaryIO

from .command import TfhookError
from .lake import arrow

#: Columns that are not int64. Those that end in `_s` are seconds, stored as double.
TEXTS = ("what", "name", "segment", "class", "cause")
SMALL = ("rank", "pid", "tid", "device", "stream")
ROWS = 1 << 17  # in a row group
BLOCK = 1 << 22  # bytes that are parsed at once


class Sink:
    """A stream that Arrow writes to. It need not be a file."""

    closed = False

    def __init__(self, to: BinaryIO) -> None:
        self.to = to
        self.at = 0

    def write(self, data: Any) -> int:
        self.at += self.to.write(data)
        return len(data)

    def tell(self) -> int:
        return self.at

    def flush(self) -> None:
        self.to.flush()

    def close(self) -> None:
        self.flush()

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False


def kind_of(column: str) -> Any:
    pa = arrow("pyarrow")
    if column in TEXTS:
        return pa.string()
    if column.endswith("_s"):
        return pa.float64()
    return pa.int32() if column == "rank" else pa.uint32() if column in SMALL else pa.int64()


def convert(rows: BinaryIO, to: BinaryIO) -> None:
    pa, csv, pq = arrow("pyarrow"), arrow("pyarrow.csv"), arrow("pyarrow.parquet")
    columns = rows.readline().decode().strip().split(",")
    kinds = {column: kind_of(column) for column in columns}
    schema = pa.schema(list(kinds.items()))
    batches = csv.open_csv(
        pa.PythonFile(rows, "r"), read_options=csv.ReadOptions(column_names=columns, block_size=BLOCK, use_threads=False),
        parse_options=csv.ParseOptions(newlines_in_values=True),
        convert_options=csv.ConvertOptions(column_types=kinds, null_values=[""], strings_can_be_null=True))
    with pq.ParquetWriter(pa.PythonFile(Sink(to), "w"), schema, compression="zstd") as writer:
        kept, n = [], 0
        for batch in batches:
            kept.append(batch)
            n += batch.num_rows
            if n >= ROWS:
                writer.write_table(pa.Table.from_batches(kept, schema), row_group_size=ROWS)
                kept, n = [], 0
        writer.write_table(pa.Table.from_batches(kept, schema), row_group_size=ROWS)


def main() -> int:
    try:
        convert(sys.stdin.buffer, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    except (TfhookError, OSError, ValueError) as error:
        print(" ".join(str(error).split()) or type(error).__name__, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
