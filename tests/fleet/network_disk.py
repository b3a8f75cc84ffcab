#!/usr/bin/env python3
"""A lake on a file system that behaves like a network's: two hosts see it through mounts of their own, which keep what they know of names,
missing names and sizes for five seconds (bindfs, a FUSE file system). Three collectors on each take up the same runs at once, twice; each
run counts once, on either host, and no unfinished file stays."""
# timeout: 600
import json
import os
import subprocess
import sys

if os.environ.get("TFH_SAN") in ("address", "thread"):
    sys.exit(77)  # such a recorder cannot be preloaded into ordinary programs
from fleet_env import build, check, continue_in, failed, src, tfhook, tmp

KNOWN_S, RUNS, COLLECTORS = 5, 4, 3
if subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL).returncode or subprocess.run([src + "/scripts/bootstrap", "lost-mounts"]).returncode \
        or not os.path.exists("/dev/fuse"):
    print("no right to mount, or no bindfs: skipped")
    sys.exit(77)
continue_in("fleet")
lake, runs, behind = tmp + "/lake", tmp + "/runs", tmp + "/behind"
for folder in (lake, runs, behind):
    os.mkdir(folder)
for number in range(RUNS):
    tfhook("run", "-q", "-o", f"{runs}/{number}", build + "/tests/jobs/client_loop", "--h2d", "1000", "--spin", "1000", "--steps", str(100 + number))
HOST = """
bindfs -f -o $KNOWN "$BEHIND" "$LAKE" >&2 &
server=$!
until mountpoint -q "$LAKE"; do kill -0 $server && sleep 0.1 || exit 9; done
"$TOOL" fleet "$LAKE" >/dev/null 2>&1
: >"$READY"
while [ $(ls "$READIES" | wc -l) -lt 2 ]; do sleep 0.1; done
for turn in 1 2; do
  all=
  for n in $(seq $COLLECTORS); do "$TOOL" collect -o "$LAKE" "$RUNS" >&2 & all="$all $!"; done
  for one in $all; do wait $one || exit 8; done
done
sleep $KNOWN_S
"$TOOL" fleet --json "$LAKE"
code=$?
kill $server
exit $code
"""
os.mkdir(tmp + "/ready")
known = f"attr_timeout={KNOWN_S},entry_timeout={KNOWN_S},negative_timeout={KNOWN_S}"
hosts = [subprocess.Popen(["unshare", "-m", "sh", "-c", HOST], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=dict(os.environ, TOOL=build + "/bin/tfhook", LAKE=lake, RUNS=runs, BEHIND=behind, KNOWN=known, KNOWN_S=str(KNOWN_S), READIES=tmp + "/ready",
                                   READY=f"{tmp}/ready/{n}", COLLECTORS=str(COLLECTORS))) for n in range(2)]
for n, host in enumerate(hosts):
    out, err = host.communicate(timeout=400)
    check(host.returncode == 0, "host", n, host.returncode, err[-1000:])
    if not host.returncode:
        total = json.loads(out)["total"][0]
        check(total["runs"] == RUNS, "host", n, total)
names = [name for _, _, files in os.walk(behind) for name in files]
check(names and all(name.endswith(".parquet") for name in names), "unfinished", names)
check(json.loads(tfhook("fleet", "--json", behind)[0])["total"][0]["runs"] == RUNS, "behind")
sys.exit(failed())
