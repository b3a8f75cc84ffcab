#!/usr/bin/env python3
"""The page of a long run: how long `report --html` takes, how large the page is, and when headless Chromium paints it first.

usage: page_paint.py [STEPS]    1,000,000
"""
import os
import subprocess
import sys
import tempfile
import time

BUILD, SRC = os.environ["TFH_BUILD"], os.environ["TFH_SRC"]
os.environ.setdefault("TFH_TMP", tempfile.mkdtemp(prefix="tfh-page-"))
sys.path.insert(0, SRC + "/tests/page")
import shown  # noqa: E402

PAINTED = """() => new Promise(done => new PerformanceObserver(list => {
  for (const e of list.getEntries()) if (e.name === 'first-contentful-paint') done(e.startTime);
}).observe({type: 'paint', buffered: true}))"""


def took(*command):
    since = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - since


def main():
    steps = sys.argv[1] if len(sys.argv) > 1 else "1000000"
    shown.begin()
    took(BUILD + "/tests/analyze/long_run", "long", steps, "2", "iterator")
    text, page = took(shown.TFHOOK, "report", "long"), took(shown.TFHOOK, "report", "--html", "page.html", "long")
    print("%s steps: report %.1f s, with --html %.1f s, page of %.2f MB" % (steps, text, page, os.path.getsize("page.html") / 1e6))
    with shown.browser() as browser:
        paints = sorted(browser(os.path.abspath("page.html")).page.evaluate(PAINTED) for _ in range(5))
    print("first contentful paint: %.0f ms (five times: %.0f to %.0f ms)" % (paints[2], paints[0], paints[-1]))
    subprocess.run(["rm", "-rf", os.environ["TFH_TMP"]], check=True)


main()
