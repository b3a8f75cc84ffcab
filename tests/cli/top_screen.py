#!/usr/bin/env python3
"""The screen of tfhook top on a real terminal: it fits 80 columns and 24 lines, and narrower ones; it follows a resize; without colour
and in an ASCII locale it sends neither; q and SIGINT leave the terminal as it was; it stays when the job ends, and says so.
timeout: 90
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

sys.path.insert(0, os.path.join(os.environ["TFH_SRC"], "tests/jobs"))
from looped import TOOL, begin, children, end, eventually, is_seen, loop, with_packages  # noqa: E402


class Terminal:
    """`tfhook top` on a terminal of its own, and what that shows."""

    def __init__(self, columns, lines, *args, **env):
        import pyte
        self.screen = pyte.Screen(columns, lines)
        self.stream = pyte.ByteStream(self.screen)
        self.sent = b""
        self.ours, self.theirs = pty.openpty()
        self.size(columns, lines)
        self.before = termios.tcgetattr(self.theirs)
        settings = dict(os.environ, TERM="xterm-256color", LC_ALL="C.UTF-8")
        settings.pop("NO_COLOR", None)
        settings.pop("COLUMNS", None)
        settings.pop("LINES", None)
        settings.update(env)
        self.child = subprocess.Popen([TOOL, "top", "--interval", "0.3", *args], stdin=self.theirs, stdout=self.theirs,
                                      stderr=subprocess.PIPE, env=settings, start_new_session=True)

    def size(self, columns, lines):
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.screen.resize(lines, columns)

    def read(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if select.select([self.ours], [], [], 0.1)[0]:
                part = os.read(self.ours, 65536)
                self.sent += part
                self.stream.feed(part)

    def shows(self, pattern, seconds=30):
        until = time.monotonic() + seconds
        while not re.search(pattern, "\n".join(self.screen.display)):
            assert time.monotonic() < until, (pattern, self.screen.display)
            self.read(0.2)
        return [line.rstrip() for line in self.screen.display]

    def leaves(self, status):
        until = time.monotonic() + 10
        while self.child.poll() is None and time.monotonic() < until:
            self.read(0.1)
        self.read(0.2)
        assert self.child.poll() == status, (self.child.poll(), self.child.stderr.read())
        assert termios.tcgetattr(self.theirs) == self.before, "the terminal's settings have changed"
        assert b"\x1b[?1049l" in self.sent and b"\x1b[?1049h" in self.sent, "the screen before it is not restored"
        os.close(self.ours)
        os.close(self.theirs)


def main():
    begin()
    run = loop("rec", 1000000)
    eventually(lambda: is_seen("rec"))
    try:
        t = Terminal(80, 24, "rec")
        full = t.shows("SURE")
        assert full[0].startswith("client_loop   pid %d, recording for " % children(run.pid)[0]), full[0]
        text = "\n".join(full)
        assert re.search(r"^[A-Z]+-BOUND|^BALANCED|^UNCLASSIFIED", text, re.M) and "WHERE A STEP GOES" in text, text
        assert re.search("[\u2581-\u2588]{10}", text), text
        assert re.search(rb"\x1b\[[0-9;]*3[0-9]m", t.sent), "no colour on a terminal that has them"
        t.size(50, 12)
        os.kill(t.child.pid, signal.SIGWINCH)
        t.read(1.5)
        small = t.shows("BOUND|BALANCED|UNCLASSIFIED")
        assert len(small) == 12 and not any("\u2581" in line and len(line) > 50 for line in small), small
        t.size(132, 50)
        os.kill(t.child.pid, signal.SIGWINCH)
        t.shows("SURE")
        os.write(t.ours, b"q")
        t.leaves(0)

        t = Terminal(80, 24, "rec", LC_ALL="C", NO_COLOR="1")
        t.shows("SURE")
        os.kill(t.child.pid, signal.SIGINT)
        t.leaves(130)
        assert not any(b >= 0x80 for b in t.sent), "not ASCII"
        assert not re.search(rb"\x1b\[[0-9;]*3[0-9]m", t.sent), "coloured"

        for columns, lines in ((30, 8), (20, 3), (10, 1)):
            t = Terminal(columns, lines, "rec")
            t.read(1.5)
            os.write(t.ours, b"q")
            t.leaves(0)

        dumb = Terminal(80, 24, "rec", TERM="no-such-terminal")  # lines, as where there is no terminal
        dumb.shows("-bound|balanced|unclassified")
        dumb.child.terminate()
        dumb.child.wait()

        t = Terminal(80, 24, "rec")
        t.shows("SURE")
    finally:
        end(run)
    t.shows(r"ended: signal 9 after .*", 15)
    t.shows("tfhook report", 5)
    assert t.child.poll() is None, "it left with the job"
    os.write(t.ours, b"q")
    t.leaves(0)


if __name__ == "__main__":
    with_packages("screen", main)
