"""For how long a job's thread could have run and had no processor."""


def waited_s():
    try:
        with open("/proc/thread-self/schedstat") as f:
            return int(f.read().split()[1]) / 1e9
    except OSError:
        return 0
