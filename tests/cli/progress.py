#!/usr/bin/env python3
"""While a long recording is judged, checked or repaired, or another tool's trace is read, a terminal shows how much was read, the rate and the
time left, and the line is gone afterwards; without a terminal nothing is written beside the output."""
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time

build, tmp = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
tool, job = os.path.join(build, "bin", "tfhook"), os.path.join(build, "tests", "jobs", "client_loop")


def on_terminal(*args):
    """A command whose stderr is a terminal, held up for longer than it may be silent; what it wrote there."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen([tool, *args], stdout=subprocess.DEVNULL, stderr=theirs)
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
    assert child.wait() in (0, 4), child.returncode  # 4: so fast a job may lose records
    os.close(ours)
    return text.decode()


def main():
    if os.environ.get("TFH_SAN"):
        print("the recorder with that sanitizer cannot be preloaded into ordinary programs")
        return 77
    out = os.path.join(tmp, "run")
    env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(build, "sim"), SIM_LAUNCH_COST="0ns", SIM_KERNEL_DEFAULT="100ns")
    subprocess.run([tool, "run", "-q", "-o", out, "--", job, "--launches", "2000", "--steps", "400", "--spin", "0"], env=env,
                   check=True, stdout=subprocess.DEVNULL)
    quiet = subprocess.run([tool, "report", out], capture_output=True, text=True, check=True)
    assert quiet.stderr == "", quiet.stderr
    trace = os.path.join(tmp, "trace.json")
    with open(trace, "w") as f:
        f.write('{"traceEvents": [')
        for i in range(200000):
            f.write(json.dumps({"ph": "X", "cat": "kernel", "name": "k%d" % (i % 9), "pid": 0, "tid": 7, "ts": 10 * i, "dur": 5,
                                "args": {"device": 0, "stream": 7, "correlation": i}}) + ",")
        f.write("{}]}")
    many, repaired = os.path.join(tmp, "many"), os.path.join(tmp, "repaired")
    os.mkdir(many)
    parts = [name for name in os.listdir(out) if name.endswith(".0.tft")]
    for i in range(300):
        os.link(os.path.join(out, parts[0]), os.path.join(many, parts[0].replace(".0.tft", ".%d.tft" % i)))
    for args, rate in ((("report", out), "million calls/s"), (("verify", *[out] * 12), "MB/s"), (("info", trace), "MB/s"),
                       (("repair", "-o", repaired, many), "MB/s")):
        for _ in range(5):  # a machine may do it all before the first pause
            shutil.rmtree(repaired, ignore_errors=True)
            text = on_terminal(*args)
            if "% read" in text:
                break
        assert " % read, " in text and " %s, about " % rate in text and " s left" in text, (args, text)
        assert text.rsplit(" left", 1)[1].startswith("\r\033[K"), (args, repr(text[-80:]))


if __name__ == "__main__":
    sys.exit(main())
