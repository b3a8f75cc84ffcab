#!/usr/bin/env python3
"""The first screen of `tfhook report` uses the terminal's height: on 24 rows it leaves one for the prompt, on a taller terminal it says more
and still fits, and a pipe whose LINES say the same size gets the same text. A pipe without LINES gets up to 40 lines."""
import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

sys.path.insert(0, os.path.join(os.environ["TFH_SRC"], "tests/jobs"))
from looped import LOOP, TOOL, begin, start  # noqa: E402

ENV = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")} | {"LC_ALL": "C", "NO_COLOR": "1"}


def piped(**env):
    return subprocess.run([TOOL, "report", "rec"], capture_output=True, text=True, env=ENV | env, check=True).stdout


def on_terminal(rows):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 80, 0, 0))
    child = subprocess.Popen([TOOL, "report", "rec"], stdout=theirs, stderr=subprocess.PIPE, env=ENV)
    os.close(theirs)
    text = b""
    try:
        while part := os.read(ours, 65536):
            text += part
    except OSError:  # the other side is closed
        pass
    os.close(ours)
    assert child.wait() == 0, child.stderr.read()
    return text.decode().replace("\r\n", "\n")


def main():
    begin()
    # Copies with a line and a second reason, and a fifth of the run after the steps: more to say than 24 rows hold.
    script = 'sleep 0.3; "$0" --steps 300 --h2d 4000000 --spin 200; sleep 0.3'
    assert start("rec", "bash", "-c", script, LOOP).wait() == 0
    plain = piped(LINES="24")
    assert plain.count("\n") <= 23, plain
    for rows in 10, 24:
        assert on_terminal(rows) == piped(LINES=str(rows)) == plain, (rows, on_terminal(rows), plain)
    tall = on_terminal(50)
    assert tall == piped(LINES="50"), (tall, piped(LINES="50"))
    assert len(plain) < len(tall) and tall.count("\n") < 50, (plain, tall)
    assert piped() == piped(LINES="41") and piped().count("\n") <= 40, piped()
    for odd in "", "0", "-3", "many", "99999999999999999999":
        assert piped(LINES=odd) in (piped(), tall), odd


if __name__ == "__main__":
    main()
