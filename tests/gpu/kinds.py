#!/usr/bin/env python3
"""Question 10: the changes that tfhook makes to CUPTI's kinds while a job runs (records of kernels and calls off and on, flushes,
from a thread that is not the job's; whole graphs from the start) do not crash a process that launches kernels or graphs all
the while. It reports which other changes do: turning GRAPH_TRACE on later, for one."""
import concurrent.futures
import sys

import gpu
from gpu import check, compile, cupti, failed, need_gpu, report, run

need_gpu("that turning CUPTI's kinds off and on beside launches of kernels and graphs crashes nothing (question 10)")
library = f"{gpu.DRIVER}/libcupti.so.13" if gpu.DRIVER else cupti()
if not library:
    print("no libcupti")
    sys.exit(77)
program = compile("kinds")
MADE = ["kernel", "kernel thread kernels", "kernel thread all", "kernel launcher all", "kernel thread flush",
        "graph", "graph before", "graph thread kernels", "graph thread all", "graph launcher all", "graph thread flush",
        "graph before thread all", "graph whole", "graph whole thread all"]
# All but the fourth crashed (H200, driver 580, CUPTI 13.0): GRAPH_TRACE must be on before a graph is instantiated.
OTHER = ["graph thread graphs", "graph launcher graphs", "graph before thread graphs", "graph whole thread graphs",
         "graph before whole"]


def one(how):
    what, *words = how.split()
    done, _, _ = run(how.replace(" ", "-"), [program, library, what, "3", *words], timeout=60)
    return how, done[0], done[1].strip()


# A simulated driver has as many processors as this machine; a real GPU takes turns.
with concurrent.futures.ThreadPoolExecutor(2 if gpu.DRIVER else 8) as pool:
    for how, status, said in pool.map(one, MADE + OTHER):
        check(how in OTHER or status == 0, how, "ended with", status, said)
        report(question=10, change=how, status=status, said=said)
sys.exit(failed())
