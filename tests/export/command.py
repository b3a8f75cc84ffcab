#!/usr/bin/env python3
"""`tfhook export`: what exists is not overwritten without --force, a full disk leaves no file and says so, - is standard output, several
processes in a format of one are a directory; a wrong order is exit code 2, what cannot be read 3, steps that there are not 5."""
import os
import resource
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import runs  # noqa: E402

os.chdir(runs.TMP)
path = runs.trace("one.json")


def said(*args, status):
    return runs.tfhook("export", *args, status=status).stderr.decode()


assert "--to" in said(path, status=2)
assert "perfetto" in said("--to", "pdf", path, status=2)
assert "--steps" in said("--to", "perfetto", "--steps", "9-3", path, status=2)
assert "--steps" in said("--to", "perfetto", "--steps", "x", path, status=2)
assert "none.json" in said("--to", "perfetto", "none.json", status=3)
with open("text.json", "w") as f:
    f.write("no trace")
said("--to", "perfetto", "text.json", status=3)
with open("empty.json", "w") as f:
    f.write('{"traceEvents": []}')
said("--to", "perfetto", "empty.json", status=5)
said("--to", "perfetto", "--steps", "500-600", path, status=5)

assert "one.json.pftrace" in said("--to", "perfetto", path, status=0)
with open("one.json.pftrace", "rb") as f:
    whole = f.read()
assert "--force" in said("--to", "perfetto", path, status=3)
with open("one.json.pftrace", "wb") as f:
    f.write(b"mine")
said("--to", "perfetto", path, status=3)
with open("one.json.pftrace", "rb") as f:
    assert f.read() == b"mine"
said("--to", "perfetto", "--force", path, status=0)
with open("one.json.pftrace", "rb") as f:
    assert f.read() == whole
os.mkdir("folder")
said("--to", "perfetto", "--force", "-o", "folder", path, status=3)
os.symlink("one.json.pftrace", "link")
said("--to", "perfetto", "-o", "link", path, status=3)
assert runs.tfhook("export", "--to", "perfetto", "-o", "-", path).stdout == whole
assert "No such file" in said("--to", "perfetto", "-o", "nowhere/x", path, status=3)

# A disk that is full: by a device of that kind, and by a limit on the size of files.
full = subprocess.run([runs.BUILD + "/bin/tfhook", "export", "--to", "perfetto", "-o", "-", path], stdout=open("/dev/full", "w"), stderr=subprocess.PIPE)
assert full.returncode == 3 and b"No space left" in full.stderr, full.stderr


def small():
    import signal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))


done = subprocess.run([runs.BUILD + "/bin/tfhook", "export", "--to", "perfetto", "-o", "big", path], preexec_fn=small, stderr=subprocess.PIPE)
assert done.returncode == 3 and b"cannot write big: File too large" in done.stderr, done.stderr
assert not [name for name in os.listdir(".") if "big" in name]
help_ = runs.tfhook("help", "export").stdout.decode()
assert "perfetto" in help_ and "--steps" in help_
print("ok")
