#!/usr/bin/env python3
"""CPython's own test suite: every test ends the same without the preload, with it while every process of the suite
records, and with it switched off.

All of the suite that needs no network, sound, screen, gigabytes of disk or minutes of computing. What differs is run
again in both forms, as some tests are left to chance or to the load of the machine: only a test that never once ends
as it does without the preload counts as different. TFH_CPYTHON names another Python than the one found, TFH_TESTS
some modules of the suite (all of them otherwise). They run in batches, and each says at once what became of it:
TFH_DONE names a file to which the modules of a batch without differences are added, and whose modules are left out, so
that a run which was stopped can go on. An hour on two processors.

timeout: 14400
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as xml

BUILD, TMP = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
HOOK = os.path.join(BUILD, "lib", "libtfhook.so")
RECORDS = os.path.join(BUILD, "tests", "invisible", "librecords.so")
RESOURCES = "all,-network,-urlfetch,-gui,-audio,-largefile,-cpu,-walltime"
# A module that hangs ends as "worker non-zero exit code" (test__xxsubinterpreters of 3.11.7 does under load, without the preload, too).
ENDS = ("passed", "failed", "skipped", "crashed", "timed out", "worker non-zero exit code", "worker bug", "uncaught exception",
        "ran no tests", "resource denied")
AGAIN = 3
BATCH = 16


def find_python():
    """A Python that has its own tests: Debian packs them apart."""
    given = os.environ.get("TFH_CPYTHON")
    candidates = [given] if given else ["python3", *sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.1*/bin/python3"))), "/usr/bin/python3"]
    for python in candidates:
        if subprocess.run([python, "-c", "import test.test_os, test.support"], capture_output=True).returncode == 0:
            return python
    sys.exit("no Python with its own tests is here: apt-get install libpython3.11-testsuite, or name one by TFH_CPYTHON")


def environment(form):
    env = {name: value for name, value in os.environ.items() if not name.startswith(("TFH_", "TFHOOK"))}
    if form != "without":
        env["LD_PRELOAD"] = HOOK + ":" + RECORDS
        env["TFHOOK_DIR"] = os.path.join(TMP, "runs")
    if form == "off":
        env["TFHOOK"] = "0"
    return env


def results(report, log):
    """What became of each test, and of each module as a whole: one that crashes or leaves something behind has no
    report of its own."""
    found = {}
    for line in open(log, errors="replace"):
        match = re.search(r"\[ *\d+(?:/\d+)?(?:/\d+)?\] ([\w.]+) (%s)(.*)" % "|".join(ENDS), line)
        if match:
            changed = "env changed" in match.group(3)
            found[match.group(1), ""] = match.group(2) + (", environment changed" if changed else "")
    if os.path.exists(report):
        for case in xml.parse(report).getroot().iter("testcase"):
            kinds = sorted({child.tag for child in case} & {"error", "failure", "skipped"})
            found[case.get("classname", ""), case.get("name")] = "+".join(kinds) or "ok"
    return found


def run(python, form, modules, turn):
    place = os.path.join(TMP, "%s.%s" % (form, turn))
    report, log = place + ".xml", place + ".log"
    os.makedirs(place)
    os.makedirs(os.path.join(TMP, "runs"), exist_ok=True)
    command = [python, "-m", "test", "-j2", "-u", RESOURCES, "--timeout", "300", "--junit-xml", report, *modules]
    with open(log, "w") as out:
        subprocess.run(command, cwd=place, env=environment(form), stdin=subprocess.DEVNULL, stdout=out,
                       stderr=subprocess.STDOUT)
    return results(report, log)


def module_of(key):
    """test_os for ('', 'test.test_os.Class.test_x'), for ('test.test_os', '') and for ('test_os', '')."""
    return re.search(r"\b(?:test\.)?(test_\w+)", key[0] + " " + key[1]).group(1)


def differing(plain, other):
    return {key for key in plain.keys() | other.keys() if plain.get(key) != other.get(key)}


def all_modules(python):
    listed = subprocess.run([python, "-m", "test", "--list-tests"], stdout=subprocess.PIPE, text=True, check=True)
    return listed.stdout.split()


def compare(python, form, modules, plain, turn):
    """What became of the tests in this form, and what of it never happened without the preload."""
    other = run(python, form, modules, turn)
    seen = {key: {plain.get(key)} for key in plain.keys() | other.keys()}
    first = left = differing(plain, other)
    for again in range(1, AGAIN + 1):
        if not left:
            break
        names = sorted({module_of(key) for key in left})
        for key, result in run(python, "without", names, "%s.%s.%d" % (turn, form, again)).items():
            seen.setdefault(key, set()).add(result)
        once_more = run(python, form, names, "%s.%d" % (turn, again))
        left = {key for key in left if once_more.get(key) not in seen.get(key, {None})}
    return len(first), {(form, key): (plain.get(key), other.get(key)) for key in left}


def take_traces():
    """How many files were written since the last call; they are removed, as the whole suite's take gigabytes."""
    runs = os.path.join(TMP, "runs")
    files = glob.glob(os.path.join(runs, "**", "*.tft"), recursive=True)
    shutil.rmtree(runs, ignore_errors=True)
    return len(files)


def batch(python, modules, turn):
    """The tests' number, that of trace files, and what differs."""
    plain = run(python, "without", modules, turn)
    told = {name.removeprefix("test.") for name, case in plain if not case}
    silent = [name for name in modules if name.removeprefix("test.") not in told]
    assert not silent, "these modules did not run: %s; see %s/without.%s.log" % (" ".join(silent), TMP, turn)
    wrong, firsts = {}, []
    for form in ("recording", "off"):
        first, differs = compare(python, form, modules, plain, turn)
        firsts.append(first)
        wrong.update(differs)
    files = take_traces()
    assert files, "nothing was recorded by %s" % " ".join(modules)
    print("%s: %d results, %d trace files; at first %d differ while recording, %d switched off, in the end %d: %s" %
          (time.strftime("%H:%M:%S"), len(plain), files, *firsts, len(wrong), " ".join(modules)), flush=True)
    return len(plain), files, wrong


def main():
    python, done = find_python(), os.environ.get("TFH_DONE")
    modules = os.environ.get("TFH_TESTS", "").split() or all_modules(python)
    before = set(open(done).read().split()) if done and os.path.exists(done) else set()
    modules = [name for name in modules if name not in before]
    results_all = files_all = 0
    wrong = {}
    for turn in range(0, len(modules), BATCH):
        part = modules[turn:turn + BATCH]
        n, files, differs = batch(python, part, turn)
        results_all, files_all = results_all + n, files_all + files
        wrong.update(differs)
        if done and not differs:
            with open(done, "a") as out:
                out.write("\n".join(part) + "\n")
    print("%s: %d modules, %d results, %d trace files" % (python, len(modules), results_all, files_all))
    for (form, key), (before, after) in sorted(wrong.items()):
        print("%s: %s %s: %s, without the preload %s" % (form, key[0], key[1], after, before))
    sys.exit(1 if wrong else 0)


main()
