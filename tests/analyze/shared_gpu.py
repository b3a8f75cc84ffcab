#!/usr/bin/env python3
"""A device that other processes use is named as the cause where their turns hold back a step most, with the share of the time that
they really have it; where something else costs more they are a note, and on a device without other users there is neither. The
report says how many processes there are if NVML lists them."""
import json
import os
import subprocess
import sys

BUILD, TMP = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
TOOL, LOOP = f"{BUILD}/bin/tfhook", f"{BUILD}/tests/jobs/client_loop"
TURNS = {"SIM_OTHERS_TURN": "4ms", "SIM_NVML_OTHERS": "2"}


def judged(name, *words, **settings):
    """The result, and the report."""
    run = f"{TMP}/{name}"
    # NVML is asked from the run's second second on.
    env = {**os.environ, "LD_LIBRARY_PATH": f"{BUILD}/sim", **settings}
    subprocess.run([TOOL, "run", "-q", "-o", run, "--", LOOP, "--steps", "300", "--sync", "stream", *words], env=env, check=True,
                   timeout=120, stdout=subprocess.DEVNULL)
    told = [subprocess.run([TOOL, "report", how, "-w", run], capture_output=True, text=True, check=True).stdout
            for how in ("--json", "--all", "--machine")]
    return json.loads(told[0]), " ".join("".join(told[1:]).split())


def taken(result):
    """Share of the time for which the device had work that others had it."""
    others = sum(c["s_per_step"] for c in result["causes"] if c["cause"] == "compute.gpu-contention")
    return others / [part["s_per_step"] for part in result["breakdown"] if part["name"] == "compute"][0]


short = ["--h2d", "0", "--d2h", "0", "--launches", "30", "--spin", "100"]
result, text = judged("shared", *short, SIM_OTHERS_TAKE="3ms", **TURNS)
verdict = result["verdict"]
assert (verdict["class"], verdict["cause"]) == ("compute-bound", "compute.gpu-contention"), verdict
# Of each 4 ms the others have 3; an op that began before their turn runs on into it.
assert 0.6 < taken(result) < 0.8, (taken(result), result["breakdown"])
assert verdict["confidence"] != "high", verdict  # it is inferred
assert "other processes (2 on average)" in text and "alone on the GPU a step" in text, text
assert "gpu0.processes" in text and "gpu0.memory.others" in text, text

result, text = judged("alone", *short, SIM_NVML_OTHERS="2")
assert taken(result) == 0 and "other processes" not in text, (result["causes"], text)

# The program sleeps longer than the device is away.
result, text = judged("less", *short, "--sleep", "20", SIM_OTHERS_TAKE="2ms", **TURNS)
assert result["verdict"]["class"] == "host-bound", result["verdict"]
assert 0.2 < taken(result) < 0.7, (taken(result), result["breakdown"])
assert "the GPU worked for other processes (2 on average)" in text, text
sys.exit(0)
