#!/usr/bin/env bash
# What must hold: a job that is recorded ends, prints and counts as it does alone, under the ends and in the company of
# tests/torture/cases.py, and what was recorded is exactly what it counted. This is the quick part of `make torture`.
exec "$TFH_SRC/tests/torture/run" --quick --seed 1
