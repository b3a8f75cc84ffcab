"""`python -m tfhook` runs the command."""
import os
import sys

from .command import TfhookError, find

try:
    path = find()
except TfhookError as error:
    print("tfhook: %s" % error, file=sys.stderr)
    sys.exit(error.code)
os.execv(path, ["tfhook", *sys.argv[1:]])
