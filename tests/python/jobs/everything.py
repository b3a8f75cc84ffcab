"""Every kind of Python code, each with checks that the stack read from outside is the interpreter's own. Its argument is
the reader's library (tests/python/reader)."""
import asyncio
import ctypes
import functools
import gc
import random
import sys
import threading

# Called without the GIL, and with it.
WITHOUT, WITH = ctypes.CDLL(sys.argv[1]), ctypes.PyDLL(sys.argv[1])
WITH.reader_text.restype = WITH.reader_why.restype = ctypes.c_char_p
if WITH.reader_why():
    sys.exit(WITH.reader_why().decode())
lock = threading.RLock()
right = wrong = 0
take, copied = None, 0


def own_stack():
    """As the interpreter tells it: file, line, function of each frame, the innermost first."""
    frame, out = sys._getframe(1), []
    while frame:
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        out.append((code.co_filename.encode("utf8", "surrogateescape"), frame.f_lineno or 0, name.encode()))
        frame = frame.f_back
    return out


def compare(what, own, read):
    global right, wrong
    lines = [line.split(b"\t") for line in read.splitlines()]
    read = [(file, int(line), name) for file, line, name in lines]
    with lock:
        if own == read:
            right += 1
            return
        wrong += 1
        if wrong < 6:
            first = next((pair for pair in zip(own, read) if pair[0] != pair[1]), None)
            print("wrong:", what, len(own), "frames, read", len(read), first)


def check(what):
    own, read = own_stack(), (take(copied), WITH.reader_text())[1]
    compare(what, own, read)


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
    for _ in generator(3):
        check("for")
    list(delegating(3))
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


for take, copied, depth in (
        (WITHOUT.reader_take, 0, 4000), (WITH.reader_take, 0, 800), (WITHOUT.reader_take, 1, 100), (WITH.reader_take, 1, 100)):
    sys.setrecursionlimit(6000)
    recurse(depth)
    threads = [threading.Thread(target=everything) for _ in range(6)]
    for thread in threads:
        thread.start()
    everything()
    for thread in threads:
        thread.join()
print(sys.version.split()[0], right, "right,", wrong, "wrong")
sys.exit(wrong != 0)
