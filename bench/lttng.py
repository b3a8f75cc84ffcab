"""LTTng-UST's daemons for benchmarks: sessions of a home of their own, and the processor time that the daemons use. (Debian: lttng-tools
liblttng-ust-dev.) Not a benchmark by itself (not executable)."""
import os
import shutil
import subprocess
import tempfile
import time


def available():
    return shutil.which("lttng-sessiond") is not None


def consumed():
    """Processor seconds of the daemons."""
    ticks = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as f:
                stat = f.read()
        except OSError:
            continue
        if "(lttng-consumerd" in stat or "(lttng-sessiond" in stat:
            fields = stat.rsplit(")", 1)[1].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


class Daemon:
    """One session at a time, its events with the thread's id."""

    def __init__(self):
        self.home = tempfile.mkdtemp(prefix="tfhook-bench-")
        self.env = {**os.environ, "LTTNG_HOME": self.home}
        self.daemon = subprocess.Popen(["lttng-sessiond", "--no-kernel"], env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(2)

    def command(self, *args):
        return subprocess.run(["lttng", *args], env=self.env, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout

    def begin(self, out, events):
        self.command("create", "bench", f"--output={out}")
        self.command("enable-channel", "-u", "calls", "--subbuf-size=4M", "--num-subbuf=8")
        self.command("add-context", "-u", "-c", "calls", "-t", "vtid")
        self.command("enable-event", "-u", events, "-c", "calls")
        self.command("start")

    def end(self):
        """Whether events were lost."""
        return "discarded" in self.command("stop") + self.command("destroy")

    def close(self):
        self.daemon.terminate()
        self.daemon.wait()
        shutil.rmtree(self.home)
