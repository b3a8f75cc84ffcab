#!/usr/bin/env python3
"""tfhook top follows a running job without a record lost or read twice: of a stopped job it says what a report says. A job whose
batches become fast is input- or host-bound at the line that unpacks them, and then no more; calls in flight and processes are shown;
metrics are valid; a process without a journal here is followed by its files; a job that ended, has not recorded, is not ours or does not exist gets a clear message and its exit code.
timeout: 240
"""
import fcntl
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time

sys.path.insert(0, os.path.join(os.environ["TFH_SRC"], "tests/jobs"))
from looped import LOOP, SRC, TMP, TOOL, begin, children, end, eventually, is_seen, loop, start, with_packages  # noqa: E402

here = os.path.join(SRC, "tests", "cli")


def top(*args, code=0, **more):
    done = subprocess.run([TOOL, "top", *args], capture_output=True, text=True, timeout=60, **more)
    assert done.returncode == code, (args, done.returncode, done.stdout, done.stderr)
    return done


def view(*args):
    return json.loads(top(*args, "--once", "--json").stdout)


def is_slow(v):
    """A window whose steps all have slow batches, and what it was seen by; None: not yet."""
    line = v.get("verdict", {}).get("line") or {}
    return v if line.get("function") == "load_batch" and v["steps"]["judged"] > 50 else None


def last_view(path):
    with open(path) as f:
        return json.loads(f.read().rpartition("\n")[0].splitlines()[-1])


def own_s(v):
    """What a step of a view does besides computing; much where no step was judged."""
    parts = v.get("breakdown") if v.get("steps", {}).get("judged") else None
    return parts["host"] + parts["input"] if parts else 1


def two_halves():
    """A window sees the change; so does one that is followed from the beginning."""
    job = start("halves", sys.executable, os.path.join(here, "top_job.py"), os.path.abspath("fast"), os.path.abspath("done"))
    eventually(lambda: os.path.isdir("halves"))
    with open("lines", "w") as out:
        lines = subprocess.Popen([TOOL, "top", "--json", "--window", "2", "--interval", "0.3", "halves"], stdout=out)
    eventually(lambda: is_seen("halves"))
    one = eventually(lambda: is_slow(view("halves", "--window", "3")))
    open("fast", "w").close()
    eventually(lambda: own_s(last_view("lines")) < 1e-3)
    open("done", "w").close()
    job.wait()
    assert lines.wait(timeout=30) == 0
    with open(os.path.join(here, "top_job.py")) as f:
        wanted = [n for n, line in enumerate(f, 1) if line.endswith("# here\n")]
    assert one["verdict"]["class"] in ("input-bound", "host-bound"), one["verdict"]
    assert one["verdict"]["line"]["file"].endswith("top_job.py") and one["verdict"]["line"]["function"] == "load_batch", one["verdict"]
    assert abs(one["verdict"]["line"]["line"] - wanted[0]) <= 1, one["verdict"]
    assert 0.010 < one["steps"]["median_s"] < 0.030, one["steps"]
    with open("lines") as f:
        views = [json.loads(line) for line in f]
    parts = [v["breakdown"] for v in views if "breakdown" in v and v["steps"]["judged"]]
    waits = [p["host"] + p["input"] > p["compute"] for p in parts]
    assert any(waits) and not waits[-1], parts  # other work on the machine may make steps wait, but not unpack
    assert parts[-1]["host"] + parts[-1]["input"] < 1e-3, parts[-1]
    assert views[0]["phase"] in ("waiting", "running") and views[-1]["phase"] == "ended" and views[-1]["end"] == "exit", views[-1]
    assert all(v["processes"][0]["lost"] == 0 for v in views if v["processes"]), views
    assert "nothing" not in top("halves", code=5).stdout
    assert "tfhook report" in top("halves", code=5).stderr


def states(pid):
    """Of its threads, as the kernel has them."""
    for thread in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/stat" % (pid, thread)) as f:
            yield f.read().rsplit(")", 1)[1].split()[0]


def stopped():
    """Nothing moves in a stopped job, so that two readers must see the same: in its first chunks, staging and rings."""
    job = start("stopped", LOOP, "--launches", "40", "--steps", "1000000", "--h2d", "1000", "--spin", "100", SIM_LAUNCH_COST="0ns")
    eventually(lambda: os.path.isdir("stopped") and any(n.endswith(".tft") for n in os.listdir("stopped")))
    pid = eventually(lambda: (children(job.pid) or [None])[0])
    eventually(lambda: is_seen("stopped") and view("stopped")["steps"]["judged"] > 20)
    subprocess.run([TOOL, "ctl", "stopped", "flush"], check=True, capture_output=True)
    view("stopped")  # meanwhile some are recorded behind the chunk that was flushed
    os.kill(pid, signal.SIGSTOP)
    eventually(lambda: all(state == "T" for state in states(pid)))
    report = json.loads(subprocess.run([TOOL, "report", "--json", "stopped"], capture_output=True, text=True, check=True).stdout)
    one = view("stopped", "--window", "3600")
    assert one["steps"]["judged"] == report["steps"]["count"], (one["steps"]["judged"], report["steps"]["count"])
    parts = {p["name"]: p["s_per_step"] for p in report["breakdown"]}
    for part, seconds in one["breakdown"].items():
        # a call's times, in whole nanoseconds of two clocks' lines
        assert abs(seconds - parts[part]) < 1e-8 + 1e-3 * parts[part], (part, seconds, parts[part])
    assert one["verdict"]["class"] == report["verdict"]["class"]
    eventually(lambda: all(c["since_s"] > 1 for p in view(str(job.pid))["processes"] for c in p["in_flight"]))
    text = top("--once", str(pid)).stdout
    call = view(str(job.pid))["processes"][0]
    assert call["pid"] == pid and call["records"], call
    if call["in_flight"]:
        assert call["in_flight"][0]["fn"].startswith("cu") and call["in_flight"][0]["since_s"] > 1, call
        assert "IN FLIGHT" in text and call["in_flight"][0]["fn"] in text, text
    with open("/proc/%d/stat" % pid) as f:
        assert f.read().rsplit(")", 1)[1].split()[0] == "T", "it was woken up"
    end(job)


def metrics():
    """What the collector of a machine reads; the file is never half written."""
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
    job = loop("me\"trics\\", 1000000)
    eventually(lambda: is_seen("me\"trics\\"))
    top("--once", "--openmetrics", "m.prom", "me\"trics\\")
    with open("m.prom") as f:
        text = f.read()
    found = {m.name: m for m in parse(text)}
    assert found["tfhook_job_running"].samples[0].labels["directory"].endswith("me\"trics\\"), text
    assert found["tfhook_job_running"].samples[0].value == 1
    assert found["tfhook_step_seconds"].samples[0].value > 0
    assert sum(s.value for s in found["tfhook_step_part_seconds"].samples) > 0
    if shutil.which("promtool"):
        check = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
        assert check.returncode == 0, check.stderr
    assert os.stat("m.prom").st_mode & 0o777 == 0o644
    bad = top("--once", "--openmetrics", "no/such/file", "me\"trics\\", code=3)
    assert "no/such/file: No such file" in bad.stderr, bad.stderr
    end(job)


def full_pipe(*args):
    """A view whose output nobody reads, once there is no room for another line."""
    view = subprocess.Popen([TOOL, "top", "--interval", "0.1", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    fcntl.fcntl(view.stdout, fcntl.F_SETPIPE_SZ, 4096)

    def bytes_in():
        return struct.unpack("i", fcntl.ioctl(view.stdout, termios.FIONREAD, bytes(4)))[0]

    def is_full():
        before = bytes_in()
        time.sleep(1)  # ten more lines, if there is room
        return before and bytes_in() == before
    eventually(is_full)
    return view


def unread():
    """SIGTERM ends a view whose pipe is full at once, and behind a whole line: one that was begun is ended if its reader goes on."""
    job = loop("unread", 1000000)
    eventually(lambda: is_seen("unread"))
    for args in ((), ("--json",)):
        view = full_pipe(*args, "unread")
        view.terminate()
        time.sleep(0.3)
        text = view.stdout.read().decode()
        assert view.wait(timeout=30) == 128 + signal.SIGTERM and text.endswith("\n"), (args, text[-200:])
        assert not view.stderr.read()
        assert not args or [json.loads(line) for line in text.splitlines()], text
    view = full_pipe("unread")
    view.terminate()
    assert view.wait(timeout=30) == 128 + signal.SIGTERM
    assert view.stdout.read().endswith(b"\n")
    end(job)


def views_in(path):
    with open(path) as f:
        return len(f.read().splitlines())


def ranks():
    """Two ranks: each with its class and its counters; one of them ends, and the other goes on."""
    script = "RANK=0 WORLD_SIZE=2 \"$0\" --steps 1000000 --h2d 1000 --spin 1000 & RANK=1 WORLD_SIZE=2 \"$0\" --steps 3000 --h2d 1000 --spin 1000; wait"
    job = start("ranks", "bash", "-c", script, LOOP, TFHOOK_DIR=TMP)
    eventually(lambda: is_seen("ranks") and len(view("ranks")["processes"]) == 2)
    both = view("ranks")["processes"]
    assert sorted(p["rank"] for p in both) == [0, 1], both
    assert all("class" in p and p["step_s"] > 0 for p in both), both
    assert "RANK" in top("--once", "ranks").stdout
    shell = children(job.pid)[0]
    with open("lines", "w") as out:
        lines = subprocess.Popen([TOOL, "top", "--json", "--interval", "0.3", "ranks"], stdout=out)
    eventually(lambda: views_in("lines") > 2)
    os.kill(next(p["pid"] for p in both if p["rank"] == 1), signal.SIGKILL)
    seen = views_in("lines")
    eventually(lambda: views_in("lines") > seen + 3)
    os.kill(next(p["pid"] for p in both if p["rank"] == 0), signal.SIGKILL)
    job.wait()
    assert lines.wait(timeout=30) == 0 and shell
    with open("lines") as f:
        views = [json.loads(line) for line in f]
    states = [tuple(p["records"] for p in sorted(v["processes"], key=lambda p: p["rank"])) for v in views]
    assert (True, True) in states and (True, False) in states and states[-1] == (False, False), states


def open_to_all(path):
    """May any user run it? A clone in root's home is in a folder that nobody else may enter."""
    return os.stat(path).st_mode & 1 and (path == "/" or open_to_all(os.path.dirname(path)))


def messages():
    os.mkdir("empty")
    assert "nothing has been recorded yet, not even run.json" in top("--once", "empty", code=5).stderr
    assert "neither a run directory nor a process" in top("nosuch", code=2).stderr
    assert "there is no process" in top("999999999", code=3).stderr
    assert "does not record" in top(str(os.getpid()), code=5).stderr
    assert "needs seconds" in top("--window", "x", "empty", code=2).stderr
    if os.getuid() == 0 and open_to_all(TOOL):
        os.mkdir("mine", 0o700)
        denied = top(os.path.join(TMP, "mine"), code=2, preexec_fn=lambda: (os.setgid(65534), os.setuid(65534)))
        assert "neither" in denied.stderr or "ermission" in denied.stderr, denied.stderr
    slow = start("slow", "sleep", "2")
    eventually(lambda: os.path.isdir("slow"))
    lines = top("--interval", "0.3", "slow")
    assert "waiting" in lines.stdout and "ended: it recorded nothing" in lines.stdout, lines.stdout
    assert slow.wait() == 0


def elsewhere():
    """Files of another machine, which has no journal here: a process that has just written is shown with its pid; one that wrote last long
    ago does not record, though its files were copied just now."""
    job = start("near", LOOP, "--steps", "300", "--h2d", "1000", "--spin", "1000")
    assert job.wait() == 0
    os.mkdir("away")
    for name in (n for n in os.listdir("near") if n.endswith(".tft")):
        before, pid, number, _ = name.rsplit(".", 3)
        shutil.copyfile("near/" + name, "away/%s.elsewhere.%s.%s.tft" % (before.split(".")[0], pid, number))
    one = view("away")["processes"][0]
    assert one["pid"] == int(pid) and 0 < one["age_s"] < 120, one
    assert "pid %s, recording for" % pid in top("--once", "away").stdout
    subprocess.run("zstd -dcq %s/tests/golden/killed-2026-11-23.tar.zst | tar xm" % SRC, shell=True, check=True)
    assert "no process of it records here any more" in top("--once", "killed-2026-11-23", code=5).stderr


def main():
    begin()
    messages()
    elsewhere()
    stopped()
    ranks()
    metrics()
    unread()
    two_halves()


if __name__ == "__main__":
    with_packages("screen", main)
