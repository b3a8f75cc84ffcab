#!/usr/bin/env bash
# What must hold: the statement of tests/record/kill.sh at full size: 64 threads, 10^8 events, 100 runs, half of them
# flat out and half paced at half the flusher's rate. LONGEST_MS spreads the kills over the run.
exec "$TFH_SRC/tests/record/kill.sh" 64 100000000 "${RUNS:-50}" "${LONGEST_MS:-30000}"
