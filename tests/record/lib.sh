# What tests of whole jobs share: sets lib, tally, status and TFHOOK_RUN; a script sets job (the program) and place (the
# directory it is given) first.
lib=$TFH_BUILD/lib/libtfhook.so tally=$TFH_BUILD/tests/record/tally
[[ -e $lib ]] || exit 77
[[ -n ${TFH_SAN:-} ]] && exit 77 # a sanitizer must come first in the process
status=0
export TFHOOK_RUN=$TFH_TMP/run

go() { # HOW [ENV...]: $rc, $out, $got
	rm -rf "$TFH_TMP/run" "$TFH_TMP/own"
	mkdir -p "$place"
	out=$(env LD_PRELOAD="$lib" "${@:2}" "$job" "$1" "$place" 2>&1)
	rc=$?
	got=$([[ -d $TFHOOK_RUN ]] && "$tally" -s "$TFHOOK_RUN")
}
fail() {
	echo "$*"
	echo "rc $rc, output: $out"
	echo "$got"
	status=1
}
sum() { grep -oE "\b$1=[0-9]+" <<<"$got" | awk -F= '{ n += $2 } END { print n + 0 }'; }
