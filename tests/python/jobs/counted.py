"""Random programs, whose loops are counted in random ways, or in none, and which look at themselves: whatever is said to count a loop
must count it, be it a variable, or an attribute of an object of any kind. Arguments: the reader's library, a seed, how many programs."""
import ctypes
import dis
import random
import sys
import types

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
        self.module, self.arguments = choose.random() < .3, choose.random() < .5
        self.variables = [choose.choice([name, name, "o." + name, "p." + name]) for name in "abc"]

    def add(self, depth, text):
        self.line.append("    " * depth + text)

    def condition(self):
        return choose.choice(["r()<.5", "r()<.2", "r()<.8", "not r()<.5", "r()<.5 and r()<.7", "r()<.3 or r()<.3"])

    def change(self, depth):
        name = choose.choice(self.variables)
        if (self.module or self.arguments) and choose.random() < .05:
            self.add(depth, choose.choice(["o = p", "o, p = p, o", "p = o"]))
        self.add(depth, choose.choice([name + choose.choice([" += 1"] * 5 + [" += 2", " = 0", " -= 1", " = 1", " = t()"])] * 4 +
                                      [name + " = " + choose.choice(self.variables) + " + 1"]))

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
        k, kind, name = self.loops, choose.random(), choose.choice(self.variables)
        self.loops += 1
        self.plain[k] = .5 <= kind < .7
        self.add(depth, "e(%d)" % k)
        if kind < .3:
            self.add(depth, "for i%d in Some(%d):" % (k, choose.randint(1, 4)))
        elif kind < .5:
            self.add(depth, "while %s:" % self.condition())
        elif kind < .7:
            self.add(depth, "while %s %s %s:" % (name, choose.choice(["<", "<=", "!="]), choose.choice([choose.randint(2, 9)] * 3 + ["o.end"])))
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
        self.add(0, "if 1:" if self.module else "def f(o, p):" if self.arguments else "def f(o_=0, p_=0):")
        a, b, c = self.variables
        for line in choose.choice([["%s = %s = %s = 0" % (a, b, c)], ["%s = 0; %s = 0; %s = 1" % (a, b, c)], [x + " = 0" for x in (a, b, c)]]):
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


class Plain:
    def __init__(self):
        self.end = choose.randint(2, 9)


class Shown(Plain):
    """Its dict is an object already."""
    def __init__(self):
        super().__init__()
        self.dict = self.__dict__


class Large(Plain):
    def __init__(self):
        super().__init__()
        for i in range(choose.randint(20, 200)):
            setattr(self, "field%d" % i, i)


class Other(Plain):
    """Its objects have their attributes in another order each."""
    def __init__(self):
        for name in choose.sample(["a", "b", "c", "d", "end", "x", "y", "z"], 8):
            setattr(self, name, 0)
        for name in choose.sample(["a", "b", "x", "y"], 2):
            delattr(self, name)
        self.end = 5


class Default(Plain):
    a = b = c = 0
    end = 5


class Slots:
    __slots__ = ("a", "b", "c", "end")

    def __init__(self):
        self.end = 4


class Both(Slots):
    a = 3


class Property(Plain):
    """What is stored is not what is read."""
    b = property(lambda self: self.hidden, lambda self, value: setattr(self, "hidden", min(value, 3)))


class Sets(Plain):
    def __setattr__(self, name, value):
        object.__setattr__(self, name, value + 1 if value == 3 else value)


class Gets(Plain):
    def __getattribute__(self, name):
        value = object.__getattribute__(self, name)
        return value - 1 if name in "abc" and value == 3 else value


class Lacks(Plain):
    def __getattr__(self, name):
        return 0


class Failure(Plain, ValueError):
    pass


class Table(Plain, dict):
    pass


def named():
    return types.SimpleNamespace(end=3)


def module():
    made = types.ModuleType("m")
    made.end = 4
    return made


def of_class():
    return type("Made", (Default,), {})


READ, REFUSED = [Plain, Shown, Large, Other, Default, Failure, Table], [Slots, Both, Property, Sets, Gets, Lacks, named, module, of_class]


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

        o, other = (choose.choice(READ * 2 + REFUSED)() for _ in range(2))
        p = choose.choice([o, other])
        for thing, name in zip((o, p) * 3, "abcabc"):
            setattr(thing, name, 0)
        return dict(kinds=READ + REFUSED, o=o, p=p, e=e, m=m, s=s, z=z, r=r, t=lambda: self.chance.randint(0, 9), q=lambda: r() < .12, Some=Some, context=Context)

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


def execute(text, source, number):
    """What a program's run was."""
    code = compile(source, "p", "exec")
    kept.append(code)  # no other one comes to its address
    inner = [c for c in code.co_consts if hasattr(c, "co_code") and c.co_name == "f"]
    run = Run(text, inner[0] if inner else code, number)
    space = run.names()
    if not text.module:
        exec(code, space)
    for _ in range(1 if text.module else 3):
        run.calls, run.passes, run.begun, run.last = 0, {}, {}, {}
        try:
            exec(code, space) if text.module else space["f"](space["o"], space["p"])
        except Stop:
            pass
    return run


def each_kind():
    """Which objects' attributes are read at all."""
    text = Text()
    text.module, text.at, text.plain = False, {5: 0}, {0: True}
    for kind in READ + REFUSED:
        source = "def f(_, p):\n    e(0); o = kind()\n    o.b = 0\n    while o.b < 3:\n        m(0)\n        s(); o.b += 1\n    z(0)\n"
        run = execute(text, source.replace("kind", "kinds[%d]" % (READ + REFUSED).index(kind)), 0)
        if bool(run.read) != (kind in READ) or run.wrong:
            yield "attributes of %s: read %s, %s" % (kind.__name__, run.read, run.wrong)


kept, loops, read, wrong = [], 0, 0, 0
for text in each_kind():
    print(text)
    wrong += 1
for number in range(programs):
    text = Text()
    run = execute(text, text.make(), number)
    loops += text.loops
    read += len(run.read)
    if run.wrong:
        wrong += 1
        if wrong < 3:
            print("\n".join(run.wrong[:3] + ["%3d %s" % x for x in enumerate(text.line, 1)]))
print("%d loops, %d counted, %d wrong" % (loops, read, wrong))
