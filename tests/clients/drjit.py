#!/usr/bin/env python3
"""drjit, which looks up all that it knows with dlsym when it starts, is recorded as the driver saw it."""
import sys

from client import main

sys.exit(main("drjit"))
