#!/usr/bin/env bash
# A command that cannot be started or recorded gets a message with the remedy and the documented exit code, and nothing
# is left behind: none, not found, not executable, a directory, a lost interpreter, static, setuid, 32-bit, musl.
set -u
. "$TFH_SRC/tests/cli/lib.sh"

expect 125 "$tfhook" run
says 'no command given.*tfhook run python3 train.py'
expect 125 "$tfhook" run --outptu x true
says "unknown flag '--outptu', did you mean '--output'"
expect 125 "$tfhook" run -o
says '-o needs a value'

expect 127 "$tfhook" run nosuchcommand
says "no command 'nosuchcommand' in PATH"
expect 127 "$tfhook" run ./nosuchfile
says 'nosuchfile: no such file'
echo 'echo hi' >script.py
expect 127 "$tfhook" run script.py
says 'in this directory: start it as ./script.py'
expect 126 "$tfhook" run ./script.py
says 'not executable: chmod \+x.*python3'
expect 126 "$tfhook" run "$TFH_TMP"
says 'is a directory'
printf '#!/no/such/python\n' >lost && chmod +x lost
expect 126 "$tfhook" run ./lost
says 'asks for the interpreter /no/such/python'
nothing_made

# A script without a first line runs in a shell, as execvp has it.
printf 'exit 3\n' >plain && chmod +x plain
expect 3 "$tfhook" run ./plain

# These run, but the loader does not take the recorder along: said before, and the job is the job.
echo 'int main(void) { return 9; }' >prog.c
if gcc -static -o static prog.c 2>/dev/null; then
	expect 9 "$tfhook" run ./static
	says 'statically linked.*dynamically linked build'
	expect 125 "$tfhook" run --strict ./static
	says 'not started: --strict'
fi
gcc -o dynamic prog.c || exit 77
if [[ $(id -u) == 0 ]] && cp dynamic setuid && chown 65534 setuid && chmod 4755 setuid; then
	expect 9 "$tfhook" run ./setuid
	says "owner's rights.*LD_PRELOAD"
else
	expect 0 "$tfhook" run /usr/bin/passwd --help
	says "owner's rights.*LD_PRELOAD"
fi
# musl's loader ends a program for the recorder's sake, so that stays away.
"$TFH_SRC/scripts/bootstrap" musl 2>why || { tail -n 1 why; exit 77; }
musl-gcc -o musl prog.c || fail 'musl-gcc'
expect 9 "$tfhook" run ./musl
says 'musl uses the C library musl.*without being recorded'
expect 125 "$tfhook" run --strict ./musl
says 'not started: --strict'
# Below a program that is recorded, too: its loader must not find us.
printf '#!/bin/sh\n./musl\necho "child $?"\nexit 6\n' >starts-musl
chmod +x starts-musl
expect 6 "$tfhook" run ./starts-musl
prints 'child 9'
# The head of a 32-bit program is all that is looked at.
printf '\177ELF\1\1\1\0\0\0\0\0\0\0\0\0\2\0\3\0\1\0\0\0' >bits32
head -c 64 /dev/zero >>bits32
chmod +x bits32
expect 125 "$tfhook" run --strict ./bits32
says '32-bit program.*64-bit build'
nothing_made
