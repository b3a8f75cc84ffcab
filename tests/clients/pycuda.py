#!/usr/bin/env python3
"""pycuda, which is linked with the driver, is recorded as the driver saw it. The first run compiles it, in about 100 s.
timeout: 900"""
import sys

from client import main

sys.exit(main("pycuda"))
