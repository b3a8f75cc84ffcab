#!/usr/bin/env bash
# What must hold: where others may write, the recording goes to a directory of its owner's: a FIFO, a link or a directory
# that another user put there first neither stops the job nor is joined. Recordings are their owner's alone, or their
# group's (TFHOOK_GROUP), whatever the umask is. TFHOOK_RUN of a run that has ended is not joined.
set -u
job=$TFH_BUILD/tests/record/hostile place=$TFH_TMP/own
. "$TFH_SRC/tests/record/lib.sh"
unset TFHOOK_RUN
rc=0 out= got=
cd "$TFH_TMP" || exit 1
mkdir own
user() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
record() { # [ENV...]
	out=$(timeout 20 env LD_PRELOAD="$lib" SLURM_JOB_ID=4713 TFHOOK_LOG="$PWD/log" "$@" "$job" plain own 2>&1)
	rc=$?
	got=$(cat log 2>/dev/null)
	rm -f log
	((rc == 7)) || fail "$*: the job ends as without tfhook"
}
modes() { stat -c %a "$1" | tr '\n' ' '; stat -c %a "$1"/* | sort -u | tr '\n' ' '; }

for mask in 022 077 000 0777; do
	mkdir -m 700 "mask$mask"
	(umask $mask && record TFHOOK_DIR="$PWD/mask$mask" && exit $status) || status=1
	[[ $(modes "mask$mask/tfhook-4713.batch") == "700 600 " ]] || fail "umask $mask: $(modes mask$mask/*)"
done

record TFHOOK_DIR="$PWD/nogroup" TFHOOK_GROUP=no-such-group
[[ $(wc -l <<<"$out") == 1 && $out =~ 'no such group in /etc/group; give its number' ]] || fail 'a group that is not there'
[[ $(modes nogroup/tfhook-4713.batch) == "700 600 " ]] || fail "without the group: $(modes nogroup/*)"

# What is left of a run that ended is not joined, but by its own process group.
mkdir -m 700 old
echo '{"launch": "1-1@x"}' >old/run.json
record TFHOOK_DIR="$PWD/given" TFHOOK_RUN="$PWD/old"
[[ -n $(ls old/*.tft) && ! -e given ]] || fail 'the directory that was given'
rm old/*.tft
echo '{}' >old/end.json
record TFHOOK_DIR="$PWD/given" TFHOOK_RUN="$PWD/old"
[[ -z $(ls old/*.tft 2>/dev/null) && -n $(ls given/*/*.tft) ]] || fail 'a directory of its own'
[[ $(grep -c 'old belongs to a run that has ended' <<<"$got") == 1 ]] || fail 'one line in the log'

((UID == 0)) && user true 2>/dev/null || exit $status
mkdir -m 1777 group
record TFHOOK_DIR="$PWD/group" TFHOOK_GROUP=12345
[[ $(modes group/tfhook-4713.batch) == "2750 640 " && $(stat -c %g group/*/* | sort -u) == 12345 ]] ||
	fail "a group's: $(modes group/*)"

# Another user was there first: with a FIFO, a directory, a link to a directory of ours.
chmod 711 .
mkdir ours
for trap in 'mkdir -m 777 N && mkfifo -m 666 N/run.json' 'mkdir -m 777 N' 'ln -s ../ours N' 'mkfifo N'; do
	rm -rf others
	mkdir -m 1777 others
	user sh -c "cd others && ${trap//N/tfhook-4713.batch}" || exit 77
	before=$(find others ours)
	record TFHOOK_DIR="$PWD/others"
	[[ -z $out && -n $(ls others/tfhook-4713.batch.2/*.tft) ]] || fail "$trap: a directory of its own"
	rm -r others/tfhook-4713.batch.2
	[[ $(find others ours) == "$before" ]] || fail "$trap: something was put there"
	record TFHOOK_RUN="$PWD/others/tfhook-4713.batch"
	[[ $(wc -l <<<"$out") == 1 && $out =~ 'set TFHOOK_DIR' ]] || fail "$trap: given by TFHOOK_RUN"
	[[ $(find others ours) == "$before" ]] || fail "$trap: something was put there, given by TFHOOK_RUN"
done
rm -rf others
mkdir -m 1777 others
user ln -s ../ours others/below
record TFHOOK_DIR="$PWD/others/below/deep"
[[ $out =~ "a symbolic link in its path belongs to another user; set TFHOOK_DIR" && -z $(ls ours) ]] || fail 'a link above'
ln -s ../ours others/mine
record TFHOOK_DIR="$PWD/others/mine"
[[ -n $(ls ours/*/*.tft) ]] || fail 'a link of our own above'

# Of a directory that root handed out, and of a group that one is not in.
cp "$job" "$lib" .
chmod 755 hostile libtfhook.so
mkdir -m 777 handed
lib=$PWD/libtfhook.so
record_as() {
	out=$(user env LD_PRELOAD="$lib" "$@" "$PWD/hostile" plain own 2>&1)
	rc=$?
	((rc == 7)) || fail "$*: the job ends as without tfhook"
}
record_as TFHOOK_RUN="$PWD/handed" TFHOOK_GROUP=0
[[ $out =~ 'TFHOOK_GROUP=0: this user is not in that group' && -n $(ls handed/*.tft) ]] || fail 'not in the group'
[[ $(stat -c %a handed/*.tft) == 600 ]] || fail 'not in the group: modes'

# An umask that leaves the owner no rights: the directory gets them, and none of the job's own files does.
mkdir -m 777 masked
for ((i = 0; i < 10; i++)); do
	: >masked/file.$i
	exec {files[i]}<masked/file.$i
done
chown -R 65534 masked/file.*
chmod 640 masked/file.*
(umask 0777 && record_as SLURM_JOB_ID=4713 TFHOOK_DIR="$PWD/masked" <masked/file.0 && exit $status) || status=1
[[ $(modes masked/tfhook-4713.batch) == "700 600 " && $(stat -c %a masked/file.* | sort -u) == 640 ]] ||
	fail "umask 0777: $(stat -c '%n %a' masked/*)"
exit $status
