#!/usr/bin/env python3
"""The page of a recording shows every number of its JSON, in tables, with and without scripts; it asks for nothing but itself,
complains of nothing, is no wider than a phone, has a dark form, and stands in the words of the first screen.

timeout: 300
"""
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(__file__))
import shown  # noqa: E402

# Courses over time and frames of backtraces: drawn or unfolded, and in the JSON that the page holds whole.
COURSES = {"line"}


def numbers(value, path=""):
    if isinstance(value, dict):
        for key, item in value.items():
            yield from numbers(item, path + "." + key)
    elif isinstance(value, list):
        if path.split(".")[-1] in COURSES:
            return
        for item in value:
            yield from numbers(item, path)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path, value


def strings(value):
    if isinstance(value, str):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from strings(item)


def whole(page, figures):
    held = {float(v) for v in page("Array.from(document.querySelectorAll('[data-v]'), e => e.dataset.v)")}
    missing = [(path, n) for path, n in numbers(figures) if float(n) not in held]
    assert not missing, "not in a table: %s" % missing[:20]
    assert json.loads(page("document.getElementById('report').textContent")) == figures


def told(page, run):
    """The head says what the first screen says."""
    screen = shown.report("--color=never", run)
    text = re.sub(r"\s+", " ", page("document.querySelector('header').textContent"))
    for line in screen.split("WHERE THE RUN WENT")[0].splitlines():
        for word in set(line.split()) - {".."}:
            assert word in text, (word, line, text)


def shows(page, figures, run):
    page.quiet()
    page.fits()
    whole(page, figures)
    told(page, run)
    text = page("document.body.textContent")
    for name in strings({k: figures[k] for k in ("verdict", "remarks")}):
        assert name in text, name


def forms(browser, page, path):
    """On a phone, in the dark, on paper, without scripts."""
    colours = []
    for scheme in ("light", "dark"):
        page.page.emulate_media(color_scheme=scheme)
        colours.append(page("getComputedStyle(document.body).backgroundColor"))
    assert colours[0] != colours[1], colours
    page.page.emulate_media(media="print")
    assert page("getComputedStyle(document.body).backgroundColor") == colours[0], "paper is not white"
    assert len(page.page.pdf()) > 10000
    page.page.emulate_media(media="screen")
    page.page.set_viewport_size({"width": 390, "height": 800})
    page("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    page.fits()
    page.quiet()
    plain = browser(path, java_script_enabled=False)
    plain.quiet()
    tables = plain.page.locator("table:not(details table)").count()
    assert tables >= 10 and plain.page.locator("table:visible").count() == tables, tables


def keyboard(page):
    """Tables are ordered by a key on a head."""
    page("document.querySelector('.order').focus()")
    page.page.keyboard.press("Enter")
    assert page("document.querySelector('.order').parentElement.getAttribute('aria-sort')") == "descending"
    page.quiet()


def main():
    shown.begin()
    runs = [shown.record("--steps", 60, "--h2d", 1e6, "--spin", 2000, "--launches", 20, name="timed", TFHOOK_CUPTI="on"),
            shown.record("--steps", 40, "--spin", 3000, name="untimed", TFHOOK_CUPTI="off")]
    with shown.browser() as browser:
        for run in runs:
            path, figures = shown.page_of(run, run + ".html")
            page = browser(path)
            shows(page, figures, run)
            keyboard(page)
        forms(browser, page, path)
    print("%d recordings" % len(runs))


if __name__ == "__main__":
    main()
