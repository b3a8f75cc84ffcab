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
# What is planted: the option of the client, and what its change is charged to. Times in ms of a step.
KINDS = {
    "sleep": ("--sleep", 1.0, {"host.sleep", "host.code", "host.wait"}),
    "kernel": ("--spin", 1000.0, {"compute"}),
}


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
    planted, options = 0, {}
    if change:
        option, per_ms, _ = KINDS[change]
        planted = share * 6e-3
        options = {option: {"--sleep": 3.0, "--spin": 2000.0}[option] + planted * 1e3 * per_ms}
    client(build, a)
    client(build, b, **options)
    return planted, diff(build, a, b)


def compare(build, folder, equal, changed, seed):
    """(false alarms, changes missed, changes to be found, causes wrong)"""
    draw = random.Random(seed)
    pairs = [(None, 0)] * equal + [(draw.choice(sorted(KINDS)), draw.choice([-1, 1, 1]) * 0.02 * 25 ** draw.random()) for _ in range(changed)]
    draw.shuffle(pairs)
    alarms = missed = due = wrong = 0
    for change, share in pairs:
        share = max(share, -0.3)
        planted, d = run_pair(build, folder, change, share)
        step, first = d["step"], next((p for p in d["parts"] if p["found"]), None)
        alarm = not change and step["found"]
        is_due = bool(change) and abs(planted) >= 2 * step["off_s"]
        miss = is_due and not step["found"]
        bad_cause = is_due and (not first or first["part"] not in KINDS[change][2])
        alarms += alarm
        due += is_due
        missed += miss
        wrong += bad_cause
        print("%-7s %+6.1f %% planted: %+6.1f %% +-%.1f %% %s %s%s" % (
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
