"""Writes XPlane files from the field numbers of xplane.proto."""
import struct

MS = 1000000
START = 1700000000000000000


def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


class Plane:
    def __init__(self, name):
        self.name, self.lines, self.events, self.stats, self.own = name, [], {}, {}, b""

    def stat(self, name, value, ref=False):
        number = self.stats.setdefault(name, len(self.stats) + 1)
        if ref:  # the value is the name of another stat
            return field(1, number) + field(7, self.stats.setdefault(value, len(self.stats) + 1))
        return field(1, number) + (field(5, value) if isinstance(value, str) else
                                   field(3, value) if name in ("correlation_id",) else field(4, value))

    def line(self, name, events, number, start=START):
        """events: (name, offset ns, duration ns, {stat: value})"""
        body = field(1, number) + field(2, name) + field(3, start)
        for ev, offset, duration, stats in events:
            meta = self.events.setdefault(ev, len(self.events) + 1)
            e = field(1, meta) + field(2, offset * 1000) + field(3, duration * 1000)
            for key, value in stats.items():
                e += field(4, self.stat(key.rstrip("*"), value, key.endswith("*")))
            body += field(4, e)
        self.lines.append(body)

    def pack(self):
        out = field(1, 1) + field(2, self.name)
        for line in self.lines:
            out += field(3, line)
        for name, number in self.events.items():
            out += field(4, field(1, number) + field(2, field(1, number) + field(2, name)))
        for name, number in self.stats.items():
            out += field(5, field(1, number) + field(2, field(1, number) + field(2, name)))
        return field(1, out + self.own)
