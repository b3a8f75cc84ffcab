"""A second reader of trace files, written from lib/format/FORMAT.md alone. Prints the lines that tft_dump prints."""
import ctypes
import ctypes.util
import struct
import sys


def unpack_frame(frame, size):
    lib = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
    lib.ZSTD_decompress.restype = ctypes.c_size_t
    out = ctypes.create_string_buffer(size or 1)
    got = lib.ZSTD_decompress(out, ctypes.c_size_t(size), frame, ctypes.c_size_t(len(frame)))
    assert got == size, "zstd"
    return out.raw[:size]


TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    TABLE.append(byte)


def crc(data):
    c = 0xFFFFFFFF
    for b in data:
        c = c >> 8 ^ TABLE[(c ^ b) & 255]
    return c ^ 0xFFFFFFFF


M64 = (1 << 64) - 1


def unzigzag(v):
    return -(v + 1) // 2 if v & 1 else v // 2


def planes(data, count, width):
    columns = [data[p * count:(p + 1) * count] for p in range(width)]
    return [int.from_bytes(bytes(v), "little") for v in zip(*columns)]


def rows(data, count, width):
    return [bytes(v) for v in zip(*[data[p * count:(p + 1) * count] for p in range(width)])]


class Section:
    def __init__(self, data, count, width, transform):
        self.transform, self.big, self.at = transform, {}, 0
        self.values = planes(data, count, width)
        self.escape = (1 << 8 * width) - 1 if width < 8 else None

    def get(self, i):
        v = self.values[i]
        return self.big[i] if v == self.escape else v


def events(payload, runs):
    n_sections, n_events = struct.unpack_from("<II", payload)
    at = 8 + 16 * n_sections
    times, columns, classes, shapes, ids, text, seqs = {}, {}, [], [], [], b"", {}
    for s in range(n_sections):
        kind, arg, width, transform, count, size, _ = struct.unpack_from("<BBBBIII", payload, 8 + 16 * s)
        data = payload[at:at + size]
        at += size
        if kind == 1:
            classes = [(data[2 * i], data[2 * i + 1]) for i in range(count)]
        elif kind == 2:
            shapes = rows(data, count, 45)
        elif kind == 3:
            ids = planes(data, count, width)
        elif kind in (4, 5):
            times[kind] = Section(data, count, width, 0)
        elif kind in (6, 7, 9):
            target = columns[arg] if kind == 9 else times[kind - 2]
            target.big = dict(struct.unpack("<IQ", r) for r in rows(data, count, 12))
        elif kind == 8:
            columns[arg] = Section(data, count, width, transform)
        elif kind == 10:
            text = data
        elif kind == 11:
            seqs = dict(struct.unpack("<II", r) for r in rows(data, count, 8))
    assert len(ids) == n_events
    event = text_at = 0
    for thread, tid, first, t_base, count in runs:
        last, previous = t_base, {}
        for number in range(first, first + count):
            shape = shapes[ids[event]]
            gap = unzigzag(times[4].get(event))
            begin = last + gap & M64
            end = (last if gap < 0 else begin) + times[5].get(event) & M64
            last = end
            fixed, stream, ctx, stack, w0, w1, w2 = struct.unpack("<QIIIQQQ", shape[1:])
            field = [fixed, stream, ctx, stack, w0, w1, w2]
            mask, column = classes[shape[0]]
            if mask == 0x80:
                field[1:] = struct.unpack("<IIIQQQ", text[text_at:text_at + 36])
                text_at += 36
                mask = 0
            for b in range(8):
                if not mask >> b & 1:
                    continue
                c = columns[column]
                v = c.get(c.at)
                c.at += 1
                if c.transform == 1:
                    v = previous[column] = previous.get(column, 0) + unzigzag(v) & M64
                elif c.transform == 2:
                    v = end - begin - unzigzag(v) & M64
                field[b] = v & (0xFFFFFFFF if 1 <= b <= 3 else M64)
                column += 1
            seq = seqs.get(event, number & 0xFFFFFFFF)
            record = struct.pack("<QQQIIIIQQQ", begin, end, field[0], seq, *field[1:])
            yield thread, tid, number, record
            event += 1


# Number and width of the columns of 2.8, those that tfhook writes.
GPUS = {1: 8, 2: 8, 3: 4, 4: 1, 5: 4, 6: 4, 7: 1, 8: 4, 9: 8, 10: 1, 11: 1, 12: 1, 13: 8, 14: 8, 15: 2, 16: 4, 19: 4,
        20: 8, 21: 4}
DRVR = {1: 8, 2: 8, 3: 4, 4: 4, 5: 4, 6: 4, 7: 1}
BTRC = {1: 4, 2: 2, 3: 8, 4: 4}
MODS = {1: 8, 2: 8, 3: 8, 4: 4, 5: 4, 6: 8, 7: 8}
PYCO = {1: 4, 2: 4, 3: 4, 4: 4}
PYFR = {1: 4, 2: 4, 3: 4, 4: 4}
TABLES = {"GPUS": (GPUS, (8,)), "DRVR": (DRVR, ()), "BTRC": (BTRC, ()), "MODS": (MODS, (4, 5)), "PYCO": (PYCO, (2, 3)),
          "PYFR": (PYFR, ())}


def table_rows(payload, widths, texts):
    """Each row as a list of its columns, then what else there is, as strings."""
    n_sections, n_rows = struct.unpack_from("<II", payload)
    at = 8 + 16 * n_sections
    columns, heap, tail = {}, b"", []
    for i in range(n_sections):
        number, _, width, transform, count, size, _ = struct.unpack_from("<BBBBIII", payload, 8 + 16 * i)
        data = payload[at:at + size]
        at += size
        if number == 254:
            heap = data
        elif number == 255:
            tail += ["pair %d %d" % v for v in struct.iter_unpack("<QQ", data)]
        elif number == 253:
            tail += ["span %d %d %d" % v for v in struct.iter_unpack("<QQQ", data)]
        elif number in widths:
            values, last = planes(data, n_rows, width), 0
            for k in range(n_rows if transform else 0):
                if transform == 3:
                    last = columns[1][k] if 1 in columns else 0
                values[k] = last = (last + unzigzag(values[k])) & M64
            columns[number] = [v & (1 << 8 * widths[number]) - 1 for v in values]
    for text in texts:
        if text in columns:
            columns[text] = [heap[v:heap.index(0, v)].decode("utf8", "surrogateescape") if v else "" for v in columns[text]]
    absent = {c: "" if c in texts else 0 for c in widths}
    for k in range(n_rows):
        yield [columns[c][k] if c in columns else absent[c] for c in widths]
    yield from tail


def table(payload, widths, texts):
    for row in table_rows(payload, widths, texts):
        yield row if isinstance(row, str) else " ".join(map(str, row)) + " "


def chunks(data):
    at = 0
    while at + 96 <= len(data):
        zmagic, zlength, magic, hcrc, pcrc, kind, version, _, fixed, packed, raw, t0, t1, dropped, _, n, n_runs, \
            sketch, _ = struct.unpack_from("<IIIII4sHHIQQQQQQIIII", data, at)
        if (zmagic, magic) != (0x184D2A54, 0x43544654):
            break
        header = data[at:at + zlength + 8]
        frame = data[at + len(header):at + len(header) + packed]
        assert version == 1 and crc(header[:12] + bytes(4) + header[16:]) == hcrc and crc(frame) == pcrc
        runs = [struct.unpack_from("<IIQQI", header, fixed + 32 * i) for i in range(n_runs)]
        yield kind.decode(), n, dropped, t0, t1, runs, unpack_frame(frame, raw) if packed else b""
        at += len(header) + packed


def main(path):
    with open(path, "rb") as f:
        data = f.read()
    for kind, n, dropped, t0, t1, runs, payload in chunks(data):
        print(kind, n, dropped, t0, t1, "%08x" % (0 if kind == "EVNT" else crc(payload)))
        if kind == "EVNT":
            for thread, tid, number, record in events(payload, runs):
                print(thread, tid, number, record.hex())
        if kind in TABLES:
            for line in table(payload, *TABLES[kind]):
                print(line)


if __name__ == "__main__":
    main(sys.argv[1])
