#!/usr/bin/env python3
"""The report of a program in C that is compiled with -g names the file and line of its calls, in every form in which compilers write
them: DWARF 2 to 5, compressed, in a separate file. Without -g, or where the file is another build by now or is gone, it names the
function, or nothing, and no line."""
import json
import os
import shutil
import subprocess
import sys
sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/common")
from common import check, failed, tool  # noqa: E402

build, src, tmp = os.environ["TFH_BUILD"], os.environ["TFH_SRC"], os.environ["TFH_TMP"]
if os.environ.get("TFH_SAN") or not shutil.which("gcc"):
    sys.exit(77)
tfhook, source = f"{build}/bin/tfhook", f"{src}/tests/jobs/client_fetch.c"
with open(source) as f:
    FETCH = next(i for i, line in enumerate(f, 1) if "fetched here" in line)


def compile_job(name, *options):
    program = f"{tmp}/{name}"
    subprocess.run(["gcc", "-O2", *options, source, "-o", program, "-ldl"], check=True)
    return program


def record(name, program):
    env = {**os.environ, "LD_LIBRARY_PATH": f"{build}/sim", "SIM_D2H_GBPS": "1"}
    subprocess.run([tfhook, "run", "-q", "-o", f"{tmp}/{name}.rec", "--", program], env=env, stdout=subprocess.DEVNULL, check=True, timeout=100)


def report(name):
    done = subprocess.run([tfhook, "report", "--json", f"{tmp}/{name}.rec"], stdout=subprocess.PIPE, text=True, check=True)
    js = json.loads(done.stdout)
    place = js["verdict"]["place"]
    where = next(t["where"] for t in js["transfers"] if t["fn"] == "cuMemcpyDtoH_v2")
    return place and (os.path.basename(place["file"]), place["line"], place["function"]), where


LINE = ("client_fetch.c", FETCH, "fetch")
for name, options in {"two": ["-gdwarf-2"], "four": ["-gdwarf-4"], "five": ["-gdwarf-5"], "packed": ["-g", "-gz=zlib"],
                      "unoptimized": ["-g", "-O0"], "split": ["-g", "-gsplit-dwarf"]}.items():
    record(name, compile_job(name, *options))
    place, where = report(name)
    check(place == LINE, name, place)
    check(where.startswith(f"client_fetch.c:{FETCH} fetch [{name}] < client_fetch.c:"), name, where)

text = tool("report", f"{tmp}/five.rec")
check(f"called from client_fetch.c:{FETCH} fetch" in text, text)

record("plain", compile_job("plain"))
place, where = report("plain")
check(place == ("plain", 0, "fetch") and where == "fetch [plain] < main", place, where)

# Stripped since: the build id is the same, the lines are not known.
subprocess.run(["strip", "--strip-debug", f"{tmp}/four"], check=True)
place, where = report("four")
check(place == ("four", 0, "fetch") and where == "fetch [four] < main", place, where)
# Another build: its functions may be elsewhere.
shutil.copy(f"{tmp}/unoptimized", f"{tmp}/five")
os.remove(f"{tmp}/two")
for name in ("five", "two"):
    place, where = report(name)
    check(place is None and "client_fetch.c" not in where, name, place, where)
sys.exit(failed())
