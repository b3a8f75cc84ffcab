#!/usr/bin/env python3
"""The page of a job of many ranks, made of its hosts' digests alone: every sentence of the text is on it, the map has a row for each rank or
group of ranks and shades what the terminal's map shades, a row of a slow host says so, names from digests are text. Chromium shows it without
a script, a request or a complaint, also on a telephone. A page is replaced by a page, another file is not. 4,096 ranks make a page of a
megabyte at most.

timeout: 300
"""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(__file__))
import shown  # noqa: E402

MAKE = shown.BUILD + "/tests/ranks/digests"


def made(name, hosts, local, steps, *defects):
    os.mkdir(name)
    subprocess.run([MAKE, name, str(hosts), str(local), str(steps), "3", *defects], check=True, stdout=subprocess.DEVNULL)
    page = os.path.abspath(name + ".html")
    shown.report("--ranks", "--html", page, name)
    return page


def words(text):
    return " ".join(text.split())


def main():
    shown.begin()
    page = made("job", 64, 4, 2000, "host", "device", "clock", "hung", "missing")
    text = shown.report("--all", "job").split("\nRANKS OVER TIME\n")
    rows = [line[19:].rstrip("\n") for line in text[1].splitlines()[:-1]]
    with shown.browser() as browser:
        for width, scripts in ((1280, True), (360, True), (1280, False)):
            p = browser(page, width, java_script_enabled=scripts)
            p.quiet()
            if scripts:
                p.fits()
        p = browser(page)
        seen = words(p("document.body.innerText"))
        for line in re.sub(r"\n {4,}", " ", text[0]).splitlines():
            assert words(line) in seen, line
        cells = p("[...document.querySelectorAll('svg.map g')].map(g => [g.querySelector('title').textContent, "
                  "[...g.querySelectorAll('rect')].map(r => [r.className.baseVal, +r.getAttribute('width')])])")
        assert len(cells) == 96, len(cells)
        shades = {c for _, row in cells for c, _ in row}
        assert {"h0", "h2"} <= shades, shades
        slow = [title for title, row in cells if any(c == "h2" for c, _ in row)]
        assert any("rack" in title for title in slow) and len(slow) <= 6, slow
        assert any("+" in row for row in rows), rows
        assert p("document.querySelectorAll('#ranks tbody tr').length") == 255
    shown.report("--ranks", "--html", page, "job")  # an earlier page
    with open("other.html", "w") as f:
        f.write("<p>mine")
    shown.report("--ranks", "--html", "other.html", "job", codes=(3,))
    assert open("other.html").read() == "<p>mine"
    assert os.path.getsize(made("large", 512, 8, 600, "host")) < 1 << 20


main()
