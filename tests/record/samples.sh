#!/usr/bin/env bash
# What must hold: while a thread is between its calls, samples see what it waits for in about the shares that it counts
# itself; they survive a kill; threads that end, children and programs that replace the process disturb neither the samples
# nor the job; threads that wait ever since a first call leave the samples to the others; TFHOOK_SAMPLES=0, and a kernel that does not tell, mean no samples, a note that says why, and nothing else.
set -u
samples=$TFH_BUILD/tests/record/samples tally=$TFH_BUILD/tests/record/tally
status=0
export TFHOOK_RUN=$TFH_TMP/run
fail() {
	echo "$*"
	echo "${true:-}"
	echo "${got:-}" | head -5
	status=1
}
sampled() { # SECONDS HOW [ENV...]: $true, $got
	rm -rf "$TFHOOK_RUN"
	true=$(env "${@:3}" "$samples" "$1" "$2" 2>&1)
	rc=$?
	got=$([[ -d $TFHOOK_RUN ]] && "$tally" -s "$TFHOOK_RUN")
}
count() { grep -oE "\b$1=[0-9]+" <<<"$got" | awk -F= '{ n += $2 } END { print n + 0 }'; }

# States: 2 the global lock, 3 a lock, 4 asleep, 8 a pipe, 10 a socket. Running (1) is left out: a busy machine lets threads
# wait for a processor.
sampled 1.5 ""
((rc == 0)) || fail "exit code $rc"
n=$(count state)
if ((n >= 50)); then
	for state in 2 3 4 8 10; do
		awk -v state="$state" -v got="$got" '
			$1 != 1 && $1 != 6 { sum += $2; if ($1 == state) mine = $2 }
			END {
				parts = split(got, word, /[ =\n]/)
				for (i = 1; i < parts; i++)
					if (word[i] ~ /^state\.[0-9]+$/) {
						split(word[i], k, ".")
						if (k[2] != 1 && k[2] != 6) all += word[i + 1]
						if (k[2] == state) seen += word[i + 1]
					}
				d = seen / all - mine / sum
				exit d > 0.2 || d < -0.2 || seen == 0
			}' <<<"$true" || fail "state $state: what was seen is not what was done"
	done
fi
((n > 0)) || fail "no samples at all"

# Threads that made a call once, and wait for a signal ever since, leave the samples to the one that goes on.
# Of 25 threads in the same state as seldom as one of them, it would have one sample in 25.
sampled 1.5 idle
read -r mine idle < <("$TFH_BUILD/tests/hook/show" "$TFHOOK_RUN"/*.tft | sed -nE 's/.*"kind":11,.*"t0":([0-9]+),.*"result":([0-9]+),.*/\1 \2/p' | sort -n |
	awk '{ state[NR] = $2 } END { for (i = int(NR / 2) + 1; i <= NR; i++) n[state[i] == 15]++; print n[0] + 0, n[1] + 0 }')
((rc == 0 && mine > 0 && mine * 6 > idle)) || fail "beside idle threads: $mine samples, of idle threads $idle"

# A lock that another thread holds (1), a condition (2) and the end of a thread (3) take a third of the time each, and are
# told from each other. The kernel, or a C library other than glibc, may not tell.
sampled 1.5 ways
ways=$(awk '/^wait/ { print $1, $2 }' <<<"$true" | while read -r way ns; do echo "$ns $(count "$way")"; done |
	awk '{ done[NR] = $1; seen[NR] = $2; all += $1; sum += $2 } END {
		for (i = 1; i <= 3; i++) { d = sum ? seen[i] / sum - done[i] / all : 1; wrong += d > 0.2 || d < -0.2 }
		print wrong + 0 }')
((rc == 0 && ($(count state.3) == 0 || ways == 0))) || fail "ways of waiting: $ways of 3 are not what was done"

sampled 0.4 end
((rc == 0 && $(count state) > 0 && $(count clean) == 1)) || fail "beside threads that end: $rc"
if [[ ${TFH_SAN:-} != thread ]]; then
	sampled 0.4 fork
	((rc == 0 && $(count state) > 0)) || fail "beside children: $rc"
fi
sampled 0.3 exec
((rc == 0 && $(wc -l <<<"$true") > 8 && $(count state) > 0)) || fail "a program that replaces itself: $rc"

# Killed: what had been seen is there.
rm -rf "$TFHOOK_RUN"
"$samples" 20 >"$TFH_TMP/out" 2>&1 &
job=$!
sleep 0.5
kill -KILL $job
wait $job 2>"$TFH_TMP/killed"
true="" got=$("$tally" -s "$TFHOOK_RUN")
((n < 50 || $(count state) > 0)) || fail "killed: no samples are left"

sampled 0.3 "" TFHOOK_SAMPLES=0
((rc == 0 && $(count state) == 0)) || fail "TFHOOK_SAMPLES=0: there are samples"
grep -aqs "looks.why=TFHOOK_SAMPLES=0" <(for f in "$TFHOOK_RUN"/*.tft; do zstd -dcq "$f"; done) || fail "nothing says why"
exit $status
