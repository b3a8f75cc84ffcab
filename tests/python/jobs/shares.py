"""A job that counts the time of its parts itself: code full of calls, a flat loop, a C function, sleep, a lock and a
pipe. Its last line of output is JSON: seconds by function; the one before it says how long it waited for a processor.

usage: shares.py SECONDS
"""
import json
import os
import sys
import threading
import time
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "jobs"))
from device import Device  # noqa: E402
from waited import waited_s  # noqa: E402

DATA = bytes(1 << 19)
SPENT = {}


class Box:
    def __init__(self):
        self.v = 0

    def add(self, x):
        self.v = (self.v + x) & 1023


def one_more(x):
    return x + 1


def until(ms):
    return time.perf_counter() + ms / 1e3


def calls():
    box, end = Box(), until(4)
    while time.perf_counter() < end:
        for i in range(50):
            box.add(one_more(i))


def flat():
    end, x = until(3), 0
    while time.perf_counter() < end:
        for i in range(200):
            x = (x * 31 + i) & 0xFFFF


def native():
    end = until(4)
    while time.perf_counter() < end:
        zlib.crc32(DATA)


def asleep():
    time.sleep(0.006)


def locked():
    GO.release()
    DONE.acquire()


def piped():
    os.write(ASK[1], b"x")
    os.read(ANSWER[0], 1)


GO, DONE = threading.Semaphore(0), threading.Semaphore(0)
ASK, ANSWER = os.pipe(), os.pipe()


def other_thread():
    while True:
        GO.acquire()
        time.sleep(0.005)
        DONE.release()


def other_end():
    while os.read(ASK[0], 1):
        time.sleep(0.004)
        os.write(ANSWER[1], b"x")


def main():
    d, end = Device(), time.perf_counter() + float(sys.argv[1])
    for target in other_thread, other_end:
        threading.Thread(target=target, daemon=True).start()
    while time.perf_counter() < end:
        for part in calls, flat, native, asleep, locked, piped:
            since = time.perf_counter()
            part()
            SPENT[part.__name__] = SPENT.get(part.__name__, 0) + time.perf_counter() - since
        d.up()
        d.train(1)
        d.down()
    print(waited_s())
    print(json.dumps(SPENT))


main()
