#!/usr/bin/env python3
"""The report on a job of many ranks, from digests alone, names every planted defect (a slow host, device, rail, switch, loader, a rank that
stalls in one step, an exchange that does, a rank that becomes slow halfway, ranks below one PCIe switch or of one NVLink domain, links that are down, checkpoints of one rank, a clock that is
off and drifts, one that is days ahead, a rank without a digest, one that hangs), each with its place, cause and size, and invents none, neither beside them nor in a sound job; by itself, each is the only one. Clocks are known to a few
microseconds. A damaged digest, and one of another job, is left out and named; one of another version is counted. Of a host without a digest that makes its group wait, no network is
blamed. The digests take at most 17 bytes a step and rank.
timeout: 300
"""
import json
import os
import re
import subprocess
import sys
sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/common")
from common import check, failed, report_of, tool  # noqa: E402

BUILD, TMP = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
HOSTS, LOCAL, STEPS = 64, 4, 2000


def made(name, seed, *defects, steps=STEPS, hosts=HOSTS):
    """A job's digests, and what was planted."""
    where = f"{TMP}/{name}"
    os.mkdir(where)
    done = subprocess.run([f"{BUILD}/tests/ranks/digests", where, str(hosts), str(LOCAL), str(steps), str(seed), *defects],
                          stdout=subprocess.PIPE, text=True, check=True, timeout=300)
    return where, json.loads(done.stdout)


def near(a, b, off):
    return a is not None and abs(a - b) <= off


def check_path(name, step, rank):
    """It leads from all ranks over the data group to the host of the rank, and ends at it."""
    path, host = step["path"], rank // LOCAL
    check(path and path[0]["group"] == "all" and path[-1]["rank"] == rank == step["rank"], name, "path", step)
    groups = [link["group"] for link in path]
    check(groups == sorted(groups, key=["all", "data", "tensor"].index) and len(set(groups)) == len(groups), name, "groups", groups)
    for link in path:
        mine = range(link["first"], link["first"] + link["ranks"]) if link["group"] != "data" else range(link["first"], link["first"] + 16 * LOCAL, LOCAL)
        check(link["rank"] in mine, name, "group of", link)
        check(link["group"] == "all" or link["rank"] // LOCAL == host, name, "host of", link)
        # Of all ranks, others may be late in the same step; so may those of a slow host always be.
        check(near(link["wait_s"], step["longer_s"], 0.1) or (link is path[0] and 0 <= link["wait_s"] < step["longer_s"]), name, "wait", link, step["longer_s"])


def check_steps(name, where, planted, said):
    """Every one of the slowest steps has a rank, or an exchange, that made it slow."""
    steps = {s["index"]: s for s in said["slowest_steps"]}
    check(len(steps) == len(said["slowest_steps"]) and all(s["ranks"] == len(said["ranks"]) and s["s"] > 1.2 * s["usual_s"] for s in steps.values()), name, steps)
    check([s["s"] for s in said["slowest_steps"]] == sorted((s["s"] for s in steps.values()), reverse=True), name, "order", steps)
    for s in steps.values():
        check((s["rank"] is None) != (s["transfer_s"] is None), name, "why", s["text"])
        if s["rank"] is not None:
            check_path(name, s, s["rank"])
    if "checkpoint" in planted:
        these = [s for s in steps.values() if s["cause"] == "host.checkpoint"]
        check(len(these) >= 3 and all(s["rank"] == 0 and s["index"] % 500 == 499 and near(s["longer_s"], 3, 0.1) for s in these), name, "checkpoints", these)
    if "stall" in planted:
        rank, number = planted["stall"]
        s = said["slowest_steps"][0]
        check((s["index"], s["rank"], s["cause"]) == (number, rank, "input.read") and near(s["cause_s"], 2, 0.01), name, s)
        text = " ".join(tool("report", where).split())
        check(s["text"] in text and "SLOWEST STEPS" in text, name, text)
        one = report_of(where, "--ranks", "--step", str(number))["slowest_steps"]
        check(one == [s], name, "asked for", one)
        lines = tool("report", "--ranks", "--step", str(number), where).splitlines()
        rows = [line.split() for line in lines[1 + next(i for i, line in enumerate(lines) if "LONGER" in line):]]
        check(len(rows) == 17 and rows[0][0] == str(rank) and rows[0][-1] == "input.read" and float(rows[0][5]) > 1.9, name, rows[:2])
        tool("report", "--ranks", "--step", str(STEPS), where, status=2)
        usual = report_of(where, "--ranks", "--step", "77")["slowest_steps"]
        check(len(usual) == 1 and not usual[0]["path"] and usual[0]["rank"] is None and usual[0]["ranks"] == HOSTS * LOCAL, name, "a usual step", usual)
    if "jam" in planted:
        rank, number = planted["jam"]
        s = said["slowest_steps"][0]
        check(s["index"] == number and near(s["transfer_s"], 1.55, 0.01) and near(s["usual_transfer_s"], 0.046, 0.003), name, s)
        check("the data group of ranks %d to " % (rank // (16 * LOCAL) * 16 * LOCAL + rank % LOCAL) in s["text"], name, s["text"])


def judge(name, seed, *defects):
    where, planted = made(name, seed, *defects)
    said = report_of(where, "--ranks")
    check(said["schema"] == "tfhook.ranks/1" and said["world"] == HOSTS * LOCAL, name, "world", said["world"])
    left = list(said["findings"])

    def found(what, **want):
        """The only finding of that kind; it is taken off the list."""
        these = [f for f in left if f["what"] == what and all(f.get(k) == v for k, v in want.items())]
        check(len(these) == 1, name, what, want, "found", len(these), "times in", [f["text"] for f in said["findings"]])
        for f in these:
            left.remove(f)
        return these[0] if these else {"s": None, "from": None, "to": None, "usual_s": None, "every": None, "drift": None}

    if "host" in planted:
        f = found("slow-host", host=planted["host"], cause="host.python", ranks=LOCAL)
        check(near(f["s"], 0.04, 0.003) and f["from"] == 0 and f["to"] == 1, name, f)
    if "device" in planted:
        f = found("slow-rank", rank=planted["device"], cause="compute")
        check(near(f["s"], 0.13 * 0.36, 0.003) and f["from"] == 0, name, f)
    if "loader" in planted:
        f = found("slow-rank", rank=planted["loader"], cause="input.read")
        check(near(f["s"], 0.03, 0.003) and f["from"] == 0, name, f)
    if "halfway" in planted:
        f = found("slow-rank", rank=planted["halfway"], cause="compute")
        check(near(f["s"], 0.15 * 0.36, 0.004) and near(f["from"], 0.5, 0.05) and f["to"] == 1, name, f)
    if "pcie" in planted:
        first = planted["pcie"] // 2 * 2
        f = found("slow-pcie-switch", rank=first, ranks=2, cause="compute", pcie_switch="0000:%02x:00.0" % (0x20 + first % LOCAL // 2))
        check(near(f["s"], 0.12 * 0.36, 0.003), name, f)
    if "domain" in planted:
        f = found("slow-nvlink-domain", rank=planted["domain"] * 4 * LOCAL, ranks=4 * LOCAL, cause="compute", nvlink_domain="%032x/1" % (planted["domain"] + 1))
        check(near(f["s"], 0.1 * 0.36, 0.003), name, f)
    if "links" in planted:
        f = found("few-nvlinks", rank=planted["links"], nvlinks=16, s=None)
        check("16 NVLinks are up, elsewhere 18" in f["text"], name, f)
    if "rail" in planted:
        f = found("slow-rail", local_rank=planted["rail"], nic="mlx5_%d" % planted["rail"])
        check(near(f["s"], 0.09, 0.01) and near(f["usual_s"], 0.046, 0.003), name, f)
    if "switch" in planted:
        f = found("slow-switch")
        check(f.get("rack", "").startswith(planted["switch"]) and near(f["s"], 0.081, 0.01), name, f)
    if "checkpoint" in planted:
        f = found("rare-steps", rank=0, cause="host.checkpoint")
        check(f["every"] == 500 and near(f["s"], 3, 0.1), name, f)
    if "clock" in planted:
        f = found("clock", host=planted["clock"])
        check(near(f["s"], 3.2, 0.003) and near(f["drift"], 40e-6, 2e-6), name, f)
    if "days" in planted:
        f = found("clock", host=planted["days"])
        check(near(f["s"], 3 * 86400, 0.003) and near(f["drift"], 0, 2e-6), name, f)
    check(not left, name, "invented", [f["text"] for f in left])
    check_steps(name, where, planted, said)
    check(said["missing"] == ([planted["missing"]] if "missing" in planted else []), name, "missing", said["missing"])
    check([h["rank"] for h in said["hangs"]] == ([planted["hung"]] if "hung" in planted else []), name, said["hangs"])
    for h in said["hangs"]:
        check((h["group"], h["call"], h["file"], h["line"]) == ("tensor", "cuMemcpyDtoH_v2", "/job/train.py", 77) and h["since_s"] > 20 and
              h["waiting"] == len(said["ranks"]) - 1, name, h)
    off = [h for h in said["hosts"] if abs(h["clock_offset_s"]) > 0.002 and h["host"] not in (planted.get("clock"), planted.get("days"))]
    check(not off and all(h["clock_residual_s"] < 5e-6 for h in said["hosts"]), name, "clocks", off)
    kinds = {(g["kind"], g["stride"]) for g in said["groups"] if g["ranks"] not in (LOCAL - 1, 15)}
    check(kinds <= {("all", 1), ("all", 0), ("tensor", 1), ("data", LOCAL)}, name, "groups", kinds)
    return where, planted, said


where, planted, said = judge("all", 1, "all")
text = tool("report", where)
check(all(len(line) <= 80 for line in text.splitlines()), "lines", text)
check(re.search(r"rank %d .*has not\s+entered exchange" % planted["hung"], text) and "MISSING, DEAD OR HANGING" in text, text)
ranks = tool("report", "--ranks", where).splitlines()
check(len(ranks) == HOSTS * LOCAL, "one line a rank, and a heading", len(ranks))
tool("report", "--strict", where, status=4)

where, _, said = judge("sound", 2)
check("no rank, host, rail or switch stands out" in tool("report", where), "a sound job")
size = sum(os.path.getsize(f"{where}/{n}") for n in os.listdir(where)) / (HOSTS * LOCAL * STEPS)
print("%.1f bytes a step and rank" % size)
check(size <= 17, "size", size)
for seed, defect in enumerate(("host", "device", "rail", "switch", "loader", "checkpoint", "halfway", "clock", "missing", "hung", "pcie", "domain", "links", "stall", "jam", "days"), 3):
    where, planted, _ = judge(defect, seed, defect)

# A damaged digest, one that was cut short, what no digest is: they are no hosts, and the others' racks stay whole.
names = sorted(n for n in os.listdir(where) if not n.startswith(planted["days"]))
torn, short = names[5], names[7]
with open(f"{where}/{torn}", "r+b") as f:
    f.seek(5000)
    f.write(b"\0" * 200)
os.truncate(f"{where}/{short}", 3000)
with open(f"{where}/torn.digest.tft", "wb") as f:
    f.write(b"nothing of the kind")
said = report_of(where, "--ranks")
check(said["digests_unread"] == 3 and len(said["missing"]) == 2 * LOCAL and [f["what"] for f in said["findings"]] == ["clock"], "damaged", said["digests_unread"],
      said["missing"], said["findings"])
check({h["host"] for h in said["hosts"]} == {n[: -len(".digest.tft")] for n in names} - {n[: -len(".digest.tft")] for n in (torn, short)} | {planted["days"]},
      "hosts", said["hosts"])

# Of two versions.
where, _ = made("versions", 29, "version", steps=500)
done = subprocess.run([f"{BUILD}/bin/tfhook", "report", where], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
check(done.returncode == 0 and f"1 of {HOSTS} digests are of another version" in done.stderr, "versions", done.stderr)

# The host of a slow device has no digest: its data groups seem to take long, but their last rank is not known.
where, planted = made("unseen", 30, "device", steps=500)
os.remove("%s/rack%03d-node%02d.digest.tft" % (where, planted["device"] // LOCAL // 16, planted["device"] // LOCAL % 16))
said = report_of(where, "--ranks")
check(not said["findings"] and len(said["missing"]) == LOCAL, "unseen", said["findings"], said["missing"])
check(all((g["transfer_s"] is None) == (g["ranks"] in (15, (HOSTS - 1) * LOCAL)) for g in said["groups"]), "unseen", said["groups"])

# Beside the job's digests lie some of a job with fewer hosts.
fewer, _ = made("fewer", 31, "host", steps=500, hosts=32)
for name in sorted(os.listdir(fewer))[:6]:
    os.rename(f"{fewer}/{name}", f"{where}/other-{name}")
said = report_of(where, "--ranks")
check(said["digests_of_others"] == 6 and said["world"] == HOSTS * LOCAL and len(said["missing"]) == LOCAL and not said["findings"], "of another job",
      said["digests_of_others"], said["world"], said["findings"])
check("6 digests of another job left out" in tool("report", where), "of another job")
tool("report", "--strict", where, status=4)
sys.exit(failed())
