#!/usr/bin/env python3
"""Twelve pairs of real TensorFlow jobs, which cover every shape and every defect: steps counted exactly, the class that the
measured twin asks for on at least 95 % of the steady steps, the cause and the guilty stage named, results unchanged."""
# serial
# timeout: 1200
from pairs_lib import Scenario, run_pairs

PAIRS = [
    Scenario("eager", "slow_map", "explicit"),
    Scenario("func_next", "slow_generator", "default"),
    Scenario("func_loop", "slow_read", "default"),
    Scenario("keras", "slow_map", "explicit"),
    Scenario("keras", "callback", "default"),
    Scenario("tf1", "slow_read", "explicit"),
    Scenario("tf1", "compute", "default"),
    Scenario("train_val", "slow_generator", "explicit"),
    Scenario("steps_per_execution", "slow_map", "default"),
    Scenario("eager", "callback", "default"),
    Scenario("func_loop", "compute", "default"),
    Scenario("func_next", "none", "default"),
]

if __name__ == "__main__":
    run_pairs(PAIRS)
