#!/usr/bin/env python3
"""Without CUPTI's records of calls (CUDA 11, 12 before 12.6) the call that issued an op is found by the order of CUPTI's
numbers: where one is named it is the right one, also with many streams and threads; only calls that threads made at the
same time may have none. After a loss of ops or of calls, and after a while without device times, calls are known again as
soon as the device has been idle."""
import sys

from devicetimes import GRAPHS, LOOP, build, check, failed, record, shift_of

BURST = """
import ctypes as C, time
cu = C.CDLL("libcuda.so.1")
context, module, function, stream = C.c_void_p(), C.c_void_p(), C.c_void_p(), C.c_void_p()
text = b".version 7.0\\n.target sm_50\\n.address_size 64\\n.visible .entry spin(.param .u64 ns)\\n{\\n\\tret;\\n}\\n"
assert cu.cuInit(0) == 0 and cu.cuCtxCreate_v2(C.byref(context), 0, 0) == 0
assert cu.cuModuleLoadData(C.byref(module), text) == 0
assert cu.cuModuleGetFunction(C.byref(function), module, b"spin") == 0
assert cu.cuStreamCreate(C.byref(stream), 1) == 0
ns = C.c_uint64(20000)
arguments = (C.c_void_p * 1)(C.addressof(ns))
def launch():
    assert cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, None) == 0
launch()
for n, pause in ((3000, 2.5), (300, 0.01)):
    for _ in range(n):
        launch()
    assert cu.cuStreamSynchronize(stream) == 0
    time.sleep(pause)
"""


# Two threads take turns, in streams that are both behind: forward and backward of a training. The pause keeps their calls
# further apart than a runtime call takes its number ahead (5 us): closer ones count as made at the same time.
TURNS = BURST[:BURST.index("launch()\nfor n")].replace("import ctypes as C, time", "import ctypes as C, threading, time") + """
other = C.c_void_p()
assert cu.cuStreamCreate(C.byref(other), 1) == 0
turn = [threading.Semaphore(1), threading.Semaphore(0)]
def work(me):
    global stream
    assert cu.cuCtxSetCurrent(context) == 0
    for i in range(100):
        turn[me].acquire()
        for k in range(3):
            ns = C.c_uint64(1000 if (i + k) % 7 else 300000)
            arguments = (C.c_void_p * 1)(C.addressof(ns))
            assert cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, (stream, other)[(i + k) % 2], arguments, None) == 0
        if i % 20 == 19:
            assert cu.cuCtxSynchronize() == 0
        time.sleep(0.0001)
        turn[1 - me].release()
threads = [threading.Thread(target=work, args=(me,)) for me in (0, 1)]
[t.start() for t in threads]
[t.join() for t in threads]
assert cu.cuCtxSynchronize() == 0
"""
# The recorder's own thread gets no processor while a ring fills, and the device is behind.
OVERFLOW = BURST[:BURST.index("launch()\nfor n")].replace("import ctypes as C, time", "import ctypes as C, os, time") + """
def turn():
    for i in range(40):
        ns.value = 1000 + i % 3 * 500
        launch()
    assert cu.cuStreamSynchronize(stream) == 0
def others(policy):
    for tid in map(int, os.listdir("/proc/self/task")):
        if tid != os.getpid():
            os.sched_setaffinity(tid, os.sched_getaffinity(0))
            os.sched_setscheduler(tid, policy, os.sched_param(0))
for _ in range(20):
    turn()
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
others(os.SCHED_IDLE)
ns.value = 2000000
for i in range(60000):
    cu.cuStreamQuery(stream)
    if i % 400 == 0:
        launch()
others(os.SCHED_OTHER)
for _ in range(20):
    turn()
    time.sleep(0.01)
"""


def judged(name, *command, **env):
    """Ops with the right call, with a wrong one, with none."""
    ops, info, truth, calls = record(name, *command, lib="libcupti.so.12", SIM_CUPTI_VERSION="19",
                                     SIM_FAIL="cuptiActivityEnableDriverApi:*:1", **env)
    known = [op for op in ops if op["call"] >= 0]
    shift = shift_of(known, calls) if known else 0
    right = wrong = 0
    for op in known:
        call = calls[op["correlation"]]
        here = op["tid"] == call["tid"] and op["issue0"] - shift <= call["t0"] + 1000 and \
            op["issue1"] - shift >= call["t1"] - 1000
        right, wrong = right + here, wrong + (not here)
    print(name, "right", right, "wrong", wrong, "none", len(ops) - len(known), "lost", info["dropped"])
    check(not wrong, name, wrong, "of", len(ops), "ops have a wrong call")
    return ops, info


for what, command, faults in (("loop", LOOP, {}), ("graphs", GRAPHS, {}), ("driver", [f"{build}/tests/sim/driver"], {}),
                              ("shuffled", LOOP, {"SIM_CUPTI_SHUFFLE": "20"})):
    found, _ = judged(what, *command, **faults)
    check(all(op["call"] >= 0 for op in found), what, "ops without a call")
judged("threads", f"{build}/tests/sim/threads")
found, _ = judged("turns", sys.executable, "-c", TURNS)
check(len(found) == 600 and all(op["call"] >= 0 for op in found), "turns: ops without a call")
STEPS = [f"{build}/tests/jobs/client_loop", "--steps", "120", "--spin", "1500", "--launches", "2", "--sync", "ctx", "--mark", "1"]
found, told = judged("window", *STEPS, TFHOOK_CUPTI="window")
check(sum(op["call"] >= 0 for op in found) > len(found) / 2, "window", told, len(found))
found, told = judged("loss", sys.executable, "-c", BURST, SIM_CUPTI_DROP_AFTER="1000")
check(told["dropped"] > 1000 and told["unissued"] > 0, "loss", told)
check(all(op["call"] >= 0 for op in found[-300:]), "loss: not known again", [op["call"] for op in found[-300:]][:20])
found, told = judged("overflow", sys.executable, "-c", OVERFLOW, TFHOOK_RING_TOTAL="1M")
check(told["unissued"] > 0 and all(op["call"] >= 0 for op in found[-400:]), "overflow: not known again", told)
sys.exit(failed())
