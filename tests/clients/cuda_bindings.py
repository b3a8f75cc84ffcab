#!/usr/bin/env python3
"""cuda-bindings, which uses cuGetProcAddress for everything, is recorded as the driver saw it; with the default streams of
each thread, too."""
import sys

from client import main

sys.exit(main("cuda-bindings", "cuda-bindings-per-thread"))
