#!/usr/bin/env python3
"""The follower of a host gives a request for its run's processes exactly once, also when it was stopped and started again, and says
what became of it beside the request. One that is damaged, of another version or name, or too old is answered and not obeyed; one that
belongs to another user, has a second name, is a link or no file, or lies in another user's directory, is left alone, as is one from
this host. Old files are removed. What a request says reaches the terminal without control characters.
timeout: 300
"""
import os
import signal
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ["TFH_SRC"], "tests/jobs"))
from looped import TOOL, begin, end, eventually, loop  # noqa: E402

HERE, RUN = socket.gethostname(), "run"
STOP, START, FLUSH, GPU_ON = range(4)
EBADMSG, EPROTO, ESTALE = 74, 71, 116
REQUEST = struct.Struct("<QIIQQII64sII4096s")
ANSWER = struct.Struct("<QIIQiIIIQQ")


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def request(number, verb, host=b"elsewhere", steps=0, at=0, version=1, wait_s=100):
    def pack(check):
        return REQUEST.pack(0x747165726C746374, version, wait_s, number, at, verb, steps, host, 0, check, bytes(4096))
    return pack(crc32c(pack(0)))


def name(number, end="request"):
    return "%s/ctl-%016x.%s" % (RUN, number, end)


def leave(number, data):
    """Appears complete."""
    with open("part", "wb") as f:
        f.write(data)
    os.chmod("part", 0o600)
    os.rename("part", name(number))


def answer(number):
    """(code, told, failed, late), or None."""
    try:
        with open(name(number, HERE + ".answer"), "rb") as f:
            data = f.read()
    except FileNotFoundError:
        return None
    if len(data) != ANSWER.size:
        return None
    magic, version, check, of, *said = ANSWER.unpack(data)
    assert (magic, version, of) == (0x73776E616C746374, 1, number) and check == crc32c(data[:12] + bytes(4) + data[16:])
    assert os.stat(name(number, HERE + ".answer")).st_mode & 0o777 == 0o600
    return tuple(said[:4])


def follow():
    return subprocess.Popen([TOOL, "digest", "--follow", "--interval", "1000", RUN], stdout=subprocess.DEVNULL, stderr=open("said", "a"))


def stop(follower):
    follower.send_signal(signal.SIGTERM)
    assert follower.wait(timeout=60) in (0, 3), follower.returncode  # 3: its first digest was being made


def said():
    with open("said") as f:
        return f.read()


def main():
    job = loop(RUN, 10**9)
    eventually(lambda: subprocess.run([TOOL, "ctl", RUN, "flush"], capture_output=True).returncode == 0)
    follower = follow()
    leave(1, request(1, STOP, b"\x1b[31m\xe2\x80\xaered"))
    assert eventually(lambda: answer(1)) == (0, 1, 0, 0), answer(1)
    assert said().count("stop, asked for on host \\x1b[31m\\u202ered\n") == 1 and "\x1b" not in said(), said()
    # Started again, it does not stop the recording a second time.
    stop(follower)
    assert subprocess.run([TOOL, "ctl", RUN, "start"]).returncode == 0
    follower = follow()
    leave(2, request(2, FLUSH))
    assert eventually(lambda: answer(2)) == (0, 1, 0, 0), answer(2)
    assert said().count(": stop, asked") == 1 and said().count(": flush, asked") == 1, said()

    bad = bytearray(request(3, STOP))
    bad[40] ^= 1  # another command
    refused = {3: (bytes(bad), EBADMSG), 4: (request(4, STOP)[:-1], EBADMSG), 5: (request(5, STOP) + b"x", EBADMSG), 6: (b"", EBADMSG),
               7: (request(70, STOP), EBADMSG), 8: (request(8, 9), EBADMSG), 9: (request(9, STOP, steps=3), EBADMSG), 10: (request(10, STOP, b"h" * 64), EBADMSG),
               11: (request(11, STOP, version=2), EPROTO)}
    for number, (data, _) in refused.items():
        leave(number, data)
    for number, (_, code) in refused.items():
        assert eventually(lambda: answer(number)) == (-code, 0, 0, 0), (number, answer(number))
    leave(12, request(12, STOP, HERE.encode()))
    leave(13, request(13, STOP))
    os.link(name(13), "another-name")
    with open("target", "wb") as f:
        f.write(request(14, STOP))
    os.symlink(os.path.abspath("target"), name(14))
    os.mkfifo(name(15))
    if os.geteuid() == 0:
        with open("part", "wb") as f:
            f.write(request(16, STOP))
        os.chown("part", 12345, 12345)
        os.rename("part", name(16))
    for number in range(1, 10):
        os.remove(name(number))  # at most 16 are looked at
    with open("part", "wb") as f:
        f.write(request(17, STOP, wait_s=5))
    os.utime("part", (time.time() - 60,) * 2)
    os.rename("part", name(17))
    assert eventually(lambda: answer(17)) == (-ESTALE, 0, 0, 0), answer(17)
    os.utime(name(17), (time.time() - 7200,) * 2)
    eventually(lambda: not os.path.exists(name(17)))
    leave(18, request(18, FLUSH))
    assert eventually(lambda: answer(18)) == (0, 1, 0, 0), answer(18)
    assert not any(answer(number) for number in range(12, 17)), [answer(number) for number in range(12, 17)]
    if os.geteuid() == 0:
        os.chown(RUN, 12345, 12345)
        with open("part", "wb") as f:
            f.write(request(19, STOP))
        os.chown("part", 12345, 12345)
        os.rename("part", name(19))
        time.sleep(6)
        assert not os.path.exists(name(19, HERE + ".answer"))
        os.chown(RUN, 0, 0)
    stop(follower)
    assert said().count("asked for") == 3, said()
    end(job)


if __name__ == "__main__":
    begin()
    main()
