"""What a training process does with torch's ranges, on the stand-in: mock_loop.py LIBRARY CASE. Prints what it made."""
import ctypes
import os
import sys
import threading
import time

torch = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_LOCAL)
case = sys.argv[2]
if case != "late":
    torch.PyInit_mock  # noqa: B018  (Python looks this up when it imports a module)
if case != "old":
    torch.range_begin.restype = ctypes.c_void_p
    torch.range_end.argtypes = [ctypes.c_void_p]
LOADER = b"enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


class Range:
    def __init__(self, name):
        self.name = name

    def __enter__(self):
        self.range = torch.range_begin(self.name)

    def __exit__(self, *_):
        torch.range_end(self.range)


def step(n):
    with Range(LOADER):
        time.sleep(0.001)
    with Range(b"Optimizer.zero_grad#SGD.zero_grad"):
        pass
    assert torch.backward(0) == 2 + 30 + 400 + 2
    with Range(b"Optimizer.step#SGD.step"):
        pass
    with Range(b"step %d" % n):
        pass


def worker():
    """A loader's worker: its own ranges do not make it a trainer."""
    for _ in range(10):
        with Range(b"mine"):
            pass
    os._exit(0)


if case == "old":
    assert torch.backward(0) == 434
elif case == "plain" or case == "off" or case == "late":
    for i in range(50):
        step(i)
    assert torch.registered_well() == (case != "off"), torch.registered()
elif case == "edges":
    step(0)
    assert torch.backward(1) == -1
    gone = torch.range_begin(b"left open")  # noqa: F841
    held = torch.range_begin(b"gloo:all_reduce")
    thread = threading.Thread(target=lambda: torch.range_end(held))
    thread.start()
    thread.join()
    across = torch.range_begin(LOADER)
    child = os.fork()
    if not child:
        torch.range_end(across)
        worker()
    assert os.waitpid(child, 0)[1] == 0
    torch.range_end(across)
elif case == "ends":
    step(0)
    time.sleep(1.5)  # until the recorder knows which Python this is

    class Batches:
        def __init__(self, n):
            self.left = n

        def __iter__(self):
            return self

        def __next__(self):
            with Range(LOADER):
                if not self.left:
                    raise StopIteration
                self.left -= 1

    for epoch in range(3):
        for _ in Batches(4):
            pass
    batches = Batches(2)
    for _ in range(7):  # next() with a new iterator where one is exhausted
        try:
            next(batches)
        except StopIteration:
            batches = Batches(2)
            next(batches)
    try:
        with Range(LOADER):
            raise KeyError
    except KeyError:
        pass
elif case == "worker":
    worker()
elif case == "threads":
    step(0)
    torch.many_ranges(8, 2000)
elif case == "exit":
    step(0)
    torch.range_begin(LOADER)
    sys.exit(3)
print("made", flush=True)
