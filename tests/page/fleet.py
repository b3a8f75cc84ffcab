#!/usr/bin/env python3
"""The page of `tfhook fleet --html`, made of answers to its queries: every cell of every table of the text is on it, and what was looked for and not
found; a bar for each row, the longest where most was lost; foreign names are text. Chromium shows it without a script, a request or a complaint,
also on a telephone."""
import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
import shown  # noqa: E402

EVIL = "<img src=x onerror=alert(1)>\x1b\u202e"
MANY = 200
ROWS = {
    "total": [{"gpu_h": 1000.0, "first_day": "2026-10-26", "last_day": "2026-11-22", "runs": 6000, "jobs": 60, "judged_gpu_h": 990.0,
               "lost_gpu_h": 90.0, "failed_runs": 3, "failed_gpu_h": 5.0}],
    "jobs": [{"team": "vision", "job": EVIL, "cause": "host.sync", "file": "/src/train.py", "line": 301, "lost_gpu_h": 40.0 - i / 10, "gain_low_h": 30.0,
              "gain_high_h": 40.0} for i in range(MANY)],
    "causes": [{"cause": "host.sync", "lost_gpu_h": 60.0, "jobs": 3, "gain_low_h": None, "gain_high_h": None},
               {"cause": "input.read", "lost_gpu_h": 15.0, "jobs": 2, "gain_low_h": 0.0, "gain_high_h": 15.0}],
    "teams": [{"team": "vision", "cause": "host.sync", "runs": 10, "gpu_h": 500.0, "lost_gpu_h": 60.0}],
    "frameworks": [], "images": [], "lines": [], "regressions": [], "image_changes": [],
    "hosts": [{"host": "node0233", "jobs": 50, "runs": 122, "slower": 0.079, "at_least": 0.05, "lost_gpu_h": 343.0}],
}


def main():
    shown.begin()
    sys.path.insert(0, shown.SRC + "/lib/python")
    from tfhook import fleet_page, fleet_text
    path = os.path.abspath("fleet.html")
    fleet_page.check_file(path)
    fleet_page.write(path, fleet_page.page("/lake", ROWS))
    fleet_page.check_file(path)  # an earlier page may be replaced
    with shown.browser() as browser:
        for width, scripts in ((1280, True), (360, True), (1280, False)):
            p = browser(path, width, java_script_enabled=scripts)
            p.quiet()
            if scripts:
                p.fits()
        p = browser(path)
        tables = p("[...document.querySelectorAll('table')].map(t => [...t.querySelectorAll('tbody tr')].map(r => "
                   "[...r.querySelectorAll('td')].map(d => d.textContent)))")
        wanted = [one for one in fleet_text.answers(ROWS) if one.rows]
        assert len(tables) == len(wanted) == 4, len(tables)
        for one, rows in zip(wanted, tables):
            assert [row[:-1] for row in rows] == [[fleet_text.named(cell) for cell in row] for row in one.rows], (one.title, rows[:2])
        bars = p("[...document.querySelectorAll('table')].map(t => [...t.querySelectorAll('svg rect')].map(r => +r.getAttribute('width')))")
        assert bars[1] == [24, 6] and len(bars[0]) == MANY and bars[0] == sorted(bars[0], reverse=True), bars[1:]
        seen = p("document.body.innerText")
        assert "1,000" in seen and "no image made jobs slower beyond chance" in seen and "\\x1b\\u202e" in seen, seen[:500]
        assert p("document.images.length") == 0


main()
