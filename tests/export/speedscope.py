#!/usr/bin/env python3
"""speedscope, in Chromium without a network, opens what `export --to folded`, `--to kineto` and `--to pprof` write, without a complaint: the functions of the
stacks with the file's sums, the ops of a stream and of the whole device with the times of the trace, and names of all kinds as text."""
import base64
import collections
import json
import os
import re
import subprocess
import sys

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.path.dirname(os.path.abspath(__file__)) + "/../page"]
import runs  # noqa: E402
import shown  # noqa: E402

VIEWER = os.path.abspath(runs.BUILD) + "/speedscope"
if subprocess.run([runs.SRC + "/scripts/speedscope", VIEWER]).returncode:
    sys.exit(77)
shown.begin()
from playwright.sync_api import sync_playwright  # noqa: E402


def opened(chromium, path):
    """What the table of functions shows: name -> (total, own), as text."""
    complaints = []
    with open(path, "rb") as f:
        text = base64.b64encode(f.read()).decode()
    with open(runs.TMP + "/load.js", "w") as f:
        f.write("speedscope.loadFileFromBase64('profile', '%s')" % text)
    page = chromium.new_context(viewport={"width": 1280, "height": 20000}, offline=True).new_page()
    page.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda e: complaints.append(str(e)))
    page.on("dialog", lambda d: (complaints.append("dialog " + d.message), d.dismiss()))
    page.goto("file://%s/index.html#localProfilePath=%s/load.js" % (VIEWER, runs.TMP))
    page.wait_for_function("document.title.includes('profile')", timeout=60000)
    page.keyboard.press("3")
    page.wait_for_selector("text=Symbol Name", timeout=60000)
    page.wait_for_function("[...document.querySelectorAll('td')].some(c => c.innerText.includes('%)'))", timeout=60000)
    rows = page.evaluate("[...document.querySelectorAll('tr')].map(r => [...r.querySelectorAll('td')].map(c => c.innerText))")
    assert not complaints, complaints
    page.close()
    return {row[2]: row[:2] for row in rows if len(row) == 3 and row[0].endswith('%)')}


def number(cell):
    return int(re.match(r"[\d,]+", cell).group().replace(",", ""))


# Stacks of a job; where no Python with the driver's bindings can be had, made ones.
stacks = collections.Counter({"main (train.py:1);load (data.py:20)": 300, "main (train.py:1);step (train.py:9)": 700, "(workers);decode (data.py:5)": 41})
if os.environ.get("TFH_PY"):
    job = [os.environ["TFH_PY"], runs.SRC + "/tests/jobs/client_cb.py", "--steps", "150", "--sleep", "8", "--spin", "300"]
    subprocess.run([runs.BUILD + "/bin/tfhook", "run", "-q", "-o", runs.TMP + "/python", *job], env=dict(runs.ENV, TFHOOK_STACKS="on"), check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(runs.export("folded", runs.TMP + "/python", runs.TMP + "/out.folded"), encoding="utf-8") as f:
        stacks = collections.Counter({line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in f.read().splitlines()})
else:
    with open(runs.TMP + "/out.folded", "w", encoding="utf-8") as f:
        f.writelines("%s %d\n" % item for item in stacks.items())
total, own = collections.Counter(), collections.Counter()
for stack, n in stacks.items():
    own[stack.split(";")[-1]] += n
    for name in set(stack.split(";")):
        total[name] += n

trace = runs.trace("trace.json", names=["gemm", "<img src=x onerror=alert(1)>", "\u202egnp", "x" * 300])
with open(runs.export("kineto", trace, runs.TMP + "/out.json"), encoding="utf-8") as f:
    ops = [e for e in json.load(f)["traceEvents"] if e["ph"] == "X" and e["pid"] == 0 and e["cat"] != "cuda_sync"]
events = [e for e in ops if e["tid"] == 7]
runs.export("pprof", trace, runs.TMP + "/out.pb.gz")

with sync_playwright() as p:
    flags = ["--no-sandbox", "--disable-gpu", "--use-gl=swiftshader", "--enable-unsafe-swiftshader", "--allow-file-access-from-files"]
    chromium = p.chromium.launch(executable_path="/usr/bin/chromium", args=flags)
    got = opened(chromium, runs.TMP + "/out.folded")
    assert {name: (number(a), number(b)) for name, (a, b) in got.items()} == {name: (total[name], own[name]) for name in total}, (got, total, own)
    got = opened(chromium, runs.TMP + "/out.json")
    stacks = opened(chromium, runs.TMP + "/out.pb.gz")
    chromium.close()
UNIT = {"ns": 1e-3, "\u00b5s": 1, "ms": 1e3, "s": 1e6}


def us_of(cell):
    n, unit = re.match(r"([\d.]+)(\D+) ", cell).groups()
    return float(n) * UNIT[unit]


us = sum(us_of(total) for total, _ in got.values())
assert len(got) == len(events) and abs(us - sum(e["dur"] for e in events)) < 1, (len(got), len(events), us)
want = collections.Counter()
for e in ops:
    want[e["name"]] += e["dur"]
own = {name: us_of(own) for name, (_, own) in stacks.items()}
assert {name for name in own if own[name]} == set(want) and all(abs(own[name] / want[name] - 1) < 0.01 for name in want), (own, want)
assert abs(us_of(stacks["aten::outer"][0]) / sum(want.values()) - 1) < 0.01, (stacks, want)
assert any(name.startswith("<img src=x onerror=alert(1)> {") for name in got), list(got)
print("ok")
