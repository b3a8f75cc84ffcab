#!/usr/bin/env python3
"""What loading the library costs a process that never touches CUDA or TensorFlow (bar: under 2 ms)."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import side_by_side  # noqa: E402

PAIRS = 60


def main():
    lib = os.path.join(os.environ["TFH_BUILD"], "lib", "libtfhook.so")
    off = {k: v for k, v in os.environ.items() if not k.startswith("TFHOOK") and k != "LD_PRELOAD"}
    on = dict(off, LD_PRELOAD=lib)
    print(f"{'command':24} {'without':>10} {'with':>10} {'added (95 % interval)':>32}")
    for argv in (["/bin/true"], [sys.executable, "-S", "-c", "pass"]):
        runs = side_by_side.pairs(argv, off, on, PAIRS)
        plain, _, _ = side_by_side.interval([a[0] for a, _ in runs])
        loaded, _, _ = side_by_side.interval([b[0] for _, b in runs])
        mid, low, high = side_by_side.interval([b[0] - a[0] for a, b in runs])
        name = " ".join(os.path.basename(a) for a in argv)
        print(f"{name:24} {plain * 1e3:7.2f} ms {loaded * 1e3:7.2f} ms {mid * 1e3:+10.3f} ms ({low * 1e3:+.3f} .. {high * 1e3:+.3f})")


if __name__ == "__main__":
    main()
