#!/usr/bin/env bash
# Where the recording goes: an existing directory is never touched, an unwritable or full place is refused before the
# job is started, too little room is said, and an unused directory is removed again.
set -u
. "$TFH_SRC/tests/cli/lib.sh"
full=$TFH_BUILD/tests/cli/libfull.so

mkdir taken && echo keep >taken/file
expect 125 "$tfhook" run -o taken touch started
says 'not empty, and nothing is ever overwritten.*-o'
[[ $(ls taken) == file ]] || fail 'the existing directory was changed'
echo x >afile
expect 125 "$tfhook" run -o afile touch started
says 'is not a directory'
expect 125 "$tfhook" run -o no/such/dir touch started
says 'its parent directory does not exist'
if [[ $(stat -f -c %T /sys) == sysfs ]]; then # where even root may not write; a chroot may have none
	expect 125 "$tfhook" run -o /sys/tfhook touch started
	says 'cannot write the recording to /sys/tfhook.*-o DIR'
	expect 125 env TFHOOK_DIR=/sys "$tfhook" run touch started
	says 'TFHOOK_DIR'
fi
expect 125 env LD_PRELOAD="$full" FULL_MKDIR=1 "$tfhook" run touch started
says 'no space for the recording.*No space left.*-o DIR'
[[ ! -e started ]] || fail 'the job was started'

# run.json says the same of a job that `tfhook run` starts and of one that is only preloaded, which knows its program, too.
if [[ -x $job ]]; then
	keys() { grep -oE '^  "[a-z_]+"' "$@" | sort; }
	try=("$job" --steps 20 --h2d 1000 --spin 10)
	on_gpu env SLURM_JOB_ID=7 "$tfhook" run -q -o told "${try[@]}" >/dev/null 2>&1
	on_gpu env SLURM_JOB_ID=7 TFHOOK_DIR="$PWD" LD_PRELOAD="$TFH_BUILD/lib/libtfhook.so" "${try[@]}" >/dev/null
	[[ -f $(echo tfhook-*/run.json) ]] || fail "a preloaded job made $(ls)"
	diff <(keys told/run.json) <(keys tfhook-*/run.json | grep -vE '"(exe|world)"') || fail 'run.json has other keys'
	diff <(grep -A5 '"command"' told/run.json) <(grep -A5 '"command"' tfhook-*/run.json) || fail 'the command is another'
	rm -r tfhook-*
fi

# An empty directory that is there may be used, and stays.
mkdir empty
expect 0 "$tfhook" run -o empty true
says 'nothing was recorded: no process of this job used a GPU, took a batch from tf.data'
says 'tfhook doctor .*tfhook env'
package=$(sed -n 's/.*mark them: tfhook.step_scope() in Python (PYTHONPATH=\(.*\)),.*/\1/p' .err)
PYTHONPATH=$package python3 -c 'from tfhook import step_scope' || fail "no package in '$package'"
[[ -d empty && -z $(ls -A empty) ]] || fail 'not as empty as before'
says_not 'the job'
expect 3 "$tfhook" run sh -c 'exit 3'
says 'the job failed with exit code 3, perhaps before it did any of that'
says_not 'mark them' # the hints for a job that did what it should
expect_signal 11 "$tfhook" run sh -c 'kill -SEGV $$'
says 'the job was ended by signal 11 .*, perhaps before it did any of that'
expect 0 "$tfhook" run true
nothing_made
expect 125 "$tfhook" run --strict true
expect 0 "$tfhook" run -q true
[[ ! -s .err ]] || fail '-q is not quiet'

# Less than 2 GiB or 5 % free: said, and the job runs.
expect 4 env LD_PRELOAD="$full" FULL_FREE_MB=1500 "$tfhook" run sh -c 'exit 4'
says 'only 1.5 GiB are free.*pauses below 2.0 GiB.*-o DIR'

# The run directory is gone at the end: said, rather than that there was nothing to record.
expect 0 on_gpu "$tfhook" run -o gone sh -c '"$@"; rm -r gone' sh "$job" --steps 3 --h2d 1000 --spin 10
says 'nothing is left of the recording: .*gone was removed while the job ran'
says_not 'nothing was recorded'

# A recording, in the place named and in one of its own name below TFHOOK_DIR.
expect 0 on_gpu "$tfhook" run -o rec "$job" --steps 3 --h2d 1000 --spin 10
says "recording to $TFH_TMP/rec"
[[ -f rec/run.json && -f rec/end.json && -n $(ls rec/*.tft) ]] || fail "not a recording: $(ls rec)"
expect 125 on_gpu "$tfhook" run -o rec "$job"
mkdir below
expect 0 on_gpu env TFHOOK_DIR=below "$tfhook" run "$job" --steps 3 --h2d 1000 --spin 10
ls -d below/tfhook-client_loop-2*T*Z-????/ >/dev/null || fail "$(ls below)"
# Nothing stays in /dev/shm.
[[ -z $(grep -ls "$TFH_TMP" /dev/shm/tfhook.*.journal 2>/dev/null) ]] || fail 'a journal was left over'

# The same on real file systems, where they can be mounted: one that is full, and no /dev/shm. Nothing is lost.
if unshare -m true 2>/dev/null; then
	mkdir small
	on_small() { unshare -m bash -c 'mount -t tmpfs -o size=64m none small && cd small && "$@" && cp -r rec ../saved' bash "$@"; }
	expect 0 on_small env LD_LIBRARY_PATH="$TFH_BUILD/sim" "$tfhook" run -o rec "$job" --steps 30 --h2d 1000 --spin 10
	says 'only 0.1 GiB are free'
	expect 0 "$tfhook" report saved
	prints '30 steps'
	no_shm() { unshare -m bash -c 'mount -t tmpfs -o ro,size=4k none /dev/shm && "$@"' bash "$@"; }
	expect 0 no_shm env LD_LIBRARY_PATH="$TFH_BUILD/sim" "$tfhook" run -o noshm "$job" --steps 30 --h2d 1000 --spin 10
	expect 0 "$tfhook" verify noshm
fi

# Of eight that want the same directory at once, one gets it; the others say so and start nothing.
for try in 1 2 3; do
	for i in $(seq 8); do
		{ "$tfhook" run -q -o same$try sh -c "echo ran >>ran$try; sleep 0.3" 2>>.err; echo $? >>code$try; } &
	done
	wait
	[[ $(grep -c '^0$' code$try) == 1 && $(grep -c '^125$' code$try) == 7 && $(wc -l <ran$try) == 1 ]] ||
		fail "$(cat code$try)"
done

# A recording is its owner's alone, or its group's, too.
(umask 0; on_gpu "$tfhook" run -q -o private "$job" --steps 3 --h2d 1000 --spin 10 >/dev/null)
[[ $(stat -c %a private) == 700 && $(stat -c %a private/* | sort -u) == 600 ]] || fail "$(ls -la private)"
group=$(id -gn)
(umask 077; on_gpu env TFHOOK_GROUP="$group" "$tfhook" run -q -o ours "$job" --steps 3 --h2d 1000 --spin 10 >/dev/null)
[[ $(stat -c %a ours) == 2750 && $(stat -c %a,%G ours/* | sort -u) == "640,$group" ]] || fail "$(ls -la ours)"
expect 0 on_gpu env TFHOOK_GROUP=no-such-group "$tfhook" run -o nogroup "$job" --steps 3 --h2d 1000 --spin 10
says 'TFHOOK_GROUP=no-such-group: there is no such group; only the owner can read the recording'
[[ $(stat -c %a nogroup) == 700 && -n $(ls nogroup/*.tft) ]] || fail "$(ls -la nogroup)"
