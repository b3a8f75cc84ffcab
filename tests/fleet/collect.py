#!/usr/bin/env python3
"""`tfhook collect` adds to a lake what `report --json` says of a run: its causes add up to the blocking time of all steps, times GPUs.
Team, job and image come from labels, else from Slurm's variables. A run collected twice, its copy and its digest are one run, also
when several collectors take it up at once; a run that has gone on replaces what was there; what a collector left that was killed does
not count. A damaged run is skipped with one line, and the others are there. Names reach neither a terminal nor JSON unescaped. S3 gives
the same answers (moto stands for it). Each mistake has its exit code."""
# timeout: 900
import glob
import json
import os
import shutil
import subprocess
import sys

if os.environ.get("TFH_SAN") in ("address", "thread"):
    sys.exit(77)  # such a recorder cannot be preloaded into ordinary programs
from fleet_env import alike, build, check, continue_in, failed, src, tfhook, tmp

python = continue_in("fleet")
import pyarrow.parquet as pq
from tfhook.collect import Collector, rows_of
from tfhook.lake import Lake

job = [sys.executable, src + "/tests/evidence/jobs.py", "queue_of_sleeper", "--steps", "40"]
lake, runs = tmp + "/lake", tmp + "/runs"
os.mkdir(runs)
EVIL = "team=a\x1b[31m\u202eb,job=x\u2066y"
for name, more in (("labels", {"TFHOOK_LABELS": "team=vision,image=train:7,job=resnet,new=1"}),
                   ("slurm", {"SLURM_JOB_ACCOUNT": "nlp", "SLURM_JOB_NAME": "llm", "SLURM_JOB_USER": "ann", "SLURM_JOB_PARTITION": "h100",
                              "SLURM_CLUSTER_NAME": "c9", "APPTAINER_CONTAINER": "/img/a.sif"}),
                   ("evil", {"TFHOOK_LABELS": EVIL}), ("plain", {})):
    tfhook("run", "-q", "-o", f"{runs}/{name}", *job, **more)
for name in ("labels", "slurm"):
    tfhook("digest", f"{runs}/{name}")


def answers(place=lake, **more):
    return json.loads(tfhook("fleet", "--json", place, **more)[0])


def rows(table, place=lake):
    return [row for path in glob.glob(f"{place}/{table}/day=*/*.parquet") for row in pq.read_table(path, partitioning=None).to_pylist()]


def added(out, new, known, skipped):
    check(out.strip().endswith(f": {new} added, {known} already there, {skipped} skipped"), "expected", (new, known, skipped), "is", out)


added(tfhook("collect", "-o", lake, f"{runs}/labels", f"{runs}/slurm", f"{runs}/plain")[0], 3, 0, 0)
by_job = {row["job"]: row for row in rows("runs")}
check(set(by_job) == {"resnet", "llm", "jobs.py"}, "jobs", sorted(by_job))
one, slurm = by_job["resnet"], by_job["llm"]
check((one["team"], one["image"], dict(one["labels"])["new"]) == ("vision", "train:7", "1"), "labels", one)
check(tuple(slurm[c] for c in ("team", "owner", "hardware", "cluster", "image")) == ("nlp", "ann", "h100", "c9", "/img/a.sif"), "Slurm", slurm)
report = json.loads(tfhook("report", "--json", f"{runs}/labels")[0])
check((one["class"], one["cause"], one["steps"], one["step_median_s"]) == (
    report["verdict"]["class"], report["verdict"]["cause"], report["steps"]["total"], report["steps"]["median_s"]), "verdict", one)
check(abs(one["gpu_s"] - report["run"]["wall_s"]) < 1e-9 and one["ended"] == "exit" and one["code"] == 0, "GPU seconds", one)
parts = {part["name"]: part["s_per_step"] for part in report["breakdown"]}
blocked = (sum(parts.values()) - parts["compute"] - parts["unattributed"]) * report["steps"]["total"]
lost = [row for row in rows("losses") if row["run"] == one["run"]]
steps_lost = sum(row["blocked_gpu_s"] for row in lost if row["kind"] == "cause" and "." in row["cause"])
check(abs(steps_lost - blocked) < 1e-6 * blocked, "blocking time", steps_lost, blocked)
place = report["verdict"]["place"]  # none where the machine is too busy
check(not place or any(row["file"] == place["file"] and row["line"] == place["line"] for row in lost if row["kind"] == "line"), "line", lost)
check(pq.read_schema(glob.glob(f"{lake}/runs/*/*.parquet")[0]).metadata[b"tfhook.lake"] == b"1", "schema version")
check([(row["rank"], row["steps"]) for row in rows("ranks") if row["run"] == one["run"]] == [(0, report["steps"]["count"])], "rank")

# Four ranks of one job, and the same after a prune.
four = tmp + "/four"
tfhook("run", "-q", "-o", four, "sh", "-c", "for r in 0 1 2 3; do RANK=$r WORLD_SIZE=4 %s & done; wait" % " ".join(job))
tfhook("digest", four)
added(tfhook("collect", "-o", tmp + "/of4", four)[0], 1, 0, 0)
(run,), of_ranks = rows("runs", tmp + "/of4"), rows("ranks", tmp + "/of4")
check((run["gpus"], run["hosts"]) == (4, 1) and abs(run["gpu_s"] - 4 * run["wall_s"]) < 1e-9, "four GPUs", run)
check(sorted(row["rank"] for row in of_ranks) == [0, 1, 2, 3] and all(0 < row["own_s"] <= row["step_s"] for row in of_ranks), "ranks", of_ranks)
tfhook("prune", "--older", "0s", "--delete", four)
check(not glob.glob(four + "/r*.tft"), "pruned", os.listdir(four))
added(tfhook("collect", "-o", tmp + "/of4", four)[0], 0, 1, 0)

# A job on two hosts with a digest each, whose second rank takes longer for a step: the job is judged by that one, from the digests, and
# the same once only these are left, without run.json too.
two, text = tmp + "/two", 'for r in 0 1; do RANK=$r WORLD_SIZE=2 unshare -u sh -c \'hostname node$RANK && exec "$@"\' sh %s $((4 + 8 * r)) & done; wait'
if not subprocess.run(["unshare", "-u", "sh", "-c", "hostname other"], stderr=subprocess.DEVNULL).returncode:
    loop = f"{build}/tests/jobs/client_loop --h2d 1000 --spin 1000 --steps 300 --sleep"
    tfhook("run", "-q", "-o", two, "sh", "-c", text % loop)
    tfhook("digest", two)
    check(sorted(glob.glob(two + "/*digest.tft")) == [f"{two}/node{n}.digest.tft" for n in (0, 1)], "digests", os.listdir(two))
    added(tfhook("collect", "-o", tmp + "/of2", two)[0], 1, 0, 0)
    (run,), of_ranks = rows("runs", tmp + "/of2"), sorted(rows("ranks", tmp + "/of2"), key=lambda row: row["rank"])
    late = json.loads(tfhook("report", "--json", two + "/node1.digest.tft")[0])
    check((run["gpus"], run["hosts"], run["seen"], run["cause"], run["step_median_s"]) == (
        2, 2, 2, late["verdict"]["cause"], late["steps"]["median_s"]), "two hosts", run)
    check([(row["rank"], row["host"]) for row in of_ranks] == [(0, "node0"), (1, "node1")] and of_ranks[1]["own_s"] > of_ranks[0]["own_s"] + 0.006,
          "ranks of two hosts", of_ranks)
    tfhook("prune", "--older", "0s", "--delete", two)
    check(not glob.glob(two + "/r*.tft"), "pruned", os.listdir(two))
    added(tfhook("collect", "-o", tmp + "/of2", two)[0], 0, 1, 0)
    os.remove(two + "/run.json")
    added(tfhook("collect", "-o", tmp + "/of2", two)[0], 0, 1, 0)

# Again: nothing is new, whether it is the same files, a copy of them, or a digest alone.
shutil.copytree(f"{runs}/labels", f"{tmp}/copy")
os.mkdir(f"{tmp}/alone")
shutil.copy(f"{runs}/labels/digest.tft", f"{tmp}/alone/other.tft")
added(tfhook("collect", "-o", lake, f"{runs}/labels", f"{tmp}/copy", f"{tmp}/alone/other.tft")[0], 0, 3, 0)
total = answers()["total"][0]
check(total["runs"] == 3 and abs(total["gpu_h"] * 3600 - sum(row["gpu_s"] for row in by_job.values())) < 1e-6, "total", total)

# Many collectors at once, of runs that none of them knows the others to take.
many = tmp + "/many"
writers = [subprocess.Popen([build + "/bin/tfhook", "collect", "-o", many, runs], stdout=subprocess.DEVNULL) for _ in range(6)]
check([w.wait() for w in writers] == [0] * 6, "collectors at once")
# Two that looked before either wrote, whatever the six did.
os.environ["PATH"] = build + "/bin:" + os.environ["PATH"]
pair = [Collector(Lake(many), {"more": "1"}) for _ in range(2)]
taken = [one.first_look(f"{runs}/plain") for one in pair]
for one, todo in zip(pair, taken):
    one.take(rows_of(todo[0], todo[1], one.labels), todo[2])
for one in pair:
    one.write()
total = answers(many)["total"][0]
check(total["runs"] == 4 and len(rows("runs", many)) >= 6, "runs of many collectors", total, len(rows("runs", many)))
check(not glob.glob(many + "/*/*/.*"), "left behind", glob.glob(many + "/*/*/.*"))
single = sum(row["blocked_gpu_s"] for row in {(r["run"], r["cause"]): r for r in rows("losses", many) if r["kind"] == "cause"}.values())
check(abs(total["lost_gpu_h"] * 3600 - single) < 1e-6, "losses counted once", total["lost_gpu_h"] * 3600, single)

# A collector that was killed before it wrote the last table.
for table in ("losses", "ranks"):
    for path in glob.glob(f"{many}/{table}/*/*.parquet"):
        of_it = pq.read_table(path, partitioning=None)
        of_it = of_it.set_column(of_it.schema.get_field_index("batch"), "batch", [["f" * 32] * len(of_it)])
        pq.write_table(of_it, os.path.join(os.path.dirname(path), "f" * 32 + ".parquet"))
check(alike(answers(many)["total"], [total]), "rows without a run count")

# A run that goes on. A digest that is older than its recording does not hide that.
end = json.load(open(f"{runs}/labels/end.json"))
for how, code in (("exit", 3), ("exit", 0)):
    with open(f"{runs}/labels/end.json", "w") as f:
        json.dump(dict(end, how=how, code=code), f)
    added(tfhook("collect", "-o", lake, f"{runs}/labels")[0], code and 1, 0 if code else 1, 0)
    if code:
        newest = answers()["total"][0]
        check(newest["failed_runs"] == 1 and newest["runs"] == 3, "the newest state counts", newest)

# Of a run that was collected while it went on, by a collector whose clock was ahead, the later state counts.
early = tmp + "/early"
tfhook("collect", "-o", early, f"{runs}/plain")
(path,) = glob.glob(early + "/runs/*/*.parquet")
of_it = pq.read_table(path, partitioning=None)
ahead = [dict(row, batch="e" * 32, wall_s=row["wall_s"] / 2, gpu_s=row["gpu_s"] / 2, collected=row["collected"].replace(year=2099)) for row in of_it.to_pylist()]
pq.write_table(of_it.from_pylist(ahead, schema=of_it.schema), os.path.dirname(path) + "/" + "e" * 32 + ".parquet")
check(abs(answers(early)["total"][0]["gpu_h"] * 3600 - of_it["gpu_s"][0].as_py()) < 1e-9, "a clock that was ahead", answers(early)["total"])

# A damaged run between others, and one that is none.
shutil.copytree(f"{runs}/plain", f"{runs}/damaged")
with open(glob.glob(f"{runs}/damaged/*.tft")[0], "r+b") as f:
    f.write(b"\xff" * 4096)
out, err = tfhook("collect", "-o", lake, runs, status=4)
check(err.startswith("tfhook: collect: skipped: ") and err.count("\n") == 1 and f"{runs}/damaged" in err, "one line, which names it", err)
shutil.rmtree(f"{runs}/damaged")
check(answers()["total"][0]["runs"] == 4, "the others")
out, err = tfhook("collect", "-o", lake, tmp + "/nosuch", src + "/LICENSE", status=3)
check(err.count("skipped: ") == 2 == err.count("\n"), "what is no run", err)
os.mkdir(tmp + "/empty")
tfhook("collect", "-o", lake, tmp + "/empty", status=5)
tfhook("collect", tmp + "/empty", status=2)
tfhook("collect", "-o", lake, "--labels", "team", runs, status=2)
tfhook("fleet", status=2)
tfhook("fleet", "--since", "monday", lake, status=2)
check("of these days" in tfhook("fleet", "--until", "2020-01-01", lake, status=5)[1], "other days")
check("no lake" in tfhook("fleet", tmp + "/nosuch", status=5)[1], "no lake")
tfhook("collect", "-o", src + "/LICENSE", f"{runs}/plain", status=3)
check("pip install 'pyarrow" in tfhook("collect", "-o", lake, runs, status=125, PATH="/nonexistent", PYTHONPATH="")[1], "without Python")
tfhook("collect", "-o", lake, "--labels", "team=z,cluster=y", f"{runs}/plain")
newest = [row for row in rows("runs") if row["job"] == "jobs.py" and row["team"]]
check([(row["team"], row["cluster"]) for row in newest] == [("z", "y")], "the collector's labels", newest)

# Foreign names.
text, err = tfhook("fleet", lake)
raw = tfhook("fleet", "--json", lake)[0]
for shown in (text, raw):
    check(not any(c in shown for c in "\x1b\u202e\u2066"), "unescaped", ascii(shown))
check("\\x1b" in text and "\\u2066" in text, "escaped", text)
check(all(len(line) <= 80 for line in text.splitlines()), "80 columns", [line for line in text.splitlines() if len(line) > 80])

# A newer schema is refused, whichever of the files has it.
newer = pq.read_table(glob.glob(f"{lake}/runs/*/*.parquet")[0], partitioning=None)
folder = os.path.dirname(glob.glob(f"{lake}/runs/*/*.parquet")[0])
for name in ("0" * 33, "f" * 33):
    pq.write_table(newer.replace_schema_metadata({"tfhook.lake": "99"}), f"{folder}/{name}.parquet")
    check("a newer tfhook" in tfhook("fleet", lake, status=3)[1], "newer schema")
    os.remove(f"{folder}/{name}.parquet")

# A lake that two versions wrote: files of the other one have a column more, or lack some. So may all of them.
whole, ADDED = answers()["total"], ["settings", "tier", "gain_low_gpu_s", "straggler"]
for path in sorted(glob.glob(f"{lake}/*/*/*.parquet"))[::2]:
    of_it = pq.read_table(path, partitioning=None)
    pq.write_table(of_it.append_column("later", of_it["run"]), path)
check(alike(answers()["total"], whole), "a column more", answers()["total"], whole)
shutil.copytree(lake, tmp + "/older")
for path in glob.glob(f"{tmp}/older/*/*/*.parquet"):
    of_it = pq.read_table(path, partitioning=None)
    pq.write_table(of_it.drop_columns([name for name in ADDED if name in of_it.column_names]), path)
check(alike(answers(tmp + "/older")["total"], whole), "columns that no file has", answers(tmp + "/older")["total"], whole)
added(tfhook("collect", "-o", tmp + "/older", "--labels", "added=now", f"{runs}/plain")[0], 1, 0, 0)
check(alike(answers(tmp + "/older")["total"], whole), "columns that one file has", answers(tmp + "/older")["total"], whole)

# A file that is damaged, wherever it is among the others.
for name in ("0" * 33, "f" * 33):
    with open(f"{folder}/{name}.parquet", "wb") as f:
        f.write(b"PAR1" + b"\xff" * 1000 + b"PAR1")
    for command in ("fleet", lake), ("collect", "-o", lake, "--labels", "x=y", f"{runs}/plain"):
        out, err = tfhook(*command, status=3)
        check(err.count("\n") == 1 and err.startswith("tfhook: "), "one line", err)
    os.remove(f"{folder}/{name}.parquet")

# A store like S3.
server = subprocess.Popen([python, "-c", "from moto.server import ThreadedMotoServer as S; s = S('127.0.0.1', 0, verbose=False); s.start(); "
                           "print(s.get_host_and_port()[1], flush=True); import time; time.sleep(300)"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
port = int(server.stdout.readline())
keys = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_EC2_METADATA_DISABLED": "true"}
os.environ.update(keys)
import pyarrow.fs as fs
fs.S3FileSystem(endpoint_override=f"127.0.0.1:{port}", scheme="http", region="us-east-1", allow_bucket_creation=True).create_dir("fleet")
url = f"s3://fleet/lake?endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1"
added(tfhook("collect", "-o", url, runs)[0], 4, 0, 0)
added(tfhook("collect", "-o", url, runs)[0], 0, 4, 0)
here = tmp + "/here"
tfhook("collect", "-o", here, runs)
there, local = answers(url), answers(here)
for name in there:
    if name != "lake":
        check(alike(there[name], local[name]), name, there[name], local[name])
server.kill()
sys.exit(failed())
