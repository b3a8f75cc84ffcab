"""Batches come from a pool of worker processes, which sleep in one function and compute in another. The last line of
output is JSON: seconds that the workers spent in each, and for how long they could have run and had no processor ("waited").

usage: workers.py fork|spawn|forkserver SECONDS [hidden | anew]    hidden: the workers may not be read by others;
anew: each step makes a pool of its own
"""
import ctypes
import json
import multiprocessing
import os
import sys
import time

from waited import waited_s

PR_SET_DUMPABLE = 4


def hide(all_here):
    if len(sys.argv) > 3 and ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0):
        sys.exit("prctl")
    all_here.wait()


def augment():
    end = time.perf_counter() + 0.012
    while time.perf_counter() < end: pass  # noqa: E701


def decode():
    time.sleep(0.002)


def item(_):
    waited, spent, since = waited_s(), {}, time.perf_counter()
    for part in decode, augment:
        part()
        now = time.perf_counter()
        spent[part.__name__], since = now - since, now
    return {**spent, "waited": waited_s() - waited}


def main():
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "jobs"))
    from device import Device
    d, total = Device(), {}
    if sys.argv[3:] == ["anew"]:
        end = time.perf_counter() + float(sys.argv[2])
        while time.perf_counter() < end:
            with multiprocessing.Pool(2) as pool:
                pool.map(item, range(4))
            d.up()
            d.train(1)
            d.down()
        return
    how = multiprocessing.get_context(sys.argv[1])
    with how.Pool(2, hide, (how.Barrier(2),)) as pool:
        pool.apply(int)  # both are at work: on a crowded machine one needs seconds to start
        end = time.perf_counter() + float(sys.argv[2])
        while time.perf_counter() < end:
            for spent in pool.imap(item, range(16)):
                d.up()
                d.train(1)
                d.down()
                for part in spent:
                    total[part] = total.get(part, 0) + spent[part]
    print(json.dumps(total))


if __name__ == "__main__":
    main()
