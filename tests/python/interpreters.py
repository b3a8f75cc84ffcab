"""The interpreters of this machine, one of each version and make: what TFH_PYTHONS names (paths, separated by colons),
the tests' own, Debian's, those of pyenv. Builds without the GIL are kept apart."""
import glob
import os
import subprocess

ASK = ("import sys, sysconfig; print('%d.%d.%d' % sys.version_info[:3], sys.version_info[:2] >= (3, 8),"
       "bool(sysconfig.get_config_var('Py_ENABLE_SHARED')), bool(sysconfig.get_config_var('Py_GIL_DISABLED')))")


def every(gil=True):
    """(version, path), the oldest first; of one version and make only the first that is found."""
    paths = [p for p in os.environ.get("TFH_PYTHONS", "").split(":") if p]
    paths += [os.environ["TFH_PY"]] if os.environ.get("TFH_PY") else []
    paths += sorted(glob.glob("/usr/bin/python3.[0-9]*[0-9]") + glob.glob("/usr/local/bin/python3.[0-9]*[0-9]"))
    paths += sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3*/bin/python")))
    seen = {}
    for path in paths:
        try:
            done = subprocess.run([path, "-c", ASK], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=60)
        except OSError:
            continue
        told = tuple(done.stdout.split())
        if done.returncode == 0 and told[1] == "True" and (told[3] == "False") == gil:
            seen.setdefault(told, path)
    return [(told[0], path) for told, path in sorted(seen.items(), key=lambda x: [int(n) for n in x[0][0].split(".")])]
