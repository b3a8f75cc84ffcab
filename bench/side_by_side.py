"""Interleaved timing of two variants of one command: what the preload costs, with its spread.

Not a benchmark by itself (not executable); imported by the programs beside it.
"""
import os
import random
import statistics
import time


def run_once(argv, env):
    """Wall seconds and CPU seconds (user + system, children included) of one run."""
    begin = time.monotonic()
    pid = os.posix_spawnp(argv[0], argv, env, file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
    _, status, usage = os.wait4(pid, 0)
    if status:
        raise SystemExit(f"{' '.join(argv)}: wait status {status}")
    return time.monotonic() - begin, usage.ru_utime + usage.ru_stime


def pairs(argv, env_off, env_on, count):
    """`count` interleaved pairs, the order inside a pair drawn at random: [(off, on)] of (wall, cpu)."""
    result = []
    for _ in range(count):
        first_on = random.random() < 0.5
        a = run_once(argv, env_on if first_on else env_off)
        b = run_once(argv, env_off if first_on else env_on)
        result.append((b, a) if first_on else (a, b))
    return result


def interval(values, draws=4000):
    """Median and its 95 % bootstrap interval."""
    medians = sorted(statistics.median(random.choices(values, k=len(values))) for _ in range(draws))
    return statistics.median(values), medians[int(draws * 0.025)], medians[int(draws * 0.975)]


def trimmed(values, share=0.1):
    """Mean without the share that is lowest and the share that is highest, and half the width of its 95 % interval (Yuen)."""
    low = sorted(values)
    n, cut = len(low), int(len(low) * share)
    kept = low[cut:n - cut]
    pulled_in = [low[cut]] * cut + kept + [low[n - cut - 1]] * cut
    return statistics.mean(kept), 1.96 * statistics.stdev(pulled_in) / ((1 - 2 * share) * n ** 0.5)
