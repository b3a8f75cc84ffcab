#!/usr/bin/env bash
# The quick demo plays its two jobs on the simulated GPU and finds both verdicts right; without its Python packages it
# says how to get them.
# timeout: 300
set -u
. "$TFH_SRC/tests/cli/lib.sh"

expect 125 env TFH_PY=/bin/false "$tfhook" demo quick
says 'needs a python3 with tinygrad and numpy; .make demo DEMO=quick'
[[ ${TFH_PY:-} ]] || { echo 'no python with tinygrad'; exit 77; }
expect 0 "$tfhook" demo quick -o played
[[ $(grep -c '^RIGHT' .out) == 2 ]] || fail 'not two right verdicts'
prints 'no input pipeline was visible'
expect 0 "$tfhook" verify played/padded played/csv
