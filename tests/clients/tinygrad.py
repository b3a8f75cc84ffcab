#!/usr/bin/env python3
"""tinygrad, which finds the driver with dlsym through ctypes, is recorded as the driver saw it: graphs and single
kernels."""
import sys

from client import main

sys.exit(main("tinygrad", "tinygrad-kernels"))
