#!/usr/bin/env python3
"""When device times are on: under `window` for 20 steps of 1,000, by `tfhook ctl gpu on|off` on a running job (what was off
before `gpu on --steps` is off after it), never in a forked child, not after a bare _exit. A library that only the driver loads gets device times and says that it has no
more. A profiler inside the job keeps its whole trace, with tfhook's beside it. NVTX ranges are recorded."""
import json
import os
import subprocess
import sys
import time

from devicetimes import build, check, compare, failed, read, read_truth, record, start, tmp

INJECT = f"{build}/tests/hook/inject"


def ctl(run, *words):
    return subprocess.run([f"{build}/bin/tfhook", "ctl", run, *words], stderr=subprocess.DEVNULL).returncode


def window():
    command = [f"{build}/tests/jobs/client_loop", "--steps", "120", "--spin", "8000", "--sync", "ctx", "--mark", "1"]
    ops, info, truth, calls = record("window", *command, TFHOOK_CUPTI="window")
    check(20 <= len([op for op in ops if op["kind"] == 1]) < 100, "window", len(ops), "of", len(truth))
    check(len(info["spans"]) == 1, "window", info["spans"])
    # CUPTI may record the first op of a window, or the last one, without its call, which lies outside.
    compare("window", ops, info, truth, calls, lost=len(truth) - len(ops), issued=False)
    check(sum(op["call"] < 0 for op in ops) < 5, "window: calls")
    # Only preloaded, auto means window.
    os.mkdir(f"{tmp}/plain")
    _, truth, job = start("auto", *command, TFHOOK_RUN="", TFHOOK_DIR=f"{tmp}/plain")
    job.wait()
    ops, _ = read(f"{tmp}/plain/{os.listdir(f'{tmp}/plain')[0]}")
    check(20 <= len(ops) < len(read_truth(truth)[0]), "auto", len(ops))


def control():
    run, truth, job = start("control", f"{build}/tests/jobs/client_loop", "--steps", "700", "--spin", "5000", "--sync",
                            "ctx", "--mark", "1", TFHOOK_CUPTI="off")
    time.sleep(0.7)
    check(ctl(run, "gpu", "on", "--steps", "30") == 0, "gpu on --steps")
    time.sleep(1.3)
    check(ctl(run, "gpu", "on") == 0, "gpu on")
    time.sleep(0.5)
    check(ctl(run, "gpu", "off") == 0, "gpu off")
    check(job.wait() == 0, "control ended with", job.returncode)
    ops, info = read(run)
    check(len(info["spans"]) == 2, "control", info)
    kernels = [op for op in ops if op["kind"] == 1]
    check(60 < len(kernels) < 500, "control", len(kernels))
    compare("control", ops, info, *read_truth(truth), lost=len(read_truth(truth)[0]) - len(ops),
            issued=False)
    check(sum(op["call"] < 0 for op in ops) < 5, "control: calls")


def off_again():
    """`gpu on --steps` of a job whose device times had been switched off."""
    run, truth, job = start("off-again", f"{build}/tests/jobs/client_loop", "--steps", "1000", "--spin", "5000", "--sync", "ctx", "--mark", "1",
                            TFHOOK_CUPTI="on")
    time.sleep(0.7)
    check(ctl(run, "gpu", "off") == 0, "gpu off")
    time.sleep(0.7)
    check(ctl(run, "gpu", "on", "--steps", "30") == 0, "gpu on --steps after gpu off")
    check(job.wait() == 0, "off ended with", job.returncode)
    ops, info = read(run)
    calls = sorted(read_truth(truth)[1])
    check(len(info["spans"]) == 2 and max(op["correlation"] for op in ops) < calls[-200], "off again", info["spans"], len(ops), len(calls))


def life():
    ops, info, truth, calls = record("fork", INJECT, "20", "fork", SIM_CUPTI_FORK_HANG="1")
    compare("fork", ops, info, truth, calls)
    # CUPTI is not called by a thread that has left a driver call for a signal handler.
    for i in range(12):
        _, _, job = start(f"signal{i}", INJECT, "100000000", "signal", SIM_TRUTH="")
        try:
            job.wait(timeout=20)
        except subprocess.TimeoutExpired:
            job.kill()
        check(job.wait() == 0, "exit in a signal handler ended with", job.returncode)
    run, truth, job = start("_exit", INJECT, "1500", "_exit")
    check(job.wait() == 0, "_exit ended with", job.returncode)
    ops, info = read(run)
    ends = max((b for _, b, _ in info["spans"]), default=0)
    known = read_truth(truth)[0]
    check(len(ops) > 50 and ends, "_exit", len(ops), len(known), info)


def injected():
    run, truth, job = start("injected", INJECT, "50", preload=False,
                            CUDA_INJECTION64_PATH=f"{build}/lib/libtfhook.so")
    check(job.wait() == 0, "injected ended with", job.returncode)
    ops, info = read(run)
    known, calls = read_truth(truth)
    check(not info.get("dependencies") and len(ops) >= len(known) - 5, "injected", len(ops), len(known), info)
    check(all(op["issue1"] > op["issue0"] > -1e9 for op in ops), "injected: calls", ops[:2])
    out = subprocess.run([f"{build}/bin/tfhook", "info", run], stdout=subprocess.PIPE, text=True).stdout
    check("tier B" in out, "injected: info", out)
    # A job that is over before its recording has begun waits for that.
    for i in range(8):
        run, truth, job = start(f"brief{i}", INJECT, "1", preload=False, CUDA_INJECTION64_PATH=f"{build}/lib/libtfhook.so")
        check(job.wait() == 0, "brief ended with", job.returncode)
        ops, info = read(run)
        check(len(ops) == len(read_truth(truth)[0]) == 1, "brief", len(ops), info)
    # Preloaded and injected at once: the preload sees to everything.
    ops, info, truth, calls = record("both", INJECT, "20", CUDA_INJECTION64_PATH=f"{build}/lib/libtfhook.so")
    compare("both", ops, info, truth, calls)


def profiled():
    """tests/sim/cupti.c is a profiler; what it gets without tfhook is the measure."""
    program = f"{build}/tests/sim/cupti"
    if not os.path.exists(program):
        return
    kinds = ["-k", "10,1,2,22"]

    def seen(name, **env):
        run, truth = f"{tmp}/{name}", f"{tmp}/{name}.truth"
        full = {**os.environ, "LD_LIBRARY_PATH": f"{build}/sim", "SIM_TRUTH": truth, "TFHOOK_RUN": run,
                "SIM_DEVICES": "2", **env}
        done = subprocess.run([program, *kinds], env=full, stdout=subprocess.PIPE, text=True, timeout=60)
        check(done.returncode == 0, name, "ended with", done.returncode)
        records = [json.loads(line) for line in done.stdout.splitlines()]
        return run, truth, [r for r in records if r.get("record") in ("kernel", "copy", "peer", "memset")]

    _, _, alone = seen("alone")
    preload = {"LD_PRELOAD": f"{build}/lib/libtfhook.so", "TFHOOK_CUPTI": "on"}
    for share in ("tee", "off"):
        run, truth, records = seen(share, TFHOOK_CUPTI_SHARE=share, **preload)
        check(len(records) == len(alone), share, len(records), "records, without tfhook", len(alone))
        ops, info = read(run)
        known = read_truth(truth)[0]
        check(len(ops) == len(known) if share == "tee" else not ops, share, len(ops), "of", len(known), info)


def ranges():
    run, truth, job = start("nvtx", f"{build}/tests/hook/nvtx", NVTX_INJECTION64_PATH=f"{build}/lib/libtfhook.so")
    check(job.wait() == 0, "nvtx ended with", job.returncode)
    show = [json.loads(line) for f in sorted(os.listdir(run)) if f.endswith(".tft") for line in subprocess.run(
        [f"{build}/tests/hook/show", f"{run}/{f}"], stdout=subprocess.PIPE, text=True).stdout.splitlines()]
    names = {r["stream"]: r["ext"] for r in show if r["kind"] == 8 and r["number"] == 7}
    found = [names.get(r["w"][0]) for r in show if r["kind"] == 6]
    check(sorted(found) == ["handed over", "loader: inner", "loader: registered", "outer"], "nvtx", found)


for what in (window, control, off_again, life, injected, profiled, ranges):
    what()
sys.exit(failed())
