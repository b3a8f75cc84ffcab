#!/usr/bin/env python3
"""Of a fleet of 6,000 jobs (470,000 ranks) `tfhook fleet` finds the hosts that are slow in every job, the image that made all its jobs
slower, the job that one image made slower, and the jobs that lose most with cause and line; it invents none, though one rank logs, a
host is slow once, and a job has stages. Its text is at most 80 columns wide, and says what the JSON says. Days limit what is read."""
# timeout: 600
import json
import sys

from fleet_env import check, continue_in, failed, tfhook, tmp

continue_in("fleet")
import synthetic

lake = tmp + "/lake"
ranks = synthetic.write(lake, 6000, 16)
rows = json.loads(tfhook("fleet", "--json", lake)[0])
for line in synthetic.wrong(rows):
    check(False, line)
total = rows["total"][0]
check(ranks > 400000 and total["runs"] == 6000 and total["jobs"] == synthetic.JOBS, "rows", ranks, total)
check(abs(sum(row["lost_gpu_h"] for row in rows["causes"]) / total["lost_gpu_h"] - 1) < 1e-9, "causes add up")
for name in ("teams", "frameworks", "images"):
    check(abs(sum(row["lost_gpu_h"] for row in rows[name]) / total["lost_gpu_h"] - 1) < 1e-9, name, "add up")
    check(abs(sum(row["gpu_h"] for row in rows[name]) / total["gpu_h"] - 1) < 1e-9, name, "add up")
text = tfhook("fleet", lake)[0]
check(all(len(line) <= 80 for line in text.splitlines()), "80 columns", [line for line in text.splitlines() if len(line) > 80])
for word in (*synthetic.SLOW, "fam2:v2 -> fam2:v3", "fam3:v1 -> fam3:v2", "data.py:88", "job41"):
    check(word in text, word, "in", text)
check(len(tfhook("fleet", "--all", lake)[0].splitlines()) > len(text.splitlines()) + 50, "--all")
page = tmp + "/fleet.html"
tfhook("fleet", "--html", page, lake)
tfhook("fleet", "--html", page, lake)  # in place of the first one
with open(page) as f:
    shown = f.read()
for word in (*synthetic.SLOW, "fam2:v2 -&gt; fam2:v3", "data.py:88", "job41"):
    check(word in shown, word, "on the page")
check(shown.count("<tr>") > len(tfhook("fleet", "--all", lake)[0].splitlines()) - 40, "every row is on the page", shown.count("<tr>"))
with open(tmp + "/other.html", "w") as f:
    f.write("mine")
check("not a tfhook page" in tfhook("fleet", "--html", tmp + "/other.html", lake, status=3)[1], "another file stays")
check(open(tmp + "/other.html").read() == "mine", "another file stays")
some = json.loads(tfhook("fleet", "--json", "--since", "2026-11-02", "--until", "2026-11-03", lake)[0])["total"][0]
check((some["first_day"], some["last_day"]) == ("2026-11-02", "2026-11-03") and 0 < some["runs"] < 600, "days", some)
sys.exit(failed())
