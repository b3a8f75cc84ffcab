#!/usr/bin/env bash
# --audit: a GPU library opened with RTLD_DEEPBIND is recorded; LD_AUDIT is set for the job only, once, and before others;
# without it the message about an empty recording names it.
set -u
. "$TFH_SRC/tests/cli/lib.sh"

audit=$TFH_BUILD/lib/libtfhook-audit.so
deep=("$TFH_BUILD/tests/hook/opens" "$TFH_BUILD/tests/hook/libdeepbind.so" deepbind_run deepbind)
[[ -e $audit && -x ${deep[0]} ]] || { echo "not built"; exit 77; }

expect 0 on_gpu "$tfhook" run -o unseen "${deep[@]}"
says 'nothing was recorded: .* that tfhook could see'
says 'RTLD_DEEPBIND .*--audit'
expect 0 on_gpu "$tfhook" run --audit -o seen "${deep[@]}"
says_not 'nothing was recorded'
ls seen/*.tft >/dev/null || fail 'not recorded'
expect 0 "$tfhook" run --audit true
says_not 'RTLD_DEEPBIND'

expect 0 "$tfhook" run --audit sh -c 'echo "$LD_AUDIT"'
prints "^$audit$"
expect 0 env LD_AUDIT="$audit" "$tfhook" run --audit sh -c 'echo "$LD_AUDIT"'
prints "^$audit$"
expect 0 "$tfhook" run sh -c 'echo "<$LD_AUDIT>"'
prints '^<>$'
expect 0 "$tfhook" env --audit
prints "^export LD_AUDIT='$audit'$"
expect 0 "$tfhook" env --audit --format slurm
prints ",LD_AUDIT=$audit$"
# NVTX ranges are recorded however the job is started, unless somebody else wants them.
for format in shell docker slurm k8s sagemaker; do
	expect 0 "$tfhook" env --format $format
	tr -d '\n' <.out >flat && mv flat .out
	prints "LD_PRELOAD[^/]{1,30}/.*libtfhook.so"
	prints "NVTX_INJECTION64_PATH[^/]{1,30}/.*libtfhook.so"
done
expect 0 env NVTX_INJECTION64_PATH=/other.so "$tfhook" env --format slurm
! grep -q NVTX .out || fail 'NVTX ranges of another tool are taken'
expect 0 "$tfhook" env
! grep -q LD_AUDIT .out || fail 'LD_AUDIT without being asked for'

mkdir -p "a b/bin" "a b/lib" tmp
cp "$tfhook" "a b/bin/" && cp "$TFH_BUILD/lib/libtfhook.so" "$audit" "a b/lib/"
expect 0 on_gpu env TMPDIR="$TFH_TMP/tmp" "a b/bin/tfhook" run --audit -o blank "${deep[@]}"
says_not 'ERROR: ld.so'
ls blank/*.tft >/dev/null || fail 'not recorded through links'
[[ -z $(ls tmp) ]] || fail 'the links are still there'
rm "a b/lib/libtfhook-audit.so"
expect 125 "a b/bin/tfhook" run --audit touch started
says 'libtfhook-audit.so, which --audit needs, does not exist'
[[ ! -e started ]] || fail 'the job was started'
