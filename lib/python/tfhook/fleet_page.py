"""The page of `tfhook fleet --html`: the tables of the text, each with all its rows, in the style of a report's page. It needs no script."""
from __future__ import annotations

import base64
import hashlib
import html
import os
import stat
from typing import Any, Dict, List, Mapping

from .command import TfhookError
from .fleet_text import Answer, answers, named, nothing, overview
from .text import shown

GENERATOR = "tfhook report --html"  # that of all pages: any of them may be replaced
LOST = 24  # columns of a bar


def _escaped(text: Any) -> str:
    return html.escape(shown(text))


def _style() -> str:
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "page.css"), encoding="utf-8") as f:
        return "\n" + f.read()


def _bar(part: float) -> str:
    return ('<td class="b"><svg viewBox="0 0 %d 1" preserveAspectRatio="none" aria-hidden="true"><rect class="host" width="%.2f" height="1"/></svg></td>'
            % (LOST, LOST * part))


def _number(text: str) -> float:
    """A figure of the text; 0: it is none."""
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return 0.0


def _table(one: Answer) -> List[str]:
    left = len(one.rows[0]) - len(one.heads)
    lost = left + next(i for i, head in enumerate(one.heads) if "lost" in head)
    most = max(_number(row[lost]) for row in one.rows)
    lines = ['<section><h2>%s</h2><div class="scroll"><table><thead><tr>%s<th></th></tr></thead><tbody>' % (
        _escaped(one.title[0] + one.title[1:].lower().replace("gpu h", "GPU h")),
        '<th class="t"></th>' * left + "".join("<th>%s</th>" % _escaped(head) for head in one.heads))]
    for row in one.rows:
        texts = "".join('<td class="t">%s</td>' % html.escape(named(cell)) for cell in row[:left])
        numbers = "".join("<td>%s</td>" % _escaped(cell) for cell in row[left:])
        lines.append("<tr>%s%s%s</tr>" % (texts, numbers, _bar(_number(row[lost]) / most if most else 0)))
    return lines + ["</tbody></table></div></section>"]


def page(lake: str, rows: Mapping[str, List[Dict[str, Any]]]) -> str:
    style = _style()
    allowed = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    first, *facts = [line.strip() for line in overview(lake, rows["total"][0]) if line]
    lines = ['<!DOCTYPE html>', '<html lang="en">', "<head>", '<meta charset="utf-8">',
             '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; style-src \'sha256-%s\'; base-uri \'none\'; '
             'form-action \'none\'">' % allowed,
             '<meta name="viewport" content="width=device-width, initial-scale=1">', '<meta name="color-scheme" content="light dark">',
             '<meta name="generator" content="%s">' % GENERATOR, "<title>%s</title>" % _escaped(lake), "<style>%s</style>" % style,
             "</head>", "<body>", "<header><h1>%s</h1><ul>" % _escaped(first), *("<li>%s</li>" % _escaped(fact) for fact in facts),
             "</ul></header>", "<main>"]
    for one in answers(rows):
        if one.rows:
            lines += _table(one)
    lines += ['<p class="note">%s</p>' % _escaped(none) for none in nothing(rows)]
    return "\n".join([*lines, "</main>", "</body>", "</html>", ""])


def check_file(path: str) -> None:
    """Raises an error if the file is anything else than an earlier page."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise TfhookError("fleet: %s exists and is not a tfhook page; name another file" % path, 3)
        with open(path, "rb") as f:
            begin = f.read(4096)
    except FileNotFoundError:
        return
    if not begin.startswith(b"<!DOCTYPE html>") or b'"%s"' % GENERATOR.encode() not in begin:
        raise TfhookError("fleet: %s exists and is not a tfhook page; remove it, or name another file" % path, 3)


def write(path: str, text: str) -> None:
    part = "%s.%d.new" % (path, os.getpid())
    try:
        with open(part, "x", encoding="utf-8") as f:
            f.write(text)
        os.replace(part, path)
    except OSError:
        if os.path.exists(part):
            os.remove(part)
        raise
