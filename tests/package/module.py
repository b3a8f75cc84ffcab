#!/usr/bin/env python3
"""tfhook.load() gives what `report --json` and `--steps --json` of the same recording say; what is not a recording is an exception
with the command's message and exit code. Marks do nothing without the recorder, and importing them imports nothing that is only
for reading. A newer command's fields are no error. `tfhook mcp` says what it needs where that is missing."""
# timeout: 300
import json
import os
import subprocess
import sys

if os.environ.get("TFH_SAN") in ("address", "thread"):
    sys.exit(77)  # such a recorder cannot be preloaded into ordinary programs
from installed import build, check, failed, run, src, tmp

os.environ["PATH"] = build + "/bin:" + os.environ["PATH"]
sys.path.insert(0, src + "/lib/python")
import tfhook

check("tfhook.run" not in sys.modules and "tfhook.command" not in sys.modules, "what an import of marks takes", sorted(sys.modules))
with tfhook.step_scope("train"), tfhook.range_scope("loss"):
    tfhook.step()
check(not tfhook.active() and tfhook.flush() == 0, "no recorder")

place = tmp + "/run"
run(build + "/bin/tfhook", "run", "-q", "-o", place, "--", sys.executable, src + "/tests/evidence/jobs.py", "queue_of_sleeper", "--steps",
    "40", env=dict(os.environ, LD_LIBRARY_PATH=build + "/sim"))
whole = json.loads(run(build + "/bin/tfhook", "report", "--json", place).stdout)
lines = [json.loads(line) for line in run(build + "/bin/tfhook", "report", "--steps", "--json", place).stdout.splitlines()]
loaded = tfhook.load(place)
verdict = whole["verdict"]
check(verdict["class"] == loaded.verdict.cls is not None, "class", verdict, loaded.verdict)
for name in ("cause", "share", "confidence", "tier", "text", "missing"):
    check(getattr(loaded.verdict, name) == verdict[name], name, verdict)
check(loaded.json == whole and list(loaded.command) == whole["run"]["command"], "the whole of it", loaded)
check(loaded.step_times.median_s == whole["steps"]["median_s"], "median")
check([(part.name, part.share) for part in loaded.breakdown] == [(part["name"], part["share"]) for part in whole["breakdown"]], "parts")
check([(s.index, s.dur_s, s.cls, dict(s.breakdown)) for s in loaded.steps] ==
      [(s["index"], s["dur_s"], s["class"], s["breakdown"]) for s in lines] and len(lines) >= 40, "steps")
check(len(loaded.columns()["compute_s"]) == len(lines), "columns")
check("<html" in loaded.page(), "page")
try:
    loaded.verdict.cls = "other"
    check(False, "a verdict can be changed")
except AttributeError:
    pass

os.mkdir(tmp + "/empty")
for name in (tmp + "/no-such", tmp + "/empty", src + "/LICENSE"):
    said = run(build + "/bin/tfhook", "report", "--json", name, want=None)
    try:
        tfhook.load(name)
        check(False, "no exception", name)
    except tfhook.TfhookError as error:
        check((str(error), error.code) == (said.stderr.strip(), said.returncode), "exception", error, said)

from tfhook.run import Part, _make
check(_make(Part, {"name": "x", "s_per_step": 1.0, "share": 0.5, "later": 1}) == Part("x", 1.0, 0.5), "unknown fields")

bare = run(build + "/bin/tfhook", "mcp", want=125, env=dict(os.environ, PATH=tmp))
check("pip install 'mcp" in bare.stderr, "tfhook mcp without Python", bare.stderr)
check(subprocess.run([build + "/bin/tfhook", "mcp", "a", "b"], capture_output=True).returncode == 2, "tfhook mcp with two folders")
sys.exit(failed())
