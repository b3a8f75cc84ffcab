# What the scripts of this folder share. Each check names what it expects; the first that fails ends the script.
tfhook=$TFH_BUILD/bin/tfhook
job=$TFH_BUILD/tests/jobs/client_loop # a training-like loop in C
cd "$TFH_TMP" || exit 1
case ${TFH_SAN:-} in address | thread)
	echo "the recorder with that sanitizer cannot be preloaded into ordinary programs"
	exit 77 ;;
esac
[[ -x $job ]] || { echo "$job is not built: make tests"; exit 77; }

fail() {
	echo "FAILED: $*"
	echo "--- stdout"; cat "$TFH_TMP/.out" 2>/dev/null
	echo "--- stderr"; cat "$TFH_TMP/.err" 2>/dev/null
	exit 1
}

# expect STATUS COMMAND...: runs it and compares its exit status; stdout and stderr go to files for the checks below
expect() {
	local want=$1 got=0
	shift
	"$@" >"$TFH_TMP/.out" 2>"$TFH_TMP/.err" </dev/null || got=$?
	[[ $got == "$want" ]] || fail "exit status $got, not $want: $*"
}
# like expect, for a command that dies of a signal
expect_signal() {
	local want=$((128 + $1))
	shift
	expect "$want" bash -c '"$@"; exit $?' bash "$@"
}
says() { grep -qE -- "$1" "$TFH_TMP/.err" || fail "stderr does not say /$1/"; }
says_not() { ! grep -qE -- "$1" "$TFH_TMP/.err" || fail "stderr says /$1/"; }
prints() { grep -qE -- "$1" "$TFH_TMP/.out" || fail "stdout does not print /$1/"; }
nothing_made() { [[ -z $(find . -name 'tfhook-*') ]] || fail "left behind: $(find . -name 'tfhook-*')"; }
# A small system has no pgrep.
children() { cat "/proc/$1/task/$1/children"; }
on_gpu() { env LD_LIBRARY_PATH="$TFH_BUILD/sim" "$@"; }
