"""What tests in Python share. They find it by TFH_SRC, which scripts/run-tests and the targets of make set."""
import json
import os
import subprocess
import sys

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


def tool(*args, status=0, **how):
    """What the command prints. Ends the test where its exit status is another one."""
    done = subprocess.run([os.environ["TFH_BUILD"] + "/bin/tfhook", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=300, **how)
    if done.returncode != status:
        sys.exit("FAILED: %s ended with %d, not %d\n%s%s" % (" ".join(args), done.returncode, status, done.stdout[-2000:], done.stderr[-2000:]))
    return done.stdout


def report_of(place, *flags):
    """A report's JSON."""
    return json.loads(tool("report", "--json", *flags, place))
