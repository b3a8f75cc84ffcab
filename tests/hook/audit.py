#!/usr/bin/env python3
"""With the audit library, a job whose GPU library is opened with RTLD_DEEPBIND is recorded call for call, by dlsym, by
cuGetProcAddress and linked. Without it such a job runs but is not seen. Other jobs run as they do without the audit
library: recorded by the preload, in a namespace of their own, and without the preload."""
import os
import subprocess
import sys

from compare import build, calls_of, check, compare, failed, run, src, tmp

AUDIT = f"{build}/lib/libtfhook-audit.so"
OPENS, LIBRARY = f"{build}/tests/hook/opens", f"{build}/tests/hook/libdeepbind.so"


def copies(records):
    return sum(r["fn"].startswith("cuMemcpy") for r in calls_of(records))


def recorded(name, *command, **settings):
    records, truth, place = run(name, *command, LD_AUDIT=AUDIT, **settings)
    compare(name, records, truth, place)
    check(copies(records) == 40, name, "copies", copies(records))


def linked():
    library = f"{tmp}/libdeeplinked.so"
    done = subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", library,
                           f"{src}/tests/hook/linked/deeplinked.c", f"-L{build}/sim", "-lcuda"],
                          capture_output=True, text=True)
    check(done.returncode == 0, "link", done.stderr)
    return library


def without_preload():
    place = f"{tmp}/alone"
    os.mkdir(place)
    for name, command in (("job", [OPENS, LIBRARY, "deepbind_run", "deepbind"]), ("true", ["/bin/true"]),
                          ("python", [sys.executable, "-c", "import ctypes; ctypes.CDLL('libcuda.so.1').cuInit(0)"])):
        done = subprocess.run(command, env=dict(os.environ, LD_AUDIT=AUDIT, LD_LIBRARY_PATH=f"{build}/sim"), cwd=place,
                              capture_output=True, text=True, timeout=60)
        check((done.returncode, done.stdout, done.stderr) == (0, "", ""), name, "without the preload", done)
    check(not os.listdir(place), "left", os.listdir(place))


job = (OPENS, LIBRARY, "deepbind_run")
records, truth, place = run("unseen", *job, "deepbind")
check(not records and len(truth) > 60, "seen without the audit library: say so in docs/using.md", len(records))
recorded("deepbind", *job, "deepbind")
recorded("local", *job)
library = linked()
recorded("linked", OPENS, library, "deeplinked_run", "deepbind")
recorded("linked-now", OPENS, library, "deeplinked_run", "deepbind", LD_BIND_NOW="1")
records, truth, place = run("namespace", *job, "namespace", LD_AUDIT=AUDIT)
check(not records, "a namespace of its own is seen: say so in docs/using.md")
without_preload()
sys.exit(failed())
