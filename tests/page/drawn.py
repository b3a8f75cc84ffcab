#!/usr/bin/env python3
"""What the page draws is what was recorded: its steps are a slow, a median and a fast one of the run, their chains tile their time
as `tfhook why` tells it, bars lie where they should; canvases have ink, keys magnify, what-ifs are combined within the judge's
bounds; of many steps the page stays small and its points are true to them.

timeout: 300
"""
import csv
import io
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(__file__))
import shown  # noqa: E402

INK = """place => { const c = place.querySelector('canvas'), g = c.getContext('2d');
const d = new Uint32Array(g.getImageData(0, 0, c.width, c.height).data.buffer), colours = new Map();
for (const v of d) colours.set(v, (colours.get(v) || 0) + 1); return colours.size; }"""


def steps_of(run):
    rows = csv.DictReader(io.StringIO(shown.report("--csv", run)))
    return {int(r["index"]): r for r in rows if r["segment"] == "train"}


def timelines(drawing, figures, steps):
    lengths = sorted(float(r["dur_s"]) for r in steps.values())
    order = [t["kind"] for t in drawing["timelines"]]
    assert order == ["slow", "median", "fast"], order
    took = {t["kind"]: t["took"] * 1e-9 for t in drawing["timelines"]}
    assert took["fast"] <= took["median"] <= took["slow"], took
    for t in drawing["timelines"]:
        row = steps[t["step"]]
        assert abs(float(row["dur_s"]) - t["took"] * 1e-9) < 2e-9, (row, t["took"])
        links = [t["chain"][i:i + 5] for i in range(0, len(t["chain"]), 5)]
        assert links and all(a[0] + a[1] <= b[0] + 1 for a, b in zip(links, links[1:])), "links overlap"
        assert links[0][0] >= -2 and links[-1][0] + links[-1][1] <= t["took"] + 2, (links[0], links[-1], t["took"])
        names = [p[0] for p in drawing["parts"]]
        for part, name in enumerate(names[:-1]):
            charged = sum(link[1] for link in links if link[2] == part) * 1e-9
            assert abs(charged - float(row[name + "_s"])) < 0.02 * t["took"] * 1e-9 + 2e-6, (t["kind"], name, charged, row)
        bars = 0
        for track in t["tracks"]:
            for i in range(0, len(track["bars"]), 6):
                at, length, calls = track["bars"][i:i + 3]
                assert t["from"] <= at and length >= 0 and at + length <= t["to"] and calls >= 1, (track["name"], at, length)
                bars += calls
        assert bars >= 20, "%d bars of 21 launches and a copy" % bars
        assert any("GPU" in track["name"] for track in t["tracks"]) and any("thread" in track["name"] for track in t["tracks"])
    assert abs(took["slow"] - lengths[int(0.95 * (len(lengths) - 1) + 0.5)]) <= lengths[-1] - lengths[-5], took


def stretches(drawing, steps):
    s = drawing["stretches"]
    assert s["steps"] == len(steps) and len(s["start"]) <= 800, (s["steps"], len(steps), len(s["start"]))
    rows, k = list(steps.values()), s["together"]
    for i in {0, len(s["start"]) // 2, len(s["start"]) - 1}:
        mine = rows[i * k:(i + 1) * k]
        lengths = [float(r["dur_s"]) for r in mine]
        assert abs(s["least"][i] - min(lengths)) < 2e-9 and abs(s["most"][i] - max(lengths)) < 2e-9, i
        assert s["first"][i] == int(mine[0]["index"]), i
        mean = sum(float(r["compute_s"]) for r in mine) / len(mine)
        assert abs(s["compute"][i] - mean) < 2e-9, (i, s["compute"][i], mean)
    assert sum(drawing["lengths"]["count"]) + drawing["lengths"]["longer"] == len(steps)


def combined(page, figures):
    """Boxes chosen: one is as predicted; all are everything but compute; some lie between these."""
    boxes = page.page.locator("#combine input")
    text = page.page.locator("#combine .sum")
    for i in range(boxes.count()):
        boxes.nth(i).set_checked(False)
    assert "nothing is chosen" in page("document.querySelector('#combine .note').textContent")
    now = text.inner_text()
    boxes.nth(0).set_checked(True)
    assert text.inner_text() != now
    assert boxes.count() >= 2, "%d what-ifs to combine" % boxes.count()
    if boxes.count() > 2:
        boxes.nth(1).set_checked(True)
        assert "between two bounds" in page("document.querySelector('#combine .note').textContent")
    for i in range(boxes.count()):
        boxes.nth(i).set_checked(True)
    told = page("document.querySelector('#combine .note').textContent")
    assert "as predicted" in told, told


def drawn(page, drawing):
    for i in range(len(drawing["timelines"])):
        place = page.page.locator(".timeline").nth(i)
        place.scroll_into_view_if_needed()
        place.locator("canvas").wait_for()
        before = place.evaluate(INK)
        assert before >= 5, "a timeline of %d colours" % before
    canvas = page.page.locator(".timeline canvas").first
    whole = canvas.evaluate("c => c.toDataURL()")
    canvas.focus()
    page.page.keyboard.press("+")
    assert canvas.evaluate("c => c.toDataURL()") != whole, "it is not magnified"
    page.page.keyboard.press("0")
    assert canvas.evaluate("c => c.toDataURL()") == whole, "not all of it is shown again"
    box = canvas.bounding_box()
    page.page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 30)
    assert page.page.locator(".tip:visible").first.inner_text(), "a link has no tip"
    if page("typeof uPlot !== 'undefined'"):
        page.page.locator("#chart-steps").scroll_into_view_if_needed()
        page.page.locator("#chart-steps canvas").wait_for()
        page.page.locator("#chart-lengths canvas").wait_for()
    else:
        print("without uPlot")


def many(browser):
    """Of more steps than points."""
    subprocess.run([shown.BUILD + "/tests/analyze/long_run", "long", "30000", "2", "iterator"], check=True)
    path, _ = shown.page_of("long", "long.html")
    page = browser(path)
    stretches(page("page.drawing"), steps_of("long"))
    page.quiet()
    assert os.path.getsize(path) < 1e6, os.path.getsize(path)


def heat_of(browser, name):
    """How dark each of three ranks is in the middle of its run."""
    script = "for i in 0 1 2; do RANK=$i WORLD_SIZE=3 \"$0\" --steps 200 --h2d 1000 --spin $((2000 + i * 2000)) & done; wait"
    subprocess.run([shown.TFHOOK, "run", "-q", "-o", name, "--", "bash", "-c", script, shown.LOOP], check=True, stdout=subprocess.DEVNULL,
                   env=dict(os.environ, LD_LIBRARY_PATH=shown.BUILD + "/sim"))
    path, figures = shown.page_of(name, name + ".html")
    page = browser(path, java_script_enabled=False)
    cells = page.page.locator("#heat-ranks rect").evaluate_all(
        "all => all.map(c => [+c.getAttribute('y'), +c.getAttribute('fill-opacity'), c.textContent])")
    for row, rank in enumerate(figures["ranks"]):
        mine = [c for c in cells if c[0] == row]
        assert len(mine) > 5 and all(c[2].startswith("rank %d, " % rank["rank"]) for c in mine), (row, mine)
    dark = [sorted(c[1] for c in cells if c[0] == row) for row in range(3)]
    page.quiet()
    page.fits()
    return [d[len(d) // 2] for d in dark]


def ranks(browser):
    """Several ranks by time, without a script: a slower one is darker all along, unless others had the processors, in which case it is tried again."""
    seen = []
    for i in range(3):
        seen.append(heat_of(browser, "ranks%d" % i))
        if seen[-1][0] < seen[-1][1] < seen[-1][2]:
            return
    raise AssertionError(seen)


def main():
    shown.begin()
    run = shown.record("--steps", 80, "--sleep", 5, "--h2d", 1e6, "--spin", 1000, "--launches", 20, TFHOOK_CUPTI="on")
    with shown.browser() as browser:
        path, figures = shown.page_of(run)
        page = browser(path)
        drawing, steps = page("page.drawing"), steps_of(run)
        timelines(drawing, figures, steps)
        stretches(drawing, steps)
        drawn(page, drawing)
        combined(page, figures)
        page.fits()
        page.quiet()
        many(browser)
        ranks(browser)
    print(json.dumps({t["kind"]: t["took"] for t in drawing["timelines"]}))


if __name__ == "__main__":
    main()
