"""What the tests of `tfhook top` share. Not a test."""
import os
import subprocess
import sys


def with_packages(name, main):
    """Runs main with a python that has the packages of tests/requirements/NAME.txt; skips the test where none can be made."""
    python = subprocess.run([os.path.join(os.environ["TFH_SRC"], "scripts", "python-env"), name], stdout=subprocess.PIPE,
                            text=True).stdout.strip()
    if not python:
        print("the environment `%s` could not be made" % name)
        sys.exit(77)
    if os.path.realpath(sys.prefix) != os.path.realpath(os.path.dirname(os.path.dirname(python))):
        os.execv(python, [python, *sys.argv])
    sys.exit(main())


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        return [int(n) for n in f.read().split()]
