"""Where a job that has loaded its libraries waits until it is wanted: a job and its twin then load side by side and still run
one after the other."""
import os


def wait_at_gate():
    """With $TRUTH_GATE, the path of a FIFO: says that the job is here (PATH.ready), and waits until somebody opens it to write."""
    path = os.environ.get("TRUTH_GATE")
    if path:
        open(path + ".ready", "w").close()
        open(path).close()
