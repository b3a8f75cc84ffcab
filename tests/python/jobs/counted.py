"""Random programs, whose loops are counted in random ways, or in none, and which look at themselves: whatever is said to count a loop
must count it. Arguments: the reader's library, a seed, how many programs."""
import ctypes
import dis
import random
import sys

VARIABLES = ["a", "b", "c"]
ITERATOR, COUNTER, ON, FROM, ON_FROM = range(5)
library, seed, programs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
reader = ctypes.CDLL(library)
reader.reader_why.restype = ctypes.c_char_p
if reader.reader_why():
    sys.exit(reader.reader_why().decode())
room = (ctypes.c_int64 * (8 * 16))()
choose = random.Random(seed)


class Text:
    """A program. Its calls: e(k): loop k is next; m(k): an iteration of it begins; s(): somewhere; z(k): its condition was false."""

    def __init__(self):
        self.line, self.loops, self.at, self.left = [], 0, {}, 26
        self.plain = {}  # whether a loop's condition is a comparison, and nothing else
        self.module = choose.random() < .3

    def add(self, depth, text):
        self.line.append("    " * depth + text)

    def condition(self):
        return choose.choice(["r()<.5", "r()<.2", "r()<.8", "not r()<.5", "r()<.5 and r()<.7", "r()<.3 or r()<.3"])

    def change(self, depth):
        name = choose.choice(VARIABLES)
        self.add(depth, choose.choice([name + choose.choice([" += 1"] * 5 + [" += 2", " = 0", " -= 1", " = 1", " = t()"])] * 4 +
                                      [name + " = " + choose.choice(VARIABLES) + " + 1"]))

    def statement(self, depth, inside):
        self.left -= 1
        kind = choose.random()
        if self.left < 0 or kind < .3:
            return self.change(depth)
        if kind < .42:
            self.add(depth, "if %s:" % self.condition())
            self.block(depth + 1, inside)
        elif kind < .5:
            self.add(depth, "if %s:" % self.condition())
            self.block(depth + 1, inside)
            self.add(depth, "else:")
            self.block(depth + 1, inside)
        elif kind < .6 and inside is not None:
            self.add(depth, "if %s:" % self.condition())
            self.add(depth + 1, choose.choice(["continue", "continue", "break"]))
        elif kind < .65:
            self.add(depth, "with context():")
            self.block(depth + 1, inside)
        elif kind < .7:
            self.add(depth, "try:")
            self.block(depth + 1, inside)
            self.add(depth, choose.choice(["except ValueError:", "finally:"]))
            self.add(depth + 1, "r()")
        elif kind < .74:
            self.add(depth, "r() if %s else r(1)" % self.condition())
        elif kind < .78:
            self.add(depth, "[r() for _ in range(2)]")
        elif depth < 5:
            self.loop(depth)
        else:
            self.add(depth, "s()")

    def loop(self, depth):
        k, kind, name = self.loops, choose.random(), choose.choice(VARIABLES)
        self.loops += 1
        self.plain[k] = .5 <= kind < .7
        self.add(depth, "e(%d)" % k)
        if kind < .3:
            self.add(depth, "for i%d in Some(%d):" % (k, choose.randint(1, 4)))
        elif kind < .5:
            self.add(depth, "while %s:" % self.condition())
        elif kind < .7:
            self.add(depth, "while %s %s %d:" % (name, choose.choice(["<", "<=", "!="]), choose.randint(2, 9)))
        elif kind < .8:
            self.add(depth, "while r()<.9 and %s < 9:" % name)
        else:
            self.add(depth, "while True:")
        self.add(depth + 1, "m(%d)" % k)
        self.at[len(self.line)] = k
        self.block(depth + 1, k)
        if choose.random() < .4:
            self.add(depth + 1, name + choose.choice([" += 1", " = %s + 1" % name]))
        if choose.random() < .5:
            self.add(depth + 1, "s()")
        if choose.random() < .5 or kind >= .5:
            self.add(depth + 1, "if q(): break")
        if choose.random() < .3:
            self.add(depth, "else:")
            self.add(depth + 1, "z(%d)" % k)

    def block(self, depth, inside):
        for _ in range(choose.randint(1, 3)):
            self.statement(depth, inside)

    def make(self):
        self.add(0, "if 1:" if self.module else "def f():")
        for line in choose.choice([["a = b = c = 0"], ["a = 0; b = 0; c = 1"], ["a = 0", "b = 0", "c = 0"]]):
            self.add(1, line)
        for _ in range(2):
            self.loop(1)
        return "\n".join(self.line) + "\n"


class Stop(BaseException):
    pass


class Context:
    def __enter__(self):
        return self

    def __exit__(self, *what):
        return False


class Some:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        self.n -= 1
        if self.n < 0:
            raise StopIteration
        return self.n


class Run:
    """What a program calls, and what was read meanwhile of its loops, which is compared."""

    def __init__(self, text, code, number):
        self.text, self.chance, self.calls = text, random.Random(number), 0
        self.passes, self.last, self.begun, self.wrong, self.read = {}, {}, {}, [], set()
        lines = [0] * (len(code.co_code) // 2)
        starts = [(at // 2, line) for at, line in dis.findlinestarts(code)] + [(len(lines), 0)]
        for (at, line), (end, _) in zip(starts, starts[1:]):
            lines[at:end] = [line or 0] * (end - at)
        self.lines = lines

    def count(self):
        self.calls += 1
        if self.calls > 400:
            raise Stop

    def names(self):
        def e(k):
            self.passes[k] = 0

        def m(k):
            self.count()
            self.passes[k] += 1
            self.begun[k] = self.begun.get(k, 0) + 1
            self.look(reader.reader_counted(1, room))

        def s():
            self.look(reader.reader_counted(1, room))

        def z(k):
            _, entry, most = self.last.get(k, (0, (-1, 0), -1))
            if self.text.plain[k] and most >= 0 and entry[0] == self.begun.get(k, 0) - self.passes[k] and most != self.passes[k]:
                self.wrong.append("loop %d ends after %d of %d" % (k, self.passes[k], most))

        def r(x=0):
            self.count()
            return self.chance.random()

        return dict(e=e, m=m, s=s, z=z, r=r, t=lambda: self.chance.randint(0, 9), q=lambda: r() < .12, Some=Some, context=Context)

    def look(self, n):
        if n < 0:
            self.wrong.append("a variable changed meanwhile")
        for i in range(n):
            lo, hi, where, index, known, count, done, left = room[8 * i:8 * i + 8]
            own = [line for line in self.lines[lo:hi] if line in self.text.at]
            if known and own:
                self.check(self.text.at[min(own)], count, done, left)

    def check(self, k, count, done, left):
        """`passes`: of this entry; `begun`: of all. A pass that is left before it is counted is not in a counter that goes on."""
        passes, begun = self.passes[k], self.begun.get(k, 0)
        before, entry, most = self.last.get(k, (None, None, -1))
        self.read.add(k)
        if count == COUNTER:
            right = done == passes
        elif count == ON:
            right = passes <= done <= begun
        else:
            right = True
        # Since it was last read in this entry of the loop, it has counted as many as began.
        if before is not None and entry[0] == begun - passes:
            right &= done - before == passes - entry[1] and (most < 0 or passes + left == most)
        if not right:
            self.wrong.append("loop %d, kind %d: %d, which was %s in pass %s; pass %d of %d" % (k, count, done, before, entry, passes, begun))
        self.last[k] = (done, (begun - passes, passes), passes + left if left >= 0 else -1)


kept, loops, read, wrong = [], 0, 0, 0
for number in range(programs):
    text = Text()
    source = text.make()
    code = compile(source, "p", "exec")
    kept.append(code)  # no other one comes to its address
    inner = [c for c in code.co_consts if hasattr(c, "co_code") and c.co_name == "f"]
    run = Run(text, inner[0] if inner else code, number)
    space = run.names()
    exec(code, space) if not text.module else None
    for _ in range(1 if text.module else 3):
        run.calls, run.passes, run.begun, run.last = 0, {}, {}, {}
        try:
            exec(code, space) if text.module else space["f"]()
        except Stop:
            pass
    loops += text.loops
    read += len(run.read)
    if run.wrong:
        wrong += 1
        if wrong < 3:
            print("\n".join(run.wrong[:3] + ["%3d %s" % x for x in enumerate(text.line, 1)]))
print("%d loops, %d counted, %d wrong" % (loops, read, wrong))
