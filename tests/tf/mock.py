#!/usr/bin/env python3
"""The wrappers change nothing in a stand-in TensorFlow, whichever way it returns a Status and however its calls end.

Exceptions, pthread_exit, longjmp and backtraces pass through them; a function that no library defines is no error; the
batches, stages, eager calls (with names) and session runs (twelve arguments) are all in the trace.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tfrun import (AGG, CALL, F_END, F_FAILED, HERE, NAME_OP, NAME_STAGE, Outcome, STAGE, check)  # noqa: E402

# A compiler that knows the op's class calls past DoCompute.
CONSUMER = ("IteratorGetNextOp::DoCompute", "IteratorResource::GetNext")


def both(library, case, n, *more):
    command = [os.path.join(HERE, "mock"), library, case, str(n)] + list(more)
    plain, run = Outcome(command, preload=False), Outcome(command)
    check(plain.status == 0, "%s fails by itself: %s %s" % (command, plain.status, plain.err))
    check((plain.status, plain.out, plain.err) == (run.status, run.out, run.err),
          "%s: %s %s %s" % (command, run.status, run.out, run.err))
    return run


for name in ("libmocktf.so", "libmocktfreg.so"):
    library = os.path.join(HERE, name)

    run = both(library, "batches", 50)
    consumers = run.calls(*CONSUMER)
    check(len(consumers) == 102, "%s: %d consumer calls" % (name, len(consumers)))
    check(len([r for r in consumers if r["flags"] & F_END]) == 2, "%s: ends of sequence" % name)
    check(len({r["w"][0] for r in consumers}) == 2, "%s: iterators" % name)
    stages = {text for key, text in run.names.items() if key[1] == NAME_STAGE}
    check(stages == {"Iterator::Root#name=mock,shapes=[?]#", "Iterator::Root::BatchV2#name=mock,shapes=[?]#",
                     "Iterator::Root::BatchV2::Range#name=mock,shapes=[?]#"}, "%s: stages %s" % (name, stages))
    counted = sum(r["ctx"] for r in run.records if r["kind"] == AGG) + len(run.calls(STAGE))
    check(counted == 3 * 102, "%s: %d stage calls" % (name, counted))

    run = both(library, "batches", 5, "300")
    slow = [r for r in run.calls(STAGE) if run.name(r, NAME_STAGE, r["w"][1]).startswith("Iterator::Root::BatchV2::R")]
    check(len(slow) == 12, "%s: %d slow calls of the source" % (name, len(slow)))
    check(all(r["depth"] == 3 and r["end"] - r["begin"] > 290000 for r in slow), "%s: %s" % (name, slow))
    rate = (slow[0]["end"] - slow[0]["begin"]) / slow[0]["w"][2]
    # Every one of these calls is long enough for a record of its own, so self time is what the children leave over.
    calls = run.calls(*CONSUMER) + run.calls(STAGE)
    for r in calls:
        children = sum(c["end"] - c["begin"] for c in calls if c["thread"] == r["thread"] and
                       c["depth"] == r["depth"] + 1 and r["begin"] <= c["begin"] and c["end"] <= r["end"])
        over = r["end"] - r["begin"] - children - r["w"][2] * rate
        check(abs(over) < 0.01 * (r["end"] - r["begin"]), "%s: self time off by %s in %s" % (name, over, r))

    run = both(library, "faults", 20)
    failed = [r for r in run.calls(*CONSUMER) if r["flags"] & F_FAILED]
    check(len(failed) == 4, "%s: %d failed calls" % (name, len(failed)))  # three exceptions, one pthread_exit
    check(all(r["depth"] == 0 for r in run.calls(*CONSUMER)), "%s: depth left behind" % name)

    run = both(library, "eager", 300)
    ops = [run.name(r, NAME_OP, r["w"][0]) for r in run.calls("TFE_Execute")]
    check(ops == ["MatMul", "AddV2", "__inference_train_step_42"] * 100, "%s: ops %s" % (name, ops[:5]))

    run = both(library, "session", 20)
    runs = run.calls("TF_SessionRun")
    check(len(runs) == 20 and run.name(runs[0], NAME_OP, runs[0]["w"][0]) == "train_op,loss", "%s: %s" % (name, runs))

run = both(os.path.join(HERE, "libloader.so"), "loader", 200)
check(len(run.calls("tf_data_iterator_get_next")) == 200, "loader calls")
run = both("-", "loader", 200)
check(not run.files, "a trace of nothing")
run = Outcome([os.path.join(HERE, "mock"), os.path.join(HERE, "libmocktf.so"), "eager", "100"], TFHOOK="0")
check(run.status == 0 and not run.files, "TFHOOK=0")
