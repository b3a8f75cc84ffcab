#!/usr/bin/env bash
# Commands, flags and their mistakes: suggestions, help for every command, completions that the shells accept, colour
# only where it belongs, doctor's verdict.
set -u
. "$TFH_SRC/tests/cli/lib.sh"

expect 2 "$tfhook"
says 'usage: tfhook COMMAND'
expect 2 "$tfhook" reprot
says "unknown command 'reprot', did you mean 'report'"
expect 2 "$tfhook" export a
says "export: to which format.*tfhook help export"
expect 2 "$tfhook" python3
says 'To trace a command: tfhook run python3'
expect 0 "$tfhook" --version
prints '^tfhook [0-9]+\.[0-9]+\.[0-9]+$'
expect 2 "$tfhook" report --jsn
says "unknown flag '--jsn', did you mean '--json'"
expect 2 "$tfhook" report --color=purple
says 'auto always never'
expect 2 "$tfhook" report --json --csv
says 'exclude each other'
expect 2 "$tfhook" env extra
says "takes no 'extra'"
expect 2 "$tfhook" completions tcsh
expect 2 "$tfhook" demo nosuch
says 'there are: main quick'
expect 2 "$tfhook" ctl
says 'usage: tfhook ctl'

expect 0 "$tfhook" help
commands=$(sed -n 's/^  \([a-z]*\)  .*/\1/p' .out | sort -u)
[[ $(wc -w <<<"$commands") -ge 12 ]] || fail "commands: $commands"
for command in $commands; do
	expect 0 "$tfhook" help "$command"
	prints "^usage: tfhook $command"
	[[ $(wc -L <.out) -le 100 ]] || fail "help $command is too wide"
	expect 0 "$tfhook" "$command" --help
	prints "^usage: tfhook $command"
done

# The completion scripts are accepted by their shells, and bash's completes.
for shell in bash zsh fish; do
	expect 0 "$tfhook" completions $shell
	cp .out complete.$shell
	if command -v $shell >/dev/null; then
		$shell -n complete.$shell || fail "$shell does not accept its completions"
	fi
done
complete() {
	bash -c '. ./complete.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tfhook; echo "${COMPREPLY[*]}"' bash "$@"
}
[[ $(complete tfhook rep) == 'report repair' ]] || fail "completes: $(complete tfhook rep)"
[[ $(complete tfhook report --js) == --json ]] || fail "completes: $(complete tfhook report --js)"
[[ $(complete tfhook demo q) == quick ]] || fail "completes: $(complete tfhook demo q)"
[[ $(complete tfhook help verif) == verify ]] || fail "completes: $(complete tfhook help verif)"
touch atrace.tft
[[ $(complete tfhook verify atr) == atrace.tft ]] || fail "completes: $(complete tfhook verify atr)"

# Colour: not into a pipe, on demand, never against NO_COLOR.
expect 0 on_gpu "$tfhook" run -q -o rec "$job" --steps 40 --h2d 100000 --spin 2000
esc=$(printf '\033')
expect 0 "$tfhook" report --all rec
! grep -q "$esc" .out || fail 'coloured into a file'
[[ $(LC_ALL=C wc -L <.out) -le 80 ]] || fail "wider than 80 columns: $(awk 'length > 80' .out)"
expect 0 "$tfhook" report --color=always rec
grep -q "$esc" .out || fail 'not coloured'
expect 0 env CLICOLOR_FORCE=1 "$tfhook" report rec
grep -q "$esc" .out || fail 'CLICOLOR_FORCE has no effect'
expect 0 env CLICOLOR_FORCE=1 NO_COLOR=1 "$tfhook" report rec
! grep -q "$esc" .out || fail 'coloured in spite of NO_COLOR'

got=0
"$tfhook" doctor true >.out 2>.err || got=$?
[[ $got == 0 || $got == 1 ]] || fail "doctor: $got"
prints 'the recorder is loaded into processes'
prints 'true can be recorded'
expect 1 env LD_PRELOAD="$TFH_BUILD/tests/cli/libfull.so" FULL_FREE_MB=100 FULL_NO_SHM=1 "$tfhook" doctor
prints 'BAD .*recording pauses below'
prints 'no /dev/shm: journals go beside'
"$tfhook" doctor >.out 2>.err
prints '(CUPTI|no GPU driver)'
prints 'call sites of slow calls'
prints 'NVTX ranges of a job are recorded'
NVTX_INJECTION64_PATH=/opt/other.so LD_LIBRARY_PATH=$TFH_BUILD/sim "$tfhook" doctor >.out 2>.err
prints 'GPU driver: .*sim/libcuda.so.1, for CUDA [0-9]+\.[0-9]'
prints 'CUPTI: .*sim/libcupti.so'
prints 'NVTX ranges go to /opt/other.so'
TFHOOK_CUPTI_LIB=/nowhere.so LD_LIBRARY_PATH=$TFH_BUILD/sim "$tfhook" doctor >.out 2>.err
prints 'CUPTI: none found.*tier C.*the one named cannot be loaded'
expect 1 env TFHOOK_RANKZ=1 "$tfhook" doctor
says 'did you mean TFHOOK_RANKS'
# so is a value that is not understood, with what may stand there
expect 1 env TFHOOK_STACKS=foo "$tfhook" doctor
says '^tfhook: TFHOOK_STACKS=foo is not understood and stays auto; it takes off, slow:1ms'
expect 0 env TFHOOK_WINDOW=xyz "$tfhook" env
says '^tfhook: TFHOOK_WINDOW=xyz is not understood and has no effect; it takes steps:100-200'
expect 3 env TFHOOK_RANKS=two 'TFHOOK_SKIP=[' "$tfhook" run -o odd sh -c 'exit 3'
says '^tfhook: TFHOOK_RANKS=two is not understood and stays all'
says '^tfhook: TFHOOK_SKIP=\[ is not understood and has no effect; it takes a regular expression'
# and in `info`; the library itself says nothing
expect 0 env TFHOOK_STACKS=foo TFHOOK_RANKS=two TFHOOK_RUN="$PWD/odd" LD_PRELOAD="$TFH_BUILD/lib/libtfhook.so" \
	LD_LIBRARY_PATH="$TFH_BUILD/sim" "$job" --steps 3
[[ ! -s .err ]] || fail 'the library speaks of settings'
expect 0 "$tfhook" info odd
prints 'TFHOOK_STACKS=foo   <- not valid, had no effect; it takes off, slow'
