#!/usr/bin/env bash
# Any number of files can be reported, whatever number a process may have open; copies of a file say nothing twice, and
# their number costs no more than reading them.
set -u
. "$TFH_SRC/tests/cli/lib.sh"

# It sleeps in every step, so that there are looks at it. What the threads waited for CPUs, by samples, is that of one file, too.
expect 0 on_gpu "$tfhook" run -q -o rec "$job" --steps 100 --h2d 1000 --spin 100 --sleep 5
mkdir copies
for ((i = 0; i < 120; i++)); do cp rec/*.0.tft copies/p.a.$i.0.tft; done
what() { "$TFH_PY" -c 'import json, sys
r = json.load(sys.stdin)
print([r[k] for k in ("verdict", "breakdown", "kernels", "transfers", "whatif")], r["steps"]["median_s"], r["quality"]["events"],
      r["steps"]["unclassified"], r["quality"]["run_delay_share"])'; }
expect 0 "$tfhook" report --json rec
what <.out >one
expect 0 "$tfhook" report --json copies
what <.out | cmp - one || fail 'copies of a file change what is said of it'
for command in report info verify; do
	expect 0 bash -c "ulimit -n 64 && exec '$tfhook' $command copies"
	says_not 'open files|not readable'
done
expect 0 bash -c "ulimit -n 64 && exec '$tfhook' report --json copies"
what <.out | cmp - one || fail 'files beyond the limit of open ones are lost'
