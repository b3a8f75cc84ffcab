#!/usr/bin/env python3
"""Real processes with the simulated NCCL, eight ranks on two hosts (namespaces with names of their own), each host with a digest of its own.
The report names the rank that is late, with its cause, in all steps or in one; one that hangs outside any call or in one, with its line, in a run that was killed and
in one that still runs; the one that died first; a rank that was never started; all of them, when one failed twice and they were started again. With torchrun's and Slurm's
variables, and with OpenMPI. Where the devices are is what NVML and /sys say: ranks
that are late below one PCIe switch are named by it. Clocks of the two hosts, which are one, are reported as equal. The same with 32 ranks,
half of which, a stage of a pipeline, sends to the other half (TFH_RANKS=32; 16 by default).
timeout: 600
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import time
sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/common")
from common import check, failed, report_of, tool  # noqa: E402

BUILD, SRC, TMP = os.environ["TFH_BUILD"], os.environ["TFH_SRC"], os.environ["TFH_TMP"]
TOOL, HERE = f"{BUILD}/bin/tfhook", f"{SRC}/tests/ranks"
if os.environ.get("TFH_SAN") or not os.path.exists(f"{BUILD}/sim/libnccl.so.2"):
    sys.exit(77)
ENV = {**os.environ, "LD_LIBRARY_PATH": f"{BUILD}/sim", "TFHOOK_CUPTI_LIB": f"{BUILD}/sim/libcupti.so.13"}
# Without the right to make a namespace, all ranks are on one host.
HOSTS = 2 if not subprocess.run(["unshare", "-u", "sh", "-c", "hostname other"], stderr=subprocess.DEVNULL).returncode else 1


def launch(name, *words, kind="torchrun", limit=90, ranks=8):
    os.makedirs(f"{TMP}/{name}.dir")
    command = [TOOL, "run", "-q", "-o", f"{TMP}/{name}", sys.executable, f"{HERE}/launch.py", kind, str(HOSTS), str(ranks // HOSTS), str(limit), *words]
    return subprocess.Popen(command, env=ENV, cwd=f"{TMP}/{name}.dir", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def report(name):
    """What is said of the run by its hosts' digests."""
    made = subprocess.run([TOOL, "digest", f"{TMP}/{name}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    check(made.returncode == 0, name, made)
    digests = [n for n in os.listdir(f"{TMP}/{name}") if n.endswith("digest.tft")]
    check(sorted(digests) == ["node0.digest.tft", "node1.digest.tft"], name, digests)
    return report_of(f"{TMP}/{name}", "--ranks")


def run(name, code, *words, **more):
    job = launch(name, *words, **more)
    _, err = job.communicate(timeout=200)
    check(job.returncode == code, name, "ended with", job.returncode, "not", code, err[-500:])
    return report(name)


def check_hang(name, said, rank, place, call):
    check([h["rank"] for h in said["hangs"]] == [rank], name, "hangs", said["hangs"])
    for h in said["hangs"]:
        check(h["waiting"] == 7 and h["since_s"] > 5 and (h["file"] or "").endswith(place[0]) and h["call"] == call, name, h)
        with open(h["file"]) as f:
            line = f.read().splitlines()[h["line"] - 1]
        check(place[1] in line, name, h, line)


def slow_of(said):
    """Without what a busy machine does: some steps are rare ones, too, and some ranks wait for a processor."""
    return [f for f in said["findings"] if f["what"] != "rare-steps" and f["cause"] != "host.cpu-contention"]


def late():
    said = run("late", 0, "300", "late=5:0:20")
    slow = slow_of(said)
    check([(f["what"], f["rank"], f["cause"]) for f in slow] == [("slow-rank", 5, "host.sleep")], "late", said["findings"])
    check(slow and abs(slow[0]["s"] - 0.02) < 0.01 and slow[0]["from"] < 0.2, "late", said["findings"])
    check(said["path"][-1] == 5, "path", said["path"])
    check(not said["missing"] and not said["hangs"] and all(r["closed"] for r in said["ranks"]), "late", said["hangs"])
    kinds = sorted((g["kind"], g["ranks"]) for g in said["groups"] if g["ranks"] > 1)
    check(kinds == [("all", 8)] * 2 + [("tensor", 2)] * 4, "groups", kinds)
    check(all(abs(h["clock_offset_s"]) < 0.001 for h in said["hosts"]), "clocks", said["hosts"])
    whole = report_of(f"{TMP}/late")
    check(whole["schema"] == "tfhook.report/1" and len(whole["ranks"]) == 8, "--json alone is the report of the recording", whole["schema"])
    check([r["local_rank"] for r in said["ranks"]] == [0, 1, 2, 3] * 2, "local ranks", said["ranks"])
    # A digest from before the second host recorded goes once both have theirs.
    shutil.copy(f"{TMP}/late/node0.digest.tft", f"{TMP}/late/digest.tft")
    subprocess.run([TOOL, "digest", f"{TMP}/late"], stdout=subprocess.DEVNULL, check=True)
    check(not os.path.exists(f"{TMP}/late/digest.tft"), "an earlier digest stays")


def pause():
    """Late in one step, in which the others wait: first its pair, and for both of them all."""
    said = run("pause", 0, "300", "pause=5:123:4000")
    s = max(said["slowest_steps"], key=lambda s: s["longer_s"] or 0)
    check((s["rank"], s["cause"], s["ranks"]) == (5, "host.sleep", 8) and abs(s["cause_s"] - 4) < 1, "pause", said["slowest_steps"])
    path = s["path"]
    # Its pair waits for it; of the two, either may then be the last one of all.
    check(path and path[-1]["rank"] == 5 and path[0]["group"] == "all" and all(l["rank"] in (4, 5) and abs(l["wait_s"] - 4) < 1 for l in path), "pause", path)
    shown = tool("report", "--ranks", "--step", str(s["index"]), f"{TMP}/pause")
    check("rank 5 (node1, local rank 1)" in " ".join(shown.split()) and "host.sleep" in shown, "pause", shown)


def many():
    ranks = int(os.environ.get("TFH_RANKS", "16"))
    said = run("many", 0, "60", "staged", "late=5:0:100", limit=300, ranks=ranks)
    slow = [(f["what"], f["rank"], f["cause"]) for f in slow_of(said)]
    check(slow == [("slow-rank", 5, "host.sleep")], "many", said["findings"])
    check([r["rank"] for r in said["ranks"]] == list(range(ranks)) and not said["missing"] and not said["hangs"], "many", said["missing"], said["hangs"])
    kinds = sorted((g["kind"], g["ranks"]) for g in said["groups"] if g["ranks"] > 1)
    check(kinds == [("all", ranks)] * 2 + [("pipeline", 2)] * (ranks // 2) + [("tensor", 2)] * (ranks // 2), "groups of many", kinds)
    check(all(abs(h["clock_offset_s"]) < 0.001 for h in said["hosts"]), "clocks of many", said["hosts"])


SWITCHED = r"""
set -e
mkdir -p tree/bus tree/nics
for gpu in 1 2 3 4; do
  at=pci0000:10/0000:10:01.0/0000:2$(((gpu - 1) / 2)):00.0/0000:30:0$gpu.0
  mkdir -p tree/devices/$at/0000:0$gpu:00.0 tree/devices/$at/nic tree/nics/mlx5_$gpu
  echo $(((gpu - 1) / 2)) >tree/devices/$at/0000:0$gpu:00.0/numa_node
  ln -s "$PWD/tree/devices/$at/0000:0$gpu:00.0" tree/bus/0000:0$gpu:00.0
  ln -s "$PWD/tree/devices/$at/nic" tree/nics/mlx5_$gpu/device
done
mount --bind tree/bus /sys/bus/pci/devices
if test -d /sys/class/infiniband; then mount --bind tree/nics /sys/class/infiniband; fi
exec "$@"
"""


def places():
    """Four devices on each host, two and two below a switch, of which the second of the second host is late; one NVLink domain."""
    if subprocess.run(["unshare", "-m", "mount", "--bind", "/tmp", "/sys/bus/pci/devices"], stderr=subprocess.DEVNULL).returncode:
        print("no right to mount: places of devices were not tried")
        return
    os.makedirs(f"{TMP}/places.dir")
    fabric = "0123456789abcdef0123456789abcdef/7"
    done = subprocess.run(["unshare", "-m", "sh", "-c", SWITCHED, "sh", TOOL, "run", "-q", "-o", f"{TMP}/places", sys.executable, f"{HERE}/launch.py", "torchrun",
                           "2", "4", "90", "200", "late=6:0:20", "late=7:0:20"],
                          env={**ENV, "SIM_DEVICES": "4", "SIM_NVML_LINKS": "18", "SIM_NVML_FABRIC": fabric}, cwd=f"{TMP}/places.dir", stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True)
    check(done.returncode == 0, "places", done.stderr[-500:])
    said = report("places")
    for r in said["ranks"]:
        gpu = r["rank"] % 4
        check((r["bus"], r["pcie_switch"], r["nvlink_domain"], r["nvlinks"]) == ("0000:%02d:00.0" % (gpu + 1), "0000:2%d:00.0" % (gpu // 2), fabric, 18), "place", r)
        check(not os.path.isdir("/sys/class/infiniband") or r["nic"] == "mlx5_%d" % (gpu + 1), "adapter", r)
    slow = [(f["what"], f.get("pcie_switch"), f["host"], f["ranks"]) for f in slow_of(said)]
    check(slow == [("slow-pcie-switch", "0000:21:00.0", "node1", 2)], "below a switch", said["findings"])


def hang():
    """Killed after a while; also looked at while it hangs, from digests that a follower keeps."""
    job = launch("hang", "100", "hang=3:40", limit=40)
    seen = False
    until = time.monotonic() + 60
    while job.poll() is None and time.monotonic() < until and not seen:
        time.sleep(2)
        if os.path.isdir(f"{TMP}/hang") and sum(n.startswith("r") and n.endswith(".tft") for n in os.listdir(f"{TMP}/hang")) == 8:
            subprocess.run([TOOL, "digest", f"{TMP}/hang"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            told = subprocess.run([TOOL, "report", "--ranks", "--json", f"{TMP}/hang"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
            said = json.loads(told) if told.startswith("{") else {}
            seen = [h["rank"] for h in said.get("hangs", [])] == [3]
    check(seen, "hang", "not seen while it ran")
    if seen:
        check_hang("live", said, 3, ("job.py", "the line that hangs"), "")
    job.communicate(timeout=200)
    check(job.returncode == 9, "hang ended with", job.returncode)
    check_hang("hang", report("hang"), 3, ("job.py", "the line that hangs"), "")


def stuck():
    said = run("stuck", 9, "100", "stuck=6:40", kind="slurm", limit=30)
    check_hang("stuck", said, 6, ("device.py", "(*args)"), "cuStreamSynchronize")


def ended():
    said = run("kill", 128 + signal.SIGKILL, "100", "kill=1:40", kind="slurm")
    check(all(r["end"] == "signal" and r["code"] == 9 for r in said["ranks"]), "kill", [(r["end"], r["code"]) for r in said["ranks"]])
    text = tool("report", f"{TMP}/kill")
    check("rank 1 (node0, local rank 1) died of signal 9" in " ".join(text.split()), "kill", text)
    said = run("again", 0, "100", "again=2:40:2")
    check(all(r["processes"] == 3 and r["closed"] for r in said["ranks"]) and not said["missing"] and not said["hangs"], "again",
          [(r["processes"], r["closed"]) for r in said["ranks"]], said["hangs"])
    starts = [(g["ranks"], g["seen"], g["judged"]) for g in said["generations"]]
    check(starts == [(8, 8, False), (8, 8, False), (8, 8, True)], "starts", said["generations"])
    check([(g["failed"] or {}).get("rank") for g in said["generations"]] == [2, 2, None], "first to fail", said["generations"])
    check([g["failed"]["code"] for g in said["generations"][:2]] == [7, 7], "first to fail", said["generations"])


def shrunk():
    """After a failure the job goes on with one host and half of the ranks, which still share a communicator of the first start with the
    other host. The later start is judged: its late rank leads."""
    said = run("shrunk", 0, "150", "again=6:40:1", "shrink=0:0", "late=1:0:20")
    starts = [(g["ranks"], g["seen"], g["judged"], (g["failed"] or {}).get("rank")) for g in said["generations"]]
    check(starts == [(8, 8, False, 6), (4, 4, True, None)], "shrunk", said["generations"])
    check((said["world"], said["missing"], said["digests_of_others"], [r["host"] for r in said["ranks"]]) == (4, [], 0, ["node0"] * 4), "shrunk", said["world"], said["ranks"])
    slow = slow_of(said)
    check([(f["what"], f["rank"], f["cause"]) for f in slow] == [("slow-rank", 1, "host.sleep")], "shrunk", said["findings"])
    whole = report_of(f"{TMP}/shrunk")
    check([(g["ranks"], g["judged"]) for g in whole["generations"]] == [(8, False), (4, True)] and len(whole["ranks"]) == 4, "shrunk", whole["generations"])


def lost():
    """The files of one rank are gone: it is missing, and nothing else is said of it."""
    shutil.copytree(f"{TMP}/late", f"{TMP}/lost")
    for n in os.listdir(f"{TMP}/lost"):
        if n.startswith("r2.") or n.endswith("digest.tft"):
            os.remove(f"{TMP}/lost/{n}")
    said = report("lost")
    check(said["missing"] == [2] and not said["hangs"] and {f["rank"] for f in said["findings"] if f["what"] == "slow-rank"} == {5}, "lost", said["missing"], said["findings"])


def mpi():
    if subprocess.run([f"{SRC}/scripts/bootstrap", "mpi"]).returncode or not shutil.which("mpirun"):
        print("no mpirun: not tried")
        return
    os.makedirs(f"{TMP}/mpi.dir/rendezvous")
    done = subprocess.run([TOOL, "run", "-q", "-o", f"{TMP}/mpi", "mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "8", sys.executable,
                           f"{HERE}/job.py", "rendezvous", "100", "late=5:0:20"], env=ENV, cwd=f"{TMP}/mpi.dir", stderr=subprocess.PIPE, timeout=200)
    check(done.returncode == 0, "mpi", done)
    said = report_of(f"{TMP}/mpi")
    check(said["schema"] == "tfhook.report/1" and [r["rank"] for r in said["ranks"]] == list(range(8)), "mpi", said.get("ranks"))


if HOSTS == 1:
    print("no right to name hosts: skipped")
    sys.exit(77)
late()
pause()
many()
places()
hang()
stuck()
ended()
shrunk()
lost()
mpi()
sys.exit(failed())
