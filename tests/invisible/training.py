#!/usr/bin/env python3
"""Training ends the same to the last bit, with the same output and exit status, without the preload, with it while
every process records, and with it switched off: PyTorch (loader processes by fork and spawn, gradients exchanged
over gloo), TensorFlow (Keras, two devices, two processes), and TensorFlow's build for GPUs on a machine without one.

timeout: 3600
"""
import glob
import os
import subprocess
import sys

SRC, BUILD, TMP = os.environ["TFH_SRC"], os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
HOOK = os.path.join(BUILD, "lib", "libtfhook.so")
RECORDS = os.path.join(BUILD, "tests", "invisible", "librecords.so")
JOBS = [("torch", "torch_job.py", how) for how in ("plain", "fork", "spawn", "gloo")]
JOBS += [("main", "tf_job.py", how) for how in ("fit", "mirrored", "workers")]
JOBS += [("tfgpu220", "tf_job.py", how) for how in ("fit", "mirrored")]
FORMS = {"without": None, "preloaded": [HOOK], "recording": [HOOK, RECORDS], "off": [HOOK, RECORDS]}


def run(python, script, how, form):
    place = os.path.join(TMP, "%s.%s.%s" % (os.path.basename(script), how, form))
    os.makedirs(place, exist_ok=True)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("TFH_", "TFHOOK"))}
    if FORMS[form]:
        env.update(LD_PRELOAD=":".join(FORMS[form]), TFHOOK_DIR=os.path.join(place, "runs"))
    if form == "off":
        env["TFHOOK"] = "0"
    done = subprocess.run([python, script, how], env=env, cwd=place, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=900)
    files = glob.glob(os.path.join(place, "runs", "**", "*.tft"), recursive=True)
    return done, len(files)


def main():
    wrong = 0
    for name, script, how in JOBS:
        python = subprocess.run([os.path.join(SRC, "scripts", "python-env"), name], capture_output=True, text=True,
                                check=True).stdout.split()[-1]
        script = os.path.join(SRC, "tests", "invisible", script)
        plain, _ = run(python, script, how, "without")
        if plain.returncode:
            sys.exit("%s %s fails by itself: %s" % (script, how, plain.stderr[-2000:]))
        for form in list(FORMS)[1:]:
            other, files = run(python, script, how, form)
            same = (other.returncode, other.stdout, len(other.stderr.splitlines())) == \
                (plain.returncode, plain.stdout, len(plain.stderr.splitlines()))
            told = (files > 0) == (form != "off")  # both frameworks call the recorder, a driver or not
            print("%s %s %s %s: %s, %d trace files" % (name, os.path.basename(script), how, form,
                                                      "the same" if same else "DIFFERENT", files))
            if not same or not told:
                wrong += 1
                print(other.stdout[-1500:], other.stderr[-1500:], "without:", plain.stdout[-1500:], plain.stderr[-1500:])
    sys.exit(1 if wrong else 0)


main()
