#!/usr/bin/env python3
"""A job with variables named like the driver's functions runs and is recorded with TFHOOK_EXPORTS=0, call for call as
the driver's log has it. (With the exported names it cannot run: what it fills are then our functions.)"""
import os
import signal
import subprocess
import sys

from compare import build, calls_of, check, compare, failed, records_of, tmp, truth_of

job = [f"{build}/tests/hook/opens", f"{build}/tests/hook/libdatasyms.so", "datasyms_run"]


def run(name, *command, **settings):
    place = f"{tmp}/{name}"
    os.mkdir(place)
    env = dict(os.environ, LD_LIBRARY_PATH=f"{build}/sim", SIM_TRUTH=f"{place}/truth", TFHOOK_DIR=place, **settings)
    return subprocess.run(command, env=env, cwd=place, capture_output=True, text=True, timeout=60), place


done, place = run("plain", *job)
check(done.returncode == 0, "plain", done)
done, place = run("exported", *job, LD_PRELOAD=f"{build}/lib/libtfhook.so")
check(done.returncode == -signal.SIGSEGV, "needs TFHOOK_EXPORTS=0 no more", done)
done, place = run("run", f"{build}/bin/tfhook", "run", "-q", "-o", "tfhook-run", *job, TFHOOK_EXPORTS="0")
check(done.returncode == 0 and done.stderr == "", "tfhook run", done)
records, truth = records_of(place), truth_of(place)
compare("datasyms", records, truth, place)
check(sum(r["fn"].startswith("cuMemcpy") for r in calls_of(records)) == 40, "copies", len(records))
sys.exit(failed())
