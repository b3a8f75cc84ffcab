#!/usr/bin/env python3
"""What must hold: an input that is small and unpacks to much, or that asks for work by the square of its size, is
refused with one line, or read within the stated bounds: processor time of a quarter of a second
for each megabyte that is read (unpacked; sanitizers are not measured) and memory of MEMORY_MB and so many times that size."""
import os
import struct
import subprocess
import sys
import zlib

BUILD, TMP = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
SAN = os.environ.get("TFH_SAN", "")
MEMORY_MB = 160
failed = False


def report(path, *flags):
    """Status, seconds of processor time, megabytes, messages of a report."""
    with subprocess.Popen([BUILD + "/bin/tfhook", "report", *flags, path], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE) as p:
        said = p.stderr.read().decode()
        _, status, used = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
    return p.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, said


def expect(name, path, status, words, unpacked_mb, times=0):
    global failed
    got, cpu, mb, said = report(path)
    print("%-28s status %d  %.2f s  %4.0f MB  %s" % (name, got, cpu, mb, said.strip()[:160]))
    wrong = got not in status or words not in said or len(said.splitlines()) > 1
    if not SAN:
        wrong |= cpu > 0.5 + 0.25 * unpacked_mb or mb > MEMORY_MB + times * unpacked_mb
    if wrong:
        print("FAIL: %s: status %s, '%s', %.0f MB to read" % (name, status, words, unpacked_mb))
        failed = True


def save(name, data):
    path = os.path.join(TMP, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)
    return path


# ---- chunks ----

TAG_FUNCTIONS = 17  # format/head.h
TABLE = []
for n in range(256):
    for _ in range(8):
        n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
    TABLE.append(n)


def crc(data):
    c = 0xFFFFFFFF
    for b in data:
        c = TABLE[(c ^ b) & 0xFF] ^ c >> 8
    return c ^ 0xFFFFFFFF


def frame(raw):
    return subprocess.run(["zstd", "-q", "-c", "--no-check", "-3", "--stream-size=%d" % len(raw)], input=raw,
                          stdout=subprocess.PIPE, check=True).stdout


def chunk(kind, raw, packed=None):
    packed = frame(raw) if packed is None else packed
    head = bytearray(struct.pack("<IIIII4sHHIQQQQQQIIII", 0x184D2A54, 88, 0x43544654, 0, crc(packed), kind, 1, 0, 96,
                                 len(packed), 64 << 20 if raw is None else len(raw), 0, 0, 0, 0, 0, 0, 0, 0))
    struct.pack_into("<I", head, 12, crc(head))
    return bytes(head) + packed


def functions(prefix):
    """A HEAD of 65,536 functions."""
    table = b"".join(struct.pack("<HBBBBH", i, 0, 0, 0, 0, 6) + b"%c%05d" % (prefix, i) for i in range(65536))
    return chunk(b"HEAD", struct.pack("<HHI", TAG_FUNCTIONS, 0, len(table)) + table)


zeros = subprocess.Popen(["head", "-c", str(64 << 20), "/dev/zero"], stdout=subprocess.PIPE)
packed = subprocess.run(["zstd", "-q", "-c", "--no-check", "-3", "--stream-size=%d" % (64 << 20)], stdin=zeros.stdout,
                        stdout=subprocess.PIPE, check=True).stdout
big = chunk(b"NOTE", None, packed)
expect("zstd bomb", save("bomb.tft", chunk(b"HEAD", b"") + big * 100), [3], "unpack", 0)

# ---- gzip ----


def gz(block, times):
    """"[" and the block so many times; this process stays small, as its size would count for its children's."""
    z = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join([z.compress(b"[")] + [z.compress(block) for _ in range(times)] + [z.flush()])


blank = gz(b" " * (1 << 20), 512)
expect("gzip bomb", save("bomb.json.gz", blank), [3], "unpacks to more than", 64)
event = b'{"ph":"X","cat":"kernel","ts":1,"dur":1,"tid":1},\n'
expect("gzip bomb of events", save("events.json.gz", gz(event * (1 << 14), 256)), [3],
       "unpacks to more than", 64, 8)

# ---- dense ----

expect("events of few bytes", save("dense.json", b"[" + event * 200000 + b"{}]"), [0, 5], "", 10, 8)


def field(number, data):
    """A field of protobuf that holds bytes."""
    n, out = len(data), bytes([number << 3 | 2])
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n]) + data


lines = field(3, b"\x08\x01" + field(4, b"\x08\x01") * 250000)
names = field(4, b"\x08\x01" + field(2, b"\x08\x01" + field(2, b"MatMul")))
expect("XPlane of few bytes", save("dense.xplane.pb", field(1, field(2, b"/host:CPU") + lines + names)), [0, 5], "", 1, 160)

# ---- by the square ----

save("escapes/run.json", b'{"command": ["' + b"\\u0041" * 170000 + b'"]}')
save("escapes/p.a.1.0.tft", chunk(b"HEAD", b""))
expect("escapes in run.json", os.path.join(TMP, "escapes"), [0, 5], "", 1)
for i in range(3):
    save("tables/p.a.%d.0.tft" % i, functions(97 + i))
expect("tables of functions", os.path.join(TMP, "tables"), [0, 5], "", 3, 32)


def steps(kernel, n):
    """Twenty steps of 1 ms, and so many kernels."""
    e = [b'{"ph":"X","cat":"user_annotation","name":"ProfilerStep#%d","pid":1,"tid":1,"ts":%d,"dur":1000}' % (i, i * 1000) for i in range(20)]
    return b"[" + b",".join(e + [b'{"ph":"X","cat":"kernel","pid":0,"ts":%d,"dur":1,%s}' % (i * 20000 // n, kernel % i) for i in range(n)]) + b"]"


expect("a stream for each kernel", save("streams.json", steps(b'"name":"k","tid":%d', 60000)), [0], "", 4, 16)
expect("a name for each kernel", save("kernels.json", steps(b'"tid":1,"name":"k%d"', 60000)), [0], "", 4, 16)
joined = b",".join(b'{"ph":"X","cat":"cpu_op","name":"a","pid":%d,"tid":1,"ts":1,"dur":1}' % (i + 1) for i in range(50000))
expect("a rank for each event", save("ranks.json", b"[" + joined + b"]"), [3], "processes", 3, 8)

sys.exit(failed)
