#!/usr/bin/env bash
# A secret given to a job in any of the usual ways is in no file of its recording, in no message and in no output of a command.
set -u
. "$TFH_SRC/tests/cli/lib.sh"
secret=PLANTEDx9
args=(--token "-$secret" --wandb_key=$secret "--env=API_KEY=$secret" "--hparams=lr=3,password=$secret" "-p$secret" -u "me:$secret"
	"https://me:$secret@host/" -H "Authorization: Bearer $secret" "{\"n\": 1, \"secret\": \"$secret\"}" "lr: 3
password: $secret" "https://h/?sig=$secret&n=1" "train --auth $secret" "AKIA${secret^^}ABCDEFGH")
expect 0 env LD_LIBRARY_PATH="$TFH_BUILD/sim" NCCL_AUTH=$secret TF_CREDENTIAL=$secret TF_VAR_x=$secret HF_TOKEN=$secret NCCL_DEBUG=WARN \
	TF_CONFIG="{\"token\": \"$secret\"}" OTHER="$secret" TFHOOK_LOG="$TFH_TMP/log" TFHOOK_VERBOSE=3 \
	"$tfhook" run -o rec bash -c '"$0" --steps 40 --h2d 1000 --spin 100' "$job" "${args[@]}"
# The process itself, with all that on its own command line.
expect 0 env LD_LIBRARY_PATH="$TFH_BUILD/sim" LD_PRELOAD="$TFH_BUILD/lib/libtfhook.so" TFHOOK_DIR=own \
	python3 -c 'from ctypes import *
cuda, context, memory = CDLL("libcuda.so.1"), c_void_p(), c_uint64()
assert not cuda.cuInit(0) and not cuda.cuCtxCreate_v2(byref(context), 0, 0) and not cuda.cuMemAlloc_v2(byref(memory), c_size_t(9))
assert not cuda.cuMemcpyHtoD_v2(memory, b"x" * 9, c_size_t(9))' "${args[@]}"
mv own/* own/run
for file in rec/run.json own/run/run.json; do
	grep -q '"--hparams=lr=3,password=<redacted>"' "$file" || fail "$file: $(cat "$file")"
	grep -q '"NCCL_DEBUG": "WARN"' rec/run.json || fail "what helps is gone: $(cat rec/run.json)"
done
for dir in rec own/run; do
	! grep -raiq planted "$dir" || fail "in $(grep -rail planted "$dir")"
	for command in info report "report --json" "report -w" "report --steps" "verify"; do
		"$tfhook" $command $dir >.out 2>.err
		! grep -aiq planted .out .err || fail "$command tells it"
	done
	mv $dir/run.json $dir.json # then HEAD tells the command
	"$tfhook" info $dir >.out 2>.err
	! grep -aiq planted .out .err || fail "HEAD tells it"
done
grep -q 'hparams=lr=3,password=<redacted>' .out || fail 'HEAD does not tell the command'
! grep -aiq planted log || fail 'the log tells it'
echo ok
