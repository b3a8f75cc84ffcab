"""Asks DuckDB of a database of SQLite's, and prints the rows as JSON. For tests/export/sqlite_file.py, in the environment `tables`.

usage: in_duckdb.py DATABASE QUERY..."""
import glob
import json
import os
import sys

import duckdb
import duckdb_extension_sqlite_scanner

folder = os.path.dirname(duckdb_extension_sqlite_scanner.__file__)
db = duckdb.connect()
db.execute("LOAD '%s'" % glob.glob(folder + "/**/*.duckdb_extension", recursive=True)[0])
db.execute("ATTACH '%s' AS run (TYPE sqlite, READ_ONLY)" % sys.argv[1])
db.execute("USE run")
print(json.dumps([[[float(x) if type(x).__name__ == "Decimal" else x for x in row] for row in db.execute(sql).fetchall()] for sql in sys.argv[2:]]))
