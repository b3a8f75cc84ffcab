#!/usr/bin/env python3
"""Without npm the build goes on and says what pages will lack; such a page has tables and timelines in place of the charts, every number of
the JSON, and nothing to complain of.

timeout: 200
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(__file__))
import figures  # noqa: E402
import shown  # noqa: E402


def without_npm():
    os.mkdir("path")
    for name in ("bash", "env", "mkdir", "rm"):
        os.symlink(next(d + "/" + name for d in ("/usr/bin", "/bin") if os.path.exists(d + "/" + name)), "path/" + name)
    done = subprocess.run([shown.SRC + "/scripts/uplot", "uplot"], env={"PATH": os.path.abspath("path")}, capture_output=True, text=True)
    assert done.returncode == 0 and "npm is not here; pages will have no charts" in done.stderr, done
    assert os.listdir("uplot") == []


def main():
    shown.begin()
    without_npm()
    run = shown.record("--steps", 60, "--h2d", 1e6, "--spin", 2000, "--launches", 20, TFHOOK_CUPTI="on")
    shown.TFHOOK = shown.BUILD + "/tests/page/tfhook-bare"
    path, report = shown.page_of(run)
    with shown.browser() as browser:
        page = browser(path)
        assert page("typeof uPlot") == "undefined" and page("document.querySelectorAll('.uplot').length") == 0, "there is uPlot"
        figures.shows(page, report, run)
        page("document.querySelector('.timeline').scrollIntoView()")  # drawn when it is seen
        page.page.locator(".timeline > *").first.wait_for(state="attached", timeout=60000)  # the page's policy forbids a function
        # What would be a chart is a table that is there to be read.
        hidden = page("Array.from(document.querySelectorAll('.chart')).filter(c => c.offsetHeight > 40).length")
        assert hidden == 0, "an empty chart takes room"
        assert page.page.locator("table:visible").count() >= 10


if __name__ == "__main__":
    main()
