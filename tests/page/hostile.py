#!/usr/bin/env python3
"""Names of kernels, calls, threads, stages, files, hosts and arguments that are HTML, scripts, bidi controls or control characters do
nothing to the page: no script runs, no element comes of them, no request is made, no direction changes, and they are shown.

timeout: 300
"""
import json
import os
import sys
import unicodedata

sys.path[:0] = [os.path.dirname(__file__), os.path.join(os.environ["TFH_SRC"], "tests/import")]
import shown  # noqa: E402
from evil_kineto import kineto  # noqa: E402

HTML = "</pre></script></style></table><img src=x onerror=alert(1)><script>alert(2)</script><svg onload=alert(3)>&lt;b&#39;\"'`--><!--]]>"
EVIL = HTML + "\x1b[31m\r\n\u202eRTL\u2066\u200b\u2028\u00ad\ufeff\x7f\x00"


def rewritten():
    """A recording whose facts are of that name."""
    run = shown.record("--steps", 40, "--spin", 2000, name="rec")
    for name in ("run.json", "end.json"):
        facts = json.load(open(run + "/" + name))
        facts = {k: v + EVIL if isinstance(v, str) and k != "schema" else v for k, v in facts.items()}
        if "command" in facts:
            facts["command"] = [a + EVIL for a in facts["command"]]
        json.dump(facts, open(run + "/" + name, "w"))
    return run


def refused(c):
    return c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def look(browser, run, name):
    path, figures = shown.page_of(run, name)
    with open(path, encoding="utf-8", newline="") as f:  # strictly
        raw = f.read()
    assert not {hex(ord(c)) for c in raw if refused(c)}
    page = browser(path)
    page.page.wait_for_timeout(200)
    page.quiet()
    page.fits()
    counts = page("['script:not([type])', 'style', 'main', 'img, iframe, object, embed, base, form, link, video', '[onerror], [onload]']"
                  ".map(s => document.querySelectorAll(s).length)")
    assert counts == [1, 1, 1, 0, 0], counts
    names = page("document.body.textContent + Array.from(document.querySelectorAll('[title]'), e => e.title).join(' ')")
    assert HTML in names, "the name is not shown as it is"
    assert page("document.querySelectorAll('section').length") >= 4
    assert json.loads(page("document.getElementById('report').textContent")) == figures


def main():
    shown.begin()
    json.dump(kineto(EVIL, 24), open("k.json", "w"))
    with shown.browser() as browser:
        look(browser, "k.json", "k.html")
        look(browser, rewritten(), "rec.html")
    print("hostile names did nothing")


if __name__ == "__main__":
    main()
