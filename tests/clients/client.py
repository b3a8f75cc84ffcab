"""Runs one client of the driver on the simulated GPU, alone and under `tfhook run`: the output and the exit status are the
same, and the recording is what the driver's own log says, call by call. The table of clients is in clients.py."""
import glob
import json
import os
import re
import subprocess
import sys

sys.path.append(os.path.join(os.environ["TFH_SRC"], "tests/hook"))
import compare
from clients import CLIENTS
from compare import build, check, src, tmp

PROGRAMS = f"{src}/tests/clients/programs"
SECONDS = 120


class Unavailable(Exception):
    """What a client needs is not on this machine; the text says what and how to get it."""


def environment_of(client):
    """The python of the client's virtual environment, which is made if need be."""
    done = subprocess.run([f"{src}/scripts/python-env", client.env], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise Unavailable(f"no python environment '{client.env}' (make python-env NAME={client.env})")
    return done.stdout.split()[-1]


def bootstrap(group):
    done = subprocess.run([f"{src}/scripts/bootstrap", group], stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise Unavailable(" ".join(done.stderr.split()))


def command_of(client):
    """The command, and the folder of its python packages."""
    command, packages = list(client.command), ""
    if client.debian:
        bootstrap(client.debian)
    if client.env:
        python = environment_of(client)
        command = [python, f"{PROGRAMS}/{command[0]}", *command[1:]]
        packages = glob.glob(f"{os.path.dirname(os.path.dirname(python))}/lib/python3*/site-packages")[0]
    if client.source:
        program = f"{tmp}/program"
        subprocess.run([*client.source, "-o", program, f"{PROGRAMS}/{command[0]}"], check=True)
        command = [program, *command[1:]]
    return command, packages


def version_of(client):
    if client.env:
        text = open(f"{src}/tests/requirements/{client.env}.txt").read()
        return re.search(rf"^{re.escape(client.package)}(?:\[.*?\])?==(\S+)", text, re.M).group(1)
    return subprocess.run(["dpkg-query", "-W", "-f", "${Version}", client.package], capture_output=True,
                          text=True).stdout or "?"


def start(client, how, command, packages):
    """A folder of its own and the process that runs in it."""
    place = f"{tmp}/{client.name}/{how}"
    os.makedirs(f"{place}/home")

    def full(text):
        return text.replace("PACKAGES", packages).replace("HOME", f"{place}/home")

    for link, target in client.links.items():
        os.makedirs(os.path.dirname(full(link)), exist_ok=True)
        os.symlink(full(target), full(link))
    env = {k: v for k, v in os.environ.items() if not k.startswith("CUDA_")}
    env.update(LD_LIBRARY_PATH="", SIM_TRUTH=f"{place}/truth", HOME=f"{place}/home", PYTHONWARNINGS="ignore",
               PYTHONDONTWRITEBYTECODE="1")
    env.update((k, full(v)) for k, v in client.settings.items())
    env["LD_LIBRARY_PATH"] = f"{build}/sim:" + env["LD_LIBRARY_PATH"]
    return place, subprocess.Popen(command, env=env, cwd=place, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)


def quality(place):
    shown = subprocess.run([f"{build}/bin/tfhook", "report", "--json", f"{place}/tfhook-run"], capture_output=True,
                           text=True)
    return json.loads(shown.stdout)["quality"]


def run(client):
    """What was compared: calls, bytes, and so on. Raises Unavailable."""
    command, packages = command_of(client)
    traced = [f"{build}/bin/tfhook", "run", "-q", *client.flags, "-o", "tfhook-run", "--", *command]
    jobs = [start(client, "alone", command, packages), start(client, "traced", traced, packages)]
    try:
        said = [job.communicate(timeout=SECONDS) for _, job in jobs]
    finally:
        for _, job in jobs:
            job.kill()
    (alone, traced), place = [job for _, job in jobs], jobs[1][0]
    check(alone.returncode == 0, client.name, "does not run alone:", alone.returncode, *said[0])
    check(traced.returncode == alone.returncode, client.name, "exit status", traced.returncode, *said[1])
    check(said[0][0] == said[1][0], client.name, "output", said)
    check(said[0][1].replace(jobs[0][0], place) == said[1][1], client.name, "messages", said)
    if client.same_as:
        want = subprocess.run(client.same_as, capture_output=True, text=True).stdout
        check(want and want == said[1][0], client.name, "result", want, said[1][0])
    if compare.failed():
        return None
    records = compare.records_of(place)
    counts = compare.compare(client.name, records, compare.truth_of(place), place, client.after_exit)
    kinds = quality(place)
    check(kinds["unhooked"] == 0, client.name, "unhooked", kinds["unhooked_names"])
    check(counts["calls"] >= client.calls, client.name, "calls compared", counts["calls"])
    fns = {r["fn"] for r in records}
    check(not [f for f in client.expects if f not in fns], client.name, "expected", client.expects)
    return dict(counts, records=len(records), unhooked=kinds["unhooked"])


def main(*names):
    """Compares clients and prints a line of a table for each. Exit status as a test's: 77 if one is not available."""
    status = 0
    for client in [c for c in CLIENTS if c.name in names]:
        try:
            got = run(client)
        except Unavailable as e:
            print(f"| {client.name} | | {client.route} | SKIP: {e} |", flush=True)
            status = 77
            continue
        if compare.failed():
            return 1
        print("| %s | %s | %s | %d | %d | %d | %d |" % (client.name, version_of(client), client.route, got["calls"],
                                                      got["bytes"], got["records"], got["unhooked"]), flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
