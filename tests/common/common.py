"""What tests in Python share. They find it by TFH_SRC, which scripts/run-tests and the targets of make set."""
SHOWN = 20
failures = 0


def check(condition, *what):
    """Counts a failure, and says of the first ones what is wrong; the test goes on. Returns whether the condition holds."""
    global failures
    if not condition:
        failures += 1
        if failures <= SHOWN:
            print("FAILED:", *what, flush=True)
    return bool(condition)


def failed():
    """Whether a check failed: the test's exit status."""
    if failures > SHOWN:
        print(failures, "failures")
    return failures != 0
