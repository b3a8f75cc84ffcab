"""Records pairs of runs on the simulated GPU and compares them with `tfhook diff`: equal ones, and ones with a planted change.

pairs_of_runs.py BUILD FOLDER [EQUAL [CHANGED [SEED]]]: prints one line a pair and a summary; what the bars are made of.
"""
import json
import os
import random
import shutil
import subprocess
import sys

STEPS = 300
STEP_MS = 5.2
# A step of tests/truth/train (its libtrain.c): a loader that is waited for, a sleep, a copy, a kernel. {extra}: nothing, or another kernel.
PLAN = "get:{load:.3f}:0 sleep:{sleep:.3f} h2d:{bytes:.0f}:pageable k:{kernel:.3f}:1:spin_gemm{extra} sync"
BASE = {"load": 1.0, "sleep": 2.0, "bytes": 1e5, "kernel": 2.0, "extra": ""}
PAGEABLE = 1.6e6  # bytes a ms, of the simulated GPU


def longer(part, per_ms=1):
    return lambda ms: {part: BASE[part] + ms * per_ms}


# What is planted, as a function of the ms that a step takes more; what that is charged to; by which part of a step it can become less; what `diff` has to list.
KINDS = {
    "sleep": (longer("sleep"), {"host.sleep", "host.code", "host.wait"}, 0.3, None),
    "kernel": (longer("kernel"), {"compute"}, 0.3, None),
    "loader": (longer("load"), {"input.unknown", "input.map", "input.read", "input.generator"}, 0.15, None),
    "copy": (longer("bytes", PAGEABLE), {"transfer.h2d-pageable"}, 0, None),
    "new kernel": (lambda ms: {"extra": " k:%.3f:1:spin_conv" % ms}, {"compute"}, 0, lambda d: [k["how"] for k in d["kernels"] if k["name"] == "spin_conv"] == ["new"]),
    "setting": (longer("sleep"), {"host.sleep", "host.code", "host.wait"}, 0.3,
                lambda d: {"name": "env.OMP_NUM_THREADS", "a": None, "b": "1"} in d["facts"]),
}


def train(build, out, plan, env):
    env = {**os.environ, "LD_LIBRARY_PATH": f"{build}/sim", "TFHOOK_CUPTI_LIB": f"{build}/sim/libcupti.so.13", **env}
    env.pop("TFHOOK_TRACES", None)
    subprocess.run([f"{build}/bin/tfhook", "run", "-q", "-o", out, f"{build}/tests/truth/train", str(STEPS), PLAN.format(**BASE | plan)], env=env,
                   check=True, stdout=subprocess.DEVNULL, timeout=120)


def client(build, out, **set_to):
    env = {**os.environ, "LD_LIBRARY_PATH": f"{build}/sim", "TFHOOK_CUPTI_LIB": f"{build}/sim/libcupti.so.13"}
    env.pop("TFHOOK_TRACES", None)
    options = {"--steps": STEPS, "--sleep": 3.0, "--spin": 2000.0, "--h2d": 1e5, **set_to}
    args = [str(x) for pair in options.items() for x in pair]
    subprocess.run([f"{build}/bin/tfhook", "run", "-q", "-o", out, f"{build}/tests/jobs/client_loop", *args], env=env,
                   check=True, stdout=subprocess.DEVNULL, timeout=120)


def diff(build, a, b):
    text = subprocess.run([f"{build}/bin/tfhook", "diff", "--json", a, b], stdout=subprocess.PIPE, check=True, timeout=120).stdout
    return json.loads(text)


def run_pair(build, folder, change, share):
    """One pair; change None: equal. Returns (planted seconds, what diff says)."""
    a, b = f"{folder}/a", f"{folder}/b"
    for path in (a, b):
        shutil.rmtree(path, ignore_errors=True)
    planted = share * STEP_MS if change else 0
    train(build, a, {}, {})
    train(build, b, KINDS[change][0](planted) if change else {}, {"OMP_NUM_THREADS": "1"} if change == "setting" else {})
    return planted * 1e-3, diff(build, a, b)


def compare(build, folder, equal, changed, seed):
    """(false alarms, changes missed, changes to be found, causes wrong)"""
    draw = random.Random(seed)
    kinds = sorted(KINDS)
    pairs = [(None, 0)] * equal + [(kinds[i % len(kinds)], draw.choice([-1, 1, 1]) * 0.02 * 25 ** draw.random()) for i in range(changed)]
    draw.shuffle(pairs)
    alarms = missed = due = wrong = 0
    for change, share in pairs:
        least = KINDS[change][2] if change else 0
        share = max(share, -least) if least else abs(share)
        planted, d = run_pair(build, folder, change, share)
        step, first = d["step"], next((p for p in d["parts"] if p["found"]), None)
        alarm = not change and step["found"]
        is_due = bool(change) and abs(planted) >= 2 * step["off_s"]
        miss = is_due and not step["found"]
        listed = KINDS[change][3] if change else None
        bad_cause = is_due and (not first or first["part"] not in KINDS[change][1] or bool(listed and not listed(d)))
        alarms += alarm
        due += is_due
        missed += miss
        wrong += bad_cause
        print("%-10s %+6.1f %% planted: %+6.1f %% +-%.1f %% %s %s%s" % (
            change or "equal", 100 * share, 100 * step["change_share"], 100 * step["off_share"], "found" if step["found"] else "-",
            first["part"] if first else "", "  FALSE ALARM" if alarm else "  MISSED" if miss else "  WRONG CAUSE" if bad_cause else ""), flush=True)
    return alarms, missed, due, wrong


def main():
    build, folder = sys.argv[1:3]
    equal, changed, seed = [int(x) for x in sys.argv[3:6] + ["30", "30", "1"][len(sys.argv) - 3:]]
    os.makedirs(folder, exist_ok=True)
    alarms, missed, due, wrong = compare(build, folder, equal, changed, seed)
    print("%d of %d equal pairs: false alarm; %d of %d changes of twice their uncertainty missed (of %d planted), %d with a wrong cause"
          % (alarms, equal, missed, due, changed, wrong))
    return alarms > 4 * equal / 30 or missed > 3 * changed / 30 or wrong > 0.1 * due


if __name__ == "__main__":
    sys.exit(main())
