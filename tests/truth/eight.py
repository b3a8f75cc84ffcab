#!/usr/bin/env python3
"""Eight scenarios of the table in scenarios.py, one of each class and the traps between them, once and without their twins:
class and cause are those that the job was made with. A timing fails nothing, and a job that a crowded machine
disturbed is run again, with other sizes, up to twice. `make truth` runs all, with twins."""
# serial
# timeout: 400
import os
import random
import sys

import scenarios
import truth

EIGHT = ["classic-network-input", "classic-large-copy", "classic-callback", "many-kernels", "exchange", "hidden-input",
         "hidden-copies", "tiny-copies"]


def once(scenario):
    """What is wrong with the verdict."""
    run = truth.Run(scenario, scenario.job, True).end()
    wrong, steps = truth.check(run)
    verdict = run.report["verdict"]
    print("%-22s %-20s %-20s %-24s tier %s, %3.0f %% of %d steps" % (
        scenario.name, scenario.cls, verdict["class"], verdict["cause"], verdict["tier"],
        100 * sum(a == b for a, b in steps) / max(1, len(steps)), len(steps)), flush=True)
    return wrong


def main():
    if os.environ.get("TFH_SAN") or not os.path.exists(truth.TRAIN):
        print("needs the recorder and the simulated GPU, without sanitizers")
        sys.exit(77)
    seed = os.environ.get("SEED") or str(random.SystemRandom().randrange(1, 10**6))
    failed = 0
    print("seed", seed)
    for s in scenarios.TABLE:
        if s.name not in EIGHT or not truth.available(s):
            continue
        for seed_of in (seed, seed + " again", seed + " and again"):
            try:
                wrong = once(scenarios.draw(s, seed_of))
            except truth.Wrong as e:
                wrong = [str(e)]
            if not wrong:
                break
            print("    " + "\n    ".join(wrong), flush=True)
        failed += bool(wrong)
    sys.exit(failed != 0)


main()
