#!/usr/bin/env python3
"""torch's ranges become records: get-nexts, optimizer steps, the program's own, backward passes; each once, also where they end on
another thread, and none of a process that only has ranges of its own, as a loader's worker. A torch of another form is left
alone. The program's results and output are as without the preload. A stand-in for torch's library, built here.
"""
import os
import shutil
import subprocess
import sys

SRC = os.environ.get("TFH_SRC") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SRC, "tests", "tf"))
from tfrun import BUILD, CALL, NAME_ITERATOR, NAME_OP, NAME_STRING, RANGE, TMP, Outcome, check  # noqa: E402

MADE = os.path.join(BUILD, "tests", "frameworks")
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def run(case, library="libtorch_cpu.so", **environment):
    command = [sys.executable, os.path.join(SRC, "tests", "frameworks", "mock_loop.py"), os.path.join(MADE, library), case]
    plain = Outcome(command, preload=False) if case not in ("plain", "late", "edges") else None
    done = Outcome(command, **environment)
    if plain and case not in ("threads", "exit"):
        check((plain.status, plain.out, plain.err) == (done.status, done.out, done.err),
              "%s: %s, %s" % (case, plain.err, done.err))
    return done


def ranges(done, name):
    return [r for r in done.records if r["kind"] == RANGE and done.name(r, NAME_STRING, r["w"][0]) == name]


def told(done):
    """What the recording says of torch's ranges."""
    out = subprocess.run([os.path.join(BUILD, "bin", "tfhook"), "info", done.files[0]], stdout=subprocess.PIPE,
                         universal_newlines=True, check=True).stdout
    return [line.strip() for line in out.splitlines() if "PyTorch's ranges" in line]


for case in ("plain", "late"):
    done = run(case)
    late = case == "late"  # nothing looks a module up: from the first backward pass on
    check((done.status, done.out, done.err) == (0, "made\n", ""), "%s: %s %s" % (case, done.status, done.err))
    gets = done.calls(LOADER)
    check(len(gets) == 50 - late, "%s: %d get-nexts" % (case, len(gets)))
    check({done.name(r, NAME_ITERATOR, r["w"][0]) for r in gets} == {LOADER}, "the iterator's name")
    check(all(r["end"] - r["begin"] >= 1000000 and r["depth"] == 0 for r in gets), "a get-next lasts as long as its range")
    check(len(ranges(done, "Optimizer.step#SGD.step")) == 50, "%s: optimizer steps" % case)
    check(len(ranges(done, "Optimizer.zero_grad#SGD.zero_grad")) == 50 - late, "%s: zero_grad" % case)
    check(len(ranges(done, "step 7")) == 1, "%s: the program's ranges" % case)
    passes = done.calls("Engine::execute")
    check(told(done) == ["PyTorch's ranges: recorded"], "%s: the recording says %s" % (case, told(done)))
    check(len(passes) == 50, "%s: %d backward passes" % (case, len(passes)))
    check({done.name(r, NAME_OP, r["w"][0]) for r in passes} == {"Engine::execute"}, "the op's name")

done = run("edges")
check((done.status, done.out) == (0, "made\n"), "edges: %s %s" % (done.status, done.err))
check(len(done.files) == 1, "the child of a loader records: %s" % done.files)
check(len(done.calls(LOADER)) == 2, "edges: get-nexts")
check(len(done.calls("Engine::execute")) == 2, "a failed backward pass counts")
check([r["w"][1] for r in ranges(done, "gloo:all_reduce")] == [3], "a range that ends on another thread is an exchange")
check(not ranges(done, "left open"), "a range that never ends")

done = run("ends")
gets = sorted(done.calls(LOADER), key=lambda r: r["end"])
check([bool(r["flags"] & 16) for r in gets] == [False] + ([False] * 4 + [True]) * 3 + [False] * 2 + ([True] + [False] * 2) * 2 + [True, False] + [False],
      "get-nexts that end an iterator: %s" % [r["flags"] for r in gets])

check(not run("worker").files, "a process with ranges of its own only is recorded")
done = run("threads")
check(len(ranges(done, "inner")) == len(ranges(done, "outer")) == 16000, "ranges of eight threads")
done = run("exit")
check(done.status == 3 and len(done.calls(LOADER)) == 1, "an exit inside a range: %s" % done.status)
for _ in range(1000 if os.environ.get("TFH_FULL") else 10):
    check(run("exit").status == 3, "a start and an end")
check(not run("off", TFHOOK_TORCH="0").files, "TFHOOK_TORCH=0")

old = os.path.join(TMP, "old")
os.mkdir(old)
shutil.copy(os.path.join(MADE, "liboldtorch.so"), os.path.join(old, "libtorch_cpu.so"))
done = run("old", os.path.join(old, "libtorch_cpu.so"))
check(done.status == 0 and len(done.calls("Engine::execute")) == 1, "another form: %s" % done.err)
check("not recorded" in told(done)[0], "another form: the recording says %s" % told(done))
