#!/usr/bin/env python3
"""CPython's own test suite: every test ends the same without the preload, with it while every process of the suite
records, and with it switched off.

All of the suite that needs no network, sound, screen, gigabytes of disk or minutes of computing. What differs is run
again in both forms, as some tests are left to chance or to the load of the machine: only a test that never once ends
as it does without the preload counts as different. TFH_CPYTHON names another Python than the one found, TFH_TESTS
some modules of the suite (all of them otherwise). An hour on two processors.

timeout: 14400
"""
import glob
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as xml

BUILD, TMP = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
HOOK = os.path.join(BUILD, "lib", "libtfhook.so")
RECORDS = os.path.join(BUILD, "tests", "invisible", "librecords.so")
RESOURCES = "all,-network,-urlfetch,-gui,-audio,-largefile,-cpu,-walltime"
AGAIN = 3


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
        match = re.search(r"\[ *\d+(?:/\d+)?(?:/\d+)?\] ([\w.]+) (passed|failed|skipped|crashed|timed out)(.*)", line)
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


def main():
    python = find_python()
    modules = os.environ.get("TFH_TESTS", "").split()
    plain = run(python, "without", modules, 0)
    print("%s without the preload: %d results" % (python, len(plain)))
    assert len(plain) > (100 if modules else 10000), "the suite did not run: see %s/without.0.log" % TMP
    wrong = {}
    for form in ("recording", "off"):
        other = run(python, form, modules, 0)
        seen = {key: {plain.get(key)} for key in plain.keys() | other.keys()}
        left = differing(plain, other)
        print("%s: %d results, %d differ at first" % (form, len(other), len(left)))
        for turn in range(1, AGAIN + 1):
            if not left:
                break
            again = sorted({module_of(key) for key in left})
            for key, result in run(python, "without", again, "%s.%d" % (form, turn)).items():
                seen.setdefault(key, set()).add(result)
            once_more = run(python, form, again, turn)
            left = {key for key in left if once_more.get(key) not in seen.get(key, {None})}
        wrong.update({(form, key): (plain.get(key), other.get(key)) for key in left})
    files = glob.glob(os.path.join(TMP, "runs", "**", "*.tft"), recursive=True)
    print("%d trace files were written meanwhile" % len(files))
    for (form, key), (before, after) in sorted(wrong.items()):
        print("%s: %s %s: %s, without the preload %s" % (form, key[0], key[1], after, before))
    assert files, "nothing was recorded"
    sys.exit(1 if wrong else 0)


main()
