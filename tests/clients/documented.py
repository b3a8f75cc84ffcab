#!/usr/bin/env python3
"""docs/clients.md has a row for each client, with the version that is pinned."""
import os
import re
import sys

import client
from clients import CLIENTS

rows = re.findall(r"^\| (\S+) \| (\S+) \| (.*?) \|", open(f"{os.environ['TFH_SRC']}/docs/clients.md").read(), re.M)[1:]
told = {name: (version, route) for name, version, route in rows}
wrong = [c.name for c in CLIENTS
         if c.name not in told or told[c.name][1] != c.route or c.env and told[c.name][0] != client.version_of(c)]
if wrong or len(told) != len(CLIENTS):
    sys.exit(f"FAILED: docs/clients.md is not up to date with {wrong or sorted(told)}; see make check-clients")
