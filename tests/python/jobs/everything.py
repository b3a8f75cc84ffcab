"""Every kind of Python code, with checks all over it that a stack read from outside is the interpreter's own.

usage: everything.py READER     the reader's library (tests/python/reader)
       everything.py driver LOG   copies to a device, each of a length of its own; LOG: length to stack, as JSON
"""
import asyncio
import ctypes
import functools
import gc
import itertools
import json
import random
import sys
import threading

lock = threading.RLock()


def own_stack():
    """As the interpreter tells it: file, line, function of each frame, the innermost first."""
    frame, out = sys._getframe(1), []
    while frame:
        code = frame.f_code
        out.append([code.co_filename, frame.f_lineno or 0, getattr(code, "co_qualname", code.co_name)])
        frame = frame.f_back
    return out


class Reader:
    def __init__(self, path):
        # Called without the GIL, and with it.
        self.libraries = ctypes.CDLL(path), ctypes.PyDLL(path)
        self.get = self.libraries[1].reader_text
        self.get.restype = self.libraries[1].reader_why.restype = ctypes.c_char_p
        self.right = self.wrong = 0
        if self.libraries[1].reader_why():
            sys.exit(self.libraries[1].reader_why().decode())

    def modes(self):
        for copied in (0, 1):
            for library in self.libraries:
                self.take, self.copied = library.reader_take, copied
                yield 100 if copied else 4000

    def check(self, what):
        own, read = own_stack(), (self.take(self.copied), self.get())[1]
        lines = [line.split("\t") for line in read.decode("utf8", "surrogateescape").splitlines()]
        read = [[file, int(line), name] for file, line, name in lines]
        with lock:
            if own == read:
                self.right += 1
                return
            self.wrong += 1
            if self.wrong < 6:
                first = next((pair for pair in zip(own, read) if pair[0] != pair[1]), None)
                print("wrong:", what, len(own), "frames, read", len(read), first)

    def end(self):
        print(sys.version.split()[0], self.right, "right,", self.wrong, "wrong")
        sys.exit(self.wrong != 0)


class Driver:
    def __init__(self, log):
        self.libraries = ctypes.CDLL("libcuda.so.1"), ctypes.PyDLL("libcuda.so.1")
        self.log, self.stacks, self.number = log, {}, itertools.count(1)
        self.context, self.memory, self.host = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.create_string_buffer(1 << 16)
        cuda = self.libraries[0]
        assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(self.context), 0) == 0
        assert cuda.cuCtxSetCurrent(self.context) == 0
        assert cuda.cuMemAlloc_v2(ctypes.byref(self.memory), ctypes.c_size_t(1 << 16)) == 0

    def modes(self):
        for library in self.libraries:
            self.copy, self.current = library.cuMemcpyHtoD_v2, library.cuCtxSetCurrent
            # What the recorder needs until it has begun.
            for _ in range(200):
                self.copy(self.memory, self.host, ctypes.c_size_t(1 << 16))
                threading.Event().wait(0.001)
            yield 300

    def check(self, what):
        number = next(self.number)
        self.current(self.context)
        own, done = own_stack(), self.copy(self.memory, self.host, ctypes.c_size_t(number))
        assert done == 0, (what, done)
        self.stacks[number] = own

    def end(self):
        with open(self.log, "w", encoding="utf8", errors="surrogateescape") as f:
            json.dump(self.stacks, f)


subject = Driver(sys.argv[2]) if sys.argv[1] == "driver" else Reader(sys.argv[1])
check = subject.check


class Made:
    def __init__(self):
        check("__init__")


def recurse(n):
    if n:
        return recurse(n - 1)
    check("recursion")


def generator(n):
    for i in range(n):
        check("generator")
        yield i


def delegating(n):
    yield from generator(n)


async def coroutine(n):
    check("coroutine")
    await asyncio.sleep(0)
    if n:
        await coroutine(n - 1)
    check("coroutine, later")


async def async_generator(n):
    for i in range(n):
        check("async generator")
        yield i


async def gathered():
    await asyncio.gather(*[coroutine(4) for _ in range(4)])
    async for _ in async_generator(4):
        check("async for")


def scattered(n):
    """A stack whose frames lie far apart: generators made among many others, each resumed by the next."""
    def link(inner):
        yield
        if inner is None:
            check("scattered")
        else:
            next(inner, None)

    def made(inner):
        one = link(inner)
        next(one)
        return one

    last, between = None, []
    for _ in range(n):
        last = made(last)
        between += [made(None) for _ in range(20)]
    next(last, None)
    for one in between:
        one.close()


class Special:
    def __del__(self):
        check("finalizer")

    def __lt__(self, other):
        check("comparison")
        return id(self) < id(other)

    @property
    def value(self):
        check("property")
        return 1

    def __enter__(self):
        check("enter")
        return self

    def __exit__(self, *_):
        check("exit")
        return True

    def __getattr__(self, name):
        check("getattr")
        return 5

    __call__ = lambda self, *_: check("lambda of a class")  # noqa: E731


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(
            *args,
            **kwargs
        )
    return wrapper


@decorated
def many_lines(a,
               b,
               c):
    x = [check("list") for _ in
         range(3)]
    y = {k:
         check("dict")
         for k in "ab"}
    z = list(check("generator expression")
             for _ in range(2))
    return (a +
            len(x) + len(y) + len(z) + b +
            (lambda: (check("lambda"), 1)[1])() +
            c)


def exceptions():
    try:
        try:
            raise ValueError("x")
        except ValueError:
            check("except")
            raise KeyError("y")
        finally:
            check("finally")
    except KeyError:
        check("except, again")
    try:
        {}["q"]
    except KeyError:
        check("except of the interpreter's own")


# Gaps of lines that need more than one entry of every kind of table; a table that is looked up.
exec("def gaps():\n  a = 1\n" + "\n" * 300 + "  check('gap')\n  b = [check('gap'),\n" + "\n" * 140 + "  check('gap')]\n")
exec("def large():\n" + "".join("  a%d = [%d,\n  2]\n" % (i, i) for i in range(400)) + "  check('large')\n")


def made_at_run_time():
    # Latin-1, two bytes, four bytes, bytes that are no UTF-8.
    for name in ("<plain %d>", "<é %d>", "<中 %d>", "<𝄞 %d>", "<\udcff %d>"):
        source = "\n\n\ncheck('exec')\ndef f():\n  return check('function of exec')\nf()"
        exec(compile(source, name % random.randrange(9), "exec"), globals())
    eval("check('eval')")

    class Local:
        check("class body")
        parts = [check("list of a class") for _ in range(2)]


def watched():
    def trace(frame, event, arg):
        return trace

    sys.settrace(trace)
    recurse(3)
    sys.settrace(None)
    sys.setprofile(lambda *_: None)
    recurse(3)
    sys.setprofile(None)


def everything():
    recurse(0)
    recurse(50)
    scattered(100)
    for _ in generator(3):
        check("for")
    list(delegating(3))
    for _ in range(20):  # from 3.13 on, the interpreter has a frame of its own between a call that it knows and an __init__
        Made()
    exceptions()
    many_lines(1, 2, 3)
    gaps()  # noqa: F821
    large()  # noqa: F821
    with Special() as special:
        special.value, special.other, special(1)
    sorted([Special(), Special(), Special()])
    del special
    gc.collect()
    list(map(lambda x: check("map"), range(3)))
    functools.reduce(lambda a, b: check("reduce") or b, [1, 2, 3])
    made_at_run_time()
    loop = asyncio.new_event_loop()
    loop.run_until_complete(gathered())
    loop.close()
    thrown = generator(5)
    next(thrown)
    try:
        thrown.throw(ValueError)
    except ValueError:
        pass
    watched()


for depth in subject.modes():
    sys.setrecursionlimit(6000)
    recurse(depth)
    threads = [threading.Thread(target=everything) for _ in range(6)]
    for thread in threads:
        thread.start()
    everything()
    for thread in threads:
        thread.join()
subject.end()
