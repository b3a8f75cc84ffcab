#!/usr/bin/env python3
"""What must hold: whatever flags, values and paths a command is given, it ends within 20 s, not by a signal, with a documented
status, and says nothing on stderr but lines that begin with "tfhook: ", or the help. LINES=n for more lines, SEED=n."""
import os
import random
import subprocess
import sys

BUILD, SRC, TMP = os.environ["TFH_BUILD"], os.environ["TFH_SRC"], os.environ["TFH_TMP"]
LINES, SEED = int(os.environ.get("LINES", "150")), int(os.environ.get("SEED", "1"))
STATUS = {"run": {0, 1, 125, 126, 127}, "doctor": {0, 1, 2}}
OTHERS = {0, 2, 3, 4, 5}
FLAGS = ["--json", "--steps", "--csv", "--wide", "-w", "--strict", "--color", "--color=always", "--color=", "--chunks", "-o",
         "--output", "--output=", "--quiet", "-q", "--audit", "--format", "--format=slurm", "--help", "-h", "-V", "--", "-", "--x",
         "-wq", "-oq", "--steps=4", "--steps=-1", "--no-such-flag", "-\xff", "--=", "---", "--color=\x1b[31m"]
WORDS = ["", ".", "/", "/dev/null", "/dev/zero", "/proc/self/mem", "/nonexistent", "empty", "fifo", "link", "loop", "dir", "file.json",
         "file.tft", "file.xplane.pb", "long" + "g" * 5000, "\xff\xfe", "a\nb", "999999999", "-1", "0", "bash", "start", "gpu", "on",
         "report", "\x1b]0;x\x07", "%s%n", "../" * 40, "out"]
# Not tried: demo's own jobs, and --left, which looks after what is really left on this machine.
COMMANDS = ["run", "report", "ctl", "info", "import", "verify", "repair", "doctor", "env", "completions", "help", "version", "demo",
            "", "reprot", "--help", "-V", "\xff"]


def prepare():
    os.chdir(TMP)
    os.mkdir("dir")
    os.mkdir("empty")
    os.mkfifo("fifo")
    os.symlink("nowhere", "link")
    os.symlink("loop", "loop")
    seeds = os.path.join(SRC, "tests/fuzz/seeds")
    for seed, name in (("reader/copies", "file.tft"), ("reader/marks", "dir/p.a.1.0.tft"), ("xplane/one", "file.xplane.pb")):
        os.symlink(os.path.join(seeds, "fuzz_" + seed), name)
    with open(os.path.join(seeds, "fuzz_kineto/new"), "rb") as f, open("file.json", "wb") as out:
        out.write(f.read()[1:])


def line(draw):
    command = draw.choice(COMMANDS)
    words = [draw.choice(FLAGS) if draw.random() < 0.4 else draw.choice(WORDS) for _ in range(draw.randrange(5))]
    if command == "ctl":
        words = [w for w in words if not w.isdigit() or w == "999999999"]
    if command == "demo":
        words.append("bogus")
    if command == "run":  # the program, if one is started, ends at once
        words = [w for w in words if w.startswith("-") or w == "/nonexistent"] + draw.choice([[], ["true"], ["--", "false"]])
    return [command] + [w.encode("utf-8", "surrogateescape") if "\xff" not in w else w.encode("latin1") for w in words]


def fault(argv):
    """What is wrong with one line, or nothing."""
    try:
        p = subprocess.run([BUILD + "/bin/tfhook"] + argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, timeout=20)
    except subprocess.TimeoutExpired:
        return "it does not end"
    if p.returncode not in STATUS.get(argv[0], OTHERS | ({1} if argv[0] == "demo" else set())):
        return "status %d" % p.returncode
    if b"AddressSanitizer" in p.stderr or b"runtime error" in p.stderr:
        return p.stderr.decode(errors="replace")[-2000:]
    if any(c < 32 and c != 10 for c in p.stderr):
        return "control characters: %r" % p.stderr
    return ""


prepare()
draw, bad = random.Random(SEED), 0
for _ in range(LINES):
    argv = line(draw)
    why = fault(argv)
    if why:
        print("FAIL: %r: %s" % (argv, why))
        bad += 1
sys.exit(bad != 0)
