#!/usr/bin/env python3
"""While a long recording is judged, a terminal shows how much was read, the rate and the time left, and the line is gone
afterwards; without a terminal nothing is written beside the report."""
import os
import pty
import signal
import subprocess
import sys
import time

build, tmp = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
tool, job = os.path.join(build, "bin", "tfhook"), os.path.join(build, "tests", "jobs", "client_loop")


def on_terminal(out):
    """A report whose stderr is a terminal, held up for longer than a report may be silent; what it wrote there."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen([tool, "report", out], stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    for _ in range(4):  # a part of the work, then a pause: the line is due when it goes on
        time.sleep(0.02)
        child.send_signal(signal.SIGSTOP)
        time.sleep(0.4)
        child.send_signal(signal.SIGCONT)
    text = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:
            break
        if not part:
            break
        text += part
    assert child.wait() == 0, child.returncode
    os.close(ours)
    return text.decode()


def main():
    out = os.path.join(tmp, "run")
    env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(build, "sim"), SIM_LAUNCH_COST="0ns", SIM_KERNEL_DEFAULT="100ns")
    subprocess.run([tool, "run", "-q", "-o", out, "--", job, "--launches", "2000", "--steps", "400", "--spin", "0"], env=env,
                   check=True, stdout=subprocess.DEVNULL)
    quiet = subprocess.run([tool, "report", out], capture_output=True, text=True, check=True)
    assert quiet.stderr == "", quiet.stderr
    for _ in range(5):  # a machine may judge it all before the first pause
        text = on_terminal(out)
        if "% read" in text:
            break
    assert " % read, " in text and " million calls/s, about " in text and " s left" in text, text
    assert text.endswith("\r\033[K"), repr(text[-80:])


if __name__ == "__main__":
    sys.exit(main())
