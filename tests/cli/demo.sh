#!/usr/bin/env bash
# The quick demo plays its two jobs on the simulated GPU and finds both verdicts right; without its Python packages it
# says how to get them. It finds its parts from the build tree and from an installed prefix, wherever it is called.
# timeout: 300
set -u
. "$TFH_SRC/tests/cli/lib.sh"
[[ -z ${TFH_SAN:-} ]] || exit 77 # what is installed has no sanitizer

expect 125 env TFH_PY=/bin/false "$tfhook" demo quick
says 'needs a python3 with tinygrad and numpy; .make demo DEMO=quick'
says "pip install $(grep '^tinygrad==' "$TFH_SRC/tests/requirements/quick.txt")"

# DESTDIR in another place than PREFIX, as packages are made; -o: what is built stays as it is
make -s -C "$TFH_SRC" O="$TFH_BUILD" -o all install DESTDIR="$PWD/image" PREFIX=/opt/tfhook >make.log 2>&1 ||
	{ cat make.log; fail 'make install'; }
installed=$PWD/image/opt/tfhook
expect 125 env TFH_PY=/bin/false "$installed/bin/tfhook" demo quick
says 'needs a python3'
mv "$installed/lib/tfhook/sim" elsewhere
expect 125 "$installed/bin/tfhook" demo quick
says 'the simulated GPU .*/lib/sim/libcuda.so.1 does not exist; .*make install'
mv elsewhere "$installed/lib/tfhook/sim"
mv "$installed/share/tfhook/demo/train_csv.py" .
expect 125 "$installed/bin/tfhook" demo quick
says 'demo/train_csv.py does not exist; .*make install'
mv train_csv.py "$installed/share/tfhook/demo"
[[ ${TFH_PY:-} ]] || { echo 'no python with tinygrad'; exit 77; }

env -u TFH_SRC "$tfhook" demo quick -o played >.out 2>.err </dev/null
got=$?
prints 'train_csv\.py:[0-9]+|no line of the program was seen' # with few looks it is the line where the pause ends, without any none is known
# Where other work takes the processors, the host may truly be what holds the job back; the report then says so.
if ! [[ $got == 0 && $(grep -c '^RIGHT' .out) == 2 ]]; then
	[[ $got == 1 ]] || fail "exit status $got"
	prints 'a crowded machine'
	says 'busy with other work'
fi
expect 0 "$tfhook" verify played/padded played/csv
