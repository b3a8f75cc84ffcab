#!/usr/bin/env python3
"""The first screen of `tfhook report`, read as a person reads it: for jobs of every kind its words, not its JSON, say the class and
how sure that is, what is to blame, what removing it gains, what to do next and what the result rests on; what is missing where there
is no verdict; how a job ended that did not end well. It has at most 24 lines of 80 columns for every recording here, fits narrow
terminals and wide ones, its tables add up to 100 %, and into a file it is plain ASCII where the locale asks for that."""
import glob
import os
import re
import signal
import subprocess
import sys
import time

from first_screen import Screen
sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/common")
from common import check, failed  # noqa: E402

BUILD, SRC, TMP = os.environ["TFH_BUILD"], os.environ["TFH_SRC"], os.environ["TFH_TMP"]
TOOL, TRAIN, SIM = BUILD + "/bin/tfhook", BUILD + "/tests/truth/train", BUILD + "/sim"
RANKS = [sys.executable, SRC + "/tests/truth/jobs/ranks.py", TRAIN]
if os.environ.get("TFH_SAN") or not os.path.exists(SIM + "/libcuda.so.1"):
    sys.exit(77)


def environment(**more):
    env = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "CLICOLOR_FORCE")}
    return dict(env, LD_LIBRARY_PATH=SIM, LC_ALL="C", **more)


def children_of(parent):
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path) as f:
                if int(f.read().rsplit(")", 1)[1].split()[1]) == parent:
                    yield int(path.split("/")[2])
        except OSError:  # it has ended meanwhile
            pass


def record(name, command, kill=None, **env):
    """Runs a job under tfhook; returns its directory and what `tfhook run` said at the end."""
    out = os.path.join(TMP, name)
    job = subprocess.Popen([TOOL, "run", "-o", out, "--"] + command, env=environment(**env), stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, text=True)
    if kill:
        time.sleep(kill[0])
        for pid in children_of(job.pid):
            os.kill(pid, kill[1])
    said = job.communicate(timeout=120)[1]
    return out, said


def ask(path, *flags, columns=None):
    env = environment(LINES="24", **({"COLUMNS": str(columns)} if columns else {}))
    done = subprocess.run([TOOL, "report", *flags, path], env=env, capture_output=True, text=True, timeout=120)
    check(done.returncode in (0, 5), path, flags, done.returncode, done.stderr)
    return done.stdout


def fits(name, text, columns=80, lines=24):
    check(lines is None or len(text.splitlines()) <= lines, name, "takes", len(text.splitlines()), "lines:\n" + text)
    wide = [line for line in text.splitlines() if len(line) > columns]
    check(not wide, name, "is wider than", columns, wide)
    check("\x1b" not in text and text.isascii(), name, "is not plain:", text)
    check(not [line for line in text.splitlines() if line != line.rstrip()], name, "has blanks at ends of lines")


def read(name, path):
    """The first screen of a recording, which must hold for every one."""
    text = ask(path)
    fits(name, text)
    for columns in (40, 57, 80, 100, 200):
        fits("%s at %d columns" % (name, columns), ask(path, columns=columns), columns, None if columns < 80 else 24)
    screen = Screen(text)
    for total in screen.percents():
        check(total == 100, name, "parts add up to", total, text)
    check(screen.sure.startswith("SURE   "), name, "does not say how sure it is", text)
    check(not screen.unanswered(), name, "does not say", screen.unanswered(), text)
    return screen


def number(text):
    """Seconds of "18.6 ms"."""
    value, unit = text.split()
    return float(value) * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}[unit]


def gain(name, screen):
    """The step's time with and without, which the factor and the range must fit."""
    row = screen.rows.get("gain", "")
    if re.search(r"step [\d.]+( \w+)? -> [\d.]+( \w+)? to [\d.]+ \w+(;|$)", row):  # only between what
        return
    m = re.search(r"step ([\d.]+)( \w+)? -> (at best |about )?([\d.]+ \w+)(?: \(([^)]*)\))?, ([\d.]+)x", row)
    check(m, name, "says no gain:", screen.text)
    if not m:
        return
    after = number(m[4])
    before = number(m[1] + (m[2] or " " + m[4].split()[1]))
    check(abs(before / after / float(m[6]) - 1) < 0.06, name, "factor", row)
    if m[5] and m[5].startswith("at best"):
        check(number(m[5][8:]) <= after, name, "bound", row)
    elif m[5]:
        high = m[5].split(" to ")[1]
        low = m[5].split(" to ")[0]
        check(number(low if " " in low else low + " " + high.split()[1]) <= after * 1.01 and after <= number(high) * 1.01, name, "range", row)


def good(name, path, cls, blame, why, todo):
    """One that has a verdict."""
    s = read(name, path)
    print("%-14s %s" % (name, s.head))
    check(s.cls == cls and s.sureness, name, "class", s.head, "not", cls)
    label = [k for k in ("stage", "line", "copies", "kernel", "rank") if k in s.rows]
    check(label and any(re.search(blame, s.rows[k]) for k in label), name, "blames", {k: s.rows[k] for k in label}, "not", blame)
    check(re.search(why, s.rows.get("why", "")), name, "why", s.rows.get("why"))
    check(s.next and re.search(todo, " ".join(s.text[s.text.index("DO NEXT"):].split())), name, "what to do", s.next)
    check(re.search(r"\d+ of \d+ steps? agree", s.sure) and re.search(r"tier [ABC]", s.sure) and "lost" in s.sure, name, s.sure)
    if cls in ("compute-bound", "balanced"):
        check(re.search(r"(at most 1\.\d\dx( in the steps)?|none) without cheaper computing", s.rows.get("gain", "")), name, "gain", s.rows.get("gain"))
    else:
        gain(name, s)
    return s


N = "60"
path, said = record("input", [TRAIN, N, "get:12:0 h2d:1e5:pinned k:5 sync"])
s = good("input", path, "input-bound", r"asked for in main, train\.c:\d+|no line of the program", "waits .* for its batch", "ahead, in other threads")
check(re.match(r"train   60 steps   .*exit 0", s.title), s.title)
# What `run` prints at the end is the head of the same screen.
told = [line[len("tfhook: "):] for line in said.splitlines() if line.startswith("tfhook: ")]
told = told[told.index(s.head) if s.head in told else 0:]
check(s.head in told and len(told) <= 12 and "DO NEXT" in said and "  gain " in said, "run:", said)
check(all(len(line) <= 72 for line in told if "/" not in line and "TFHOOK_" not in line), "run is wide:", said)

path, _ = record("copies", [TRAIN, N, "h2d:30e6:pageable k:5 sync"])
good("copies", path, "transfer-bound", r"cuMemcpyHtoD.* per step.* [GM]B/s, from pageable", "copies block", "pinned memory")
path, _ = record("launches", [TRAIN, "40", "get:0.2:4 k:1 k:0.003:600 sync"], SIM_LAUNCH_COST="12us")
good("launches", path, "host-bound", r"main, train\.c:\d+, in train_step", r"issuing 601 launches takes", "graph, fuse kernels")
path, _ = record("computing", [TRAIN, N, "get:1:4 k:2:1:spin_gemm k:9:1:spin_conv lag:2"])
good("computing", path, "compute-bound", "spin_conv takes 8. % of the computing", "device is busy", "cheaper algorithm")
path, _ = record("untimed", [TRAIN, N, "sleep:8 h2d:1e5:pinned k:5 sync"], TFHOOK_CUPTI="off")
s = good("untimed", path, "host-bound", r"between cuStreamSynchronize at libtrain\.c:\d+ do_sync and cuMemcpyHtoDAsync_v2 at libtrain\.c", "program", "sleep|see what it does|less often|ahead")
check("no device times (tier C), switched off by TFHOOK_CUPTI=off" in s.sure and "at best" in s.rows["gain"], "untimed:", s.text)
path, _ = record("exchange", RANKS + [N, "k:5 coll:6 sync", "k:5 coll:6 sync"])
s = read("exchange", path)
check(s.cls == "communication-bound" and "2 ranks, 1 host" in s.title and "exchange" in s.text, "exchange:", s.text)
gain("exchange", s)
path, _ = record("late", RANKS + [N] + ["k:5 coll:1 sync"] * 3 + ["sleep:9 k:5 coll:1 sync"])
good("late", path, "host-bound", "rank 3 of 4.*all others wait for it", "every step|program", "sleep|less often|ahead")

# The program's own code, by its line.
with open(os.path.join(TMP, "own.py"), "w") as f:
    f.write('''import sys
sys.path.insert(0, %r)
from device import Device
d = Device()

def augment():
    x = 0
    for i in range(120000):
        x += i * i %% 7
    return x

for i in range(120):
    augment()
    d.up()
    d.run(2)
    d.down()
''' % (SRC + "/tests/jobs"))
path, _ = record("own", [sys.executable, os.path.join(TMP, "own.py")])
s = read("own", path)
check(s.cls in ("host-bound", "input-bound"), "own:", s.head)
if "looks)" in ask(path, "--all"):  # somebody had time to look
    check(re.search(r"augment, own\.py:(8|9): ", s.rows.get("line", "")), "own:", s.text)
gain("own", s)

# Nothing to judge: what is missing, and what would help.
path, _ = record("one", [TRAIN, "1", "k:1 sync"])
s = read("one", path)
check(s.cls == "unclassified" and "no repeating step" in s.rows.get("missing", ""), "one:", s.text)
check(s.next and "longer run" in s.next[0] and "no step could be judged" in s.sure, "one:", s.text)
check(" 0 steps " in s.title, s.title)

# Ends that are no good ones: what ended it, what it was in, and the verdict on the steps until then.
path, _ = record("killed", [TRAIN, "100000", "sleep:3 k:9 sync"], kill=(2.5, signal.SIGKILL))
s = read("killed", path)
check("signal 9" in s.title and "ENDED BY SIGNAL 9 (Killed)" in s.text and s.cls != "unclassified", "killed:", s.text)
check(s.text.index("ENDED BY") < s.text.index(s.head), "killed: the end comes first")
path, _ = record("hung", [TRAIN, "100000", "k:9 sync"], kill=(4, signal.SIGTERM), SIM_HANG_AFTER="40")
s = read("hung", path)
check("ENDED BY SIGNAL 15" in s.text, "hung:", s.text)
check(re.search(r"cuStreamSynchronize.*for [\d.]+ s; last kernel spin", s.rows.get("inside", "")), "hung in:", s.text)

# Recordings of others and of earlier versions.
for path in sorted(glob.glob(SRC + "/tests/golden/*.tft") + glob.glob((os.environ.get("TFH_TRACES") or "/nowhere") + "/*.*")):
    if path.endswith(".md"):
        continue
    name = os.path.basename(path)
    s = read(name, path)
    print("%-14s %s" % (name[:14], s.head))
    check(s.cls and (s.sureness or s.cls == "unclassified"), name, s.text)
    if "trace" in name and s.cls == "compute-bound":
        check(re.fullmatch(r"at most [\d.]+x without cheaper computing", s.rows["gain"].strip()), name, s.text)
    elif "trace" in name:
        gain(name, s)
    if "trace" in name:
        check("PyTorch's trace" in ask(path, columns=120).splitlines()[0] and "run " not in s.rows["gain"], name, s.text)

sys.exit(failed())
