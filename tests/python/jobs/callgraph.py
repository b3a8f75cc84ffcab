"""A program whose call graph is known: 64 functions, each of which calls three others at random, each on a line of its
own, while a second thread samples its stack. Prints how many stacks cannot be.

usage: callgraph.py READER SAMPLES FILE    the file is for the stacks
"""
import ctypes
import os
import random
import sys
import threading

FUNCTIONS, DEEP = 64, 12
source, calls = [], {}
for i in range(FUNCTIONS):
    to = [(i * k + k) % FUNCTIONS for k in (3, 5, 7)]
    source.append("def f%d(n):" % i)
    source.append("    if not n:")
    source.append("        return n")
    source.append("    r = draw()")
    for k, callee in enumerate(to):
        source.append("    if r < %s:" % (0.3 * (k + 1)))
        source.append("        return f%d(n - 1) + 1" % callee)
        calls[len(source)] = ("f%d" % i, "f%d" % callee)
    source.append("    return [x for x in (1, 2)][0] + sum(x for x in (1, 2))")
draw = random.random
exec(compile("\n".join(source), "<graph>", "exec"), globals())
LINES = len(source) // FUNCTIONS
FIRST = {"f%d" % i: LINES * i + 1 for i in range(FUNCTIONS)}
assert all(source[FIRST[name] - 1] == "def %s(n):" % name for name in FIRST)
stop = False
sys.setswitchinterval(1e-4)


def work():
    while not stop:
        globals()["f%d" % random.randrange(FUNCTIONS)](random.randrange(DEEP))


def possible(frames):
    """Can each frame have been called from the line of the next outer one?"""
    names = [name.rsplit(".", 1)[-1] for _, _, name in frames]
    for i, (name, (_, line, _)) in enumerate(zip(names, frames)):
        inner = names[i - 1] if i else None
        if name in FIRST:
            within = line - FIRST[name]
            if not 0 <= within < LINES:
                return False
            if inner in FIRST and calls.get(line) != (name, inner):
                return False
            if inner and inner not in FIRST and not (inner[0] == "<" and within == LINES - 1):
                return False
        elif inner in FIRST and name != "work":
            return False
    return names[-1] == "_bootstrap"


library = ctypes.CDLL(sys.argv[1])
library.reader_why.restype = ctypes.c_char_p
library.reader_watch.argtypes = [ctypes.c_ulong, ctypes.c_int, ctypes.c_int]
assert not library.reader_why(), library.reader_why()
thread = threading.Thread(target=work)
thread.start()
fd = os.open(sys.argv[3], os.O_CREAT | os.O_TRUNC | os.O_RDWR, 0o600)
samples = int(sys.argv[2])
seen = library.reader_watch(thread.ident, samples, fd)
stop = True
thread.join()
wrong = deep = 0
with open(sys.argv[3]) as f:
    for line in f:
        parts = line.rstrip("\n").split("\t")[:-1]
        frames = [(parts[i], int(parts[i + 1]), parts[i + 2]) for i in range(0, len(parts), 3)]
        deep += any(f[0] == "<graph>" for f in frames)
        if not possible(frames):
            wrong += 1
            if wrong < 4:
                print("impossible:", frames)
print(sys.version.split()[0], samples, "samples,", seen, "stacks,", deep, "in the graph,", wrong, "impossible")
