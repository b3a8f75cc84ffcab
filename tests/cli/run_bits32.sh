#!/usr/bin/env bash
# A 32-bit child of a job prints and returns the same with and without tfhook, and what it starts is recorded: its loader finds an
# empty library where it looks for the recorder.
set -u
. "$TFH_SRC/tests/cli/lib.sh"
[[ $(uname -m) == x86_64 ]] || exit 77
"$TFH_SRC/scripts/bootstrap" bits32 2>why || { tail -n 1 why; exit 77; }
libc=$(compgen -G '/lib32/libc.so.6' || compgen -G '/lib/i386-linux-gnu/libc.so.6' || compgen -G '/usr/lib32/libc.so.6') ||
	{ echo "on this system \$LIB of 32-bit programs is lib, as that of other systems' 64-bit ones (docs/torture.md)"; exit 77; }

# Without the headers and start files of a 32-bit compiler.
cat >small.c <<'E2'
int puts(const char *), fflush(void *), execve(const char *, char **, char **);
void exit(int);
__attribute__((used)) void begin(long *stack)
{
	char **arguments = (char **)(stack + 1), **environment = arguments + stack[0] + 1;
	puts("a 32-bit program");
	fflush(0);
	if (stack[0] > 1)
		execve(arguments[1], arguments + 1, environment);
	exit(7);
}
__asm__(".globl _start\n_start: mov %esp, %eax\nand $-16, %esp\nsub $12, %esp\npush %eax\ncall begin\n");
E2
gcc -m32 -O1 -ffreestanding -fno-pic -no-pie -nostdlib -Wl,-z,noexecstack -Wl,-dynamic-linker,/lib/ld-linux.so.2 -o small small.c "$libc" ||
	fail 'no 32-bit program'
printf '#!/bin/sh\n./small\necho "status $?"\nexec ./small "$@"\n' >starts-small
chmod +x starts-small

expect 7 ./starts-small
cp .out out && cp .err err
expect 7 "$tfhook" run -q ./starts-small
cmp out .out && cmp err .err || fail 'another output under tfhook run'
expect 7 bash -c 'eval "$("$1" env)" && exec ./starts-small' bash "$tfhook"
cmp out .out && cmp err .err || fail 'another output with the variables of tfhook env'
expect 7 env TFHOOK_EXPORTS=0 "$tfhook" run -q ./starts-small
cmp out .out && cmp err .err || fail 'another output without exports'
nothing_made
# Its stack stays as it is: not executable.
for file in "$TFH_BUILD"/lib/lib32/*.so "$TFH_BUILD"/lib/lib/i386-linux-gnu/*.so; do
	readelf -lW "$file" | grep -q 'GNU_STACK.* RW ' || fail "$file makes stacks executable"
done

expect 0 on_gpu "$tfhook" run -q -o below ./starts-small "$job" --steps 3 --h2d 1000 --spin 10
ls below/*.tft >/dev/null || fail 'what a 32-bit program starts is not recorded'
