#!/usr/bin/env python3
"""Question 4: a process that uses the driver while it ends gets the same answers and the same status with tfhook as without,
does not hang, and its recording is whole and says that it ended regularly."""
import json
import subprocess
import sys

from gpu import HOOK, build, check, compile, failed, need_gpu, part, records, report, run

need_gpu("that exit handlers, destructors and threads that call the driver at the end get the same answers with tfhook, and "
         "that nothing recorded is lost then (question 4)")
program = compile("leaves")
found = {}


def leave(how):
    plain, _, _ = run(how + "-plain", [program, how], timeout=60)
    ours, runs, _ = run(how, [program, how], HOOK, timeout=60)
    check(ours == plain, how, "with and without tfhook", ours, plain)
    check(len(runs) == 1, how, "runs", runs)
    copies = sum(r["fn"] == "cuMemcpyHtoD_v2" and r["result"] == 0 for r in records(runs))
    check(copies > 10, how, "copies", copies)
    for device_times in ("off", "on"):
        again, _, _ = run(f"{how}-{device_times}", [program, how], HOOK, timeout=60, TFHOOK_CUPTI=device_times)
        check(again[:2] == plain[:2], how, "TFHOOK_CUPTI=" + device_times, again, plain)
    told = subprocess.run([f"{build}/bin/tfhook", "report", "--json", *runs], capture_output=True, text=True)
    quality = json.loads(told.stdout)["quality"]
    check(quality["dropped"] == 0 and quality["unhooked"] == 0, how, "quality", quality)
    found[how] = dict(status=plain[0], copies=copies, answers=plain[1].splitlines())


for how in ("return", "exit", "_exit", "quick"):
    part(how, leave, how)
report(question=4, ends=found)
sys.exit(failed())
