"""What the soak runs: jobs whose own output says how many steps they made, in places that fill up or hang, under a clock that is set."""
import glob
import json
import os
import random
import signal
import statistics
import struct
import subprocess
import threading
import time

from fleet_env import build, check, tmp

TOOL = build + "/bin/tfhook"
ENV = dict(os.environ, LD_LIBRARY_PATH=build + "/sim", TFHOOK_CUPTI_LIB=build + "/sim/libcupti.so.13", TMPDIR=tmp)
AHEAD = tmp + "/clock"
STEPPED = dict(ENV, LD_PRELOAD=build + "/tests/soak/libstepped.so", CLOCK_AHEAD=AHEAD)


def job(folder, *flags, env=ENV):
    return subprocess.Popen([TOOL, "run", "-q", "-o", folder, "--", build + "/tests/jobs/client_loop", "--h2d", "1000", "--spin", "2000", *flags],
                            env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def children(process):
    try:
        with open(f"/proc/{process.pid}/task/{process.pid}/children") as f:
            return [int(pid) for pid in f.read().split()]
    except OSError:  # it has ended
        return []


def state_of(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "Z"


def kill(process):
    for pid in children(process):
        os.kill(pid, signal.SIGKILL)


def ended(process, what):
    """The steps that a job made, which it says itself; it ends well."""
    out, err = process.communicate(timeout=600)
    check(process.returncode == 0 and out.startswith("steps "), what, "ended with", process.returncode, out, err[-300:])
    return int(out.split()[1]) if out.startswith("steps ") else 0


def report(folder):
    """None: it has nothing to report."""
    done = subprocess.run([TOOL, "report", "--json", folder], env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    check(done.returncode in (0, 5), "report", folder, done.returncode, done.stderr[-300:])
    return json.loads(done.stdout) if done.returncode == 0 else None


def check_counted(what, said, made):
    """A recording lacks steps only if it says that something is missing. Whether it lacks some."""
    q, steps = said["quality"], said["steps"]["total"]
    check(steps <= made + 2 or made < 20, what, "has too many steps", steps, made)  # of few steps the period may be another
    lacks = steps < made - 2
    check(not lacks or q["dropped"] or q["holes"] or not q["clean_end"], what, "lost without being counted", steps, made, q)
    return lacks


class Held:
    """Memory and descriptors of a process, from the first look on. What it opens for a moment is no growth: the fewest descriptors of the last
    tenth of the looks count, and memory in it against the second tenth."""

    def __init__(self, pid):
        self.pid, self.looks = pid, []

    def look(self):
        try:
            with open(f"/proc/{self.pid}/status") as f:
                rss = next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))
            now = (rss, len(os.listdir(f"/proc/{self.pid}/fd")))
        except (OSError, StopIteration):
            return
        self.looks.append(now)

    def flat(self, what):
        looks, tenth = self.looks or [(0, 0)], max(len(self.looks) // 10, 1)
        early, late = looks[tenth:2 * tenth] or looks, looks[-tenth:]
        check(self.looks and min(fds for _, fds in late) <= looks[0][1] and max(kib for kib, _ in looks) < looks[0][0] + 16384, what,
              "grows (KiB, descriptors)", looks[0], early[:3], late[-3:])
        check(len(looks) < 100 or statistics.median(kib for kib, _ in late) < 1.25 * statistics.median(kib for kib, _ in early), what,
              "grows (KiB)", early[:3], late[-3:])
        return "%s %s KiB, %s descriptors at first, %s and %s at the end, %s and %s at most" % (what, *looks[0], *looks[-1], *map(max, zip(*looks)))


class Clock:
    """Sets the clock of what runs with STEPPED: to the real time, hours behind and days ahead of it."""

    def __init__(self):
        self.steps = 0
        self.set(0)

    def set(self, seconds):
        with open(AHEAD, "wb") as f:
            f.write(struct.pack("=q", seconds))

    def turn(self):
        # In place: it is mapped.
        with open(AHEAD, "r+b") as f:
            f.write(struct.pack("=q", random.choice((0, 0, -3600, -5, 5, 3600, 3 * 86400))))
        self.steps += 1


class Full:
    """A disk that is full from some moment on, in half of the cases until the job has ended."""

    def __init__(self):
        self.at, self.jobs, self.partly, self.dropped, self.number = tmp + "/small", 0, 0, 0, 0
        os.mkdir(self.at)
        self.possible = not subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8g", "none", self.at], stderr=subprocess.DEVNULL).returncode

    def size(self, text):
        subprocess.run(["mount", "-o", "remount,size=" + text, self.at], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def turn(self):
        folder = f"{self.at}/{self.number}"
        self.number += 1
        made = job(folder, "--seconds", "4", "--steps", "100000", "--launches", "40", "--spin", "20")
        time.sleep(0.2 + 3 * random.random())
        self.size("%dk" % (int(subprocess.check_output(["du", "-sk", self.at]).split()[0]) + random.choice((4, 8, 32))))
        if self.number % 2:
            time.sleep(random.random())
            self.size("8g")
        steps = ended(made, "a job on a full disk")
        self.size("8g")
        self.jobs += 1
        said = report(folder) if os.path.isdir(folder) else None
        if said:
            self.dropped += said["quality"]["dropped"]
            self.partly += check_counted("full disk", said, steps)
        subprocess.run(["rm", "-rf", folder], check=True)


class Lost:
    """A mount that answers nothing for a while, as NFS's do whose server is gone; sometimes it goes for good."""

    def __init__(self):
        self.at, self.behind = tmp + "/net", tmp + "/net.real"
        self.number, self.jobs, self.gone, self.left, self.partly, self.none, self.longest, self.server = 0, 0, 0, 0, 0, 0, 0.0, None
        os.mkdir(self.at)
        os.mkdir(self.behind)
        self.possible = self.mount()

    def mount(self):
        try:
            self.server = subprocess.Popen(["bindfs", "-f", self.behind, self.at], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        except OSError:
            return False
        until = time.monotonic() + 10
        while time.monotonic() < until and self.server.poll() is None and not os.path.ismount(self.at):
            time.sleep(0.05)
        return os.path.ismount(self.at)

    def return_mount(self):
        """Journals whose directory was gone when their job ended are repaired now."""
        self.server.wait()
        subprocess.run(["umount", "-l", self.at], check=True)
        check(self.mount(), "cannot mount again")
        left = [name for name in os.listdir("/dev/shm") if "tfhook" in name]
        done = subprocess.run([TOOL, "repair", "--left"], env=ENV, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        check(done.returncode == 0, "repair --left", done.returncode, done.stdout)
        self.left += len([name for name in left if not os.path.exists("/dev/shm/" + name)])

    def first_file(self, made):
        behind = f"{self.behind}/{self.number - 1}"
        while made.poll() is None and not glob.glob(behind + "/*.tft"):  # `tfhook run` may remove the directory
            time.sleep(0.0005)

    def turn(self):
        folder = f"{self.at}/{self.number}"
        self.number += 1
        for_good = self.number % 4 == 0
        begin, made = time.monotonic(), job(folder, "--seconds", "3", "--steps", "100000")
        # Before there is a program, `tfhook run` makes its directory, and waits for the mount as any program does.
        while not children(made) and made.poll() is None:
            time.sleep(0.05)
        program = children(made)
        # Every third time before the program has reached the run directory, and every third time between the making of the recording's
        # first file and its first byte, if that can be met.
        if self.number % 3 == 0:
            self.first_file(made)
        elif self.number % 3 == 1:
            time.sleep(2 * random.random())
        self.server.send_signal(signal.SIGKILL if for_good else signal.SIGSTOP)
        line = made.stdout.readline()
        # The program ends. `tfhook run` then writes how it ended, and waits for the mount.
        while time.monotonic() < begin + 33 and program and children(made)[:1] == program and state_of(program[0]) != "Z":
            time.sleep(0.02)
        took = time.monotonic() - begin - 3
        self.longest = max(self.longest, took)
        check(line.startswith("steps ") and took < 30, "a job on a lost mount said", line, took)
        if not for_good:
            time.sleep(3 * random.random())
            self.server.send_signal(signal.SIGCONT)
        made.communicate(timeout=120)
        check(made.returncode == 0, "a job on a lost mount ended with", made.returncode)
        self.jobs += 1
        if for_good:
            self.gone += 1
            self.return_mount()
        said = report(folder) if os.path.isdir(folder) else None  # `tfhook run` removes a directory without records
        self.none += not said
        steps = int(line.split()[1]) if line.startswith("steps ") else 0
        check(said or steps < 20, "a job on a lost mount has no recording", folder, steps)
        if said:
            self.partly += check_counted("lost mount", said, steps)

    def end(self):
        if self.server:
            self.server.kill()
            self.server.wait()
            subprocess.run(["umount", "-l", self.at])


class Long:
    """One job for all of the time, with little room for its recording, so that segments are begun and dropped; commands reach it meanwhile."""

    def __init__(self, seconds):
        self.folder, self.orders = tmp + "/long", 0
        self.process = job(self.folder, "--steps", "1000000000", "--launches", "20", "--spin", "200", "--seconds", str(seconds),
                           env=dict(ENV, TFHOOK_MAX_SIZE="2M"))
        self.held = None

    def turn(self):
        pids = children(self.process)
        if not pids:
            return
        self.held = self.held or Held(pids[0])
        self.held.look()
        what = random.choice((["gpu", "on"], ["gpu", "off"], ["flush"], ["stop"]))
        for words in ([what, ["start"]] if what == ["stop"] else [what]):
            done = subprocess.run([TOOL, "ctl", self.folder, *words], env=ENV, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            check(done.returncode == 0 or not children(self.process), "ctl", words, done.returncode, done.stdout)
        self.orders += 1

    def end(self):
        made = ended(self.process, "the long job")
        said = report(self.folder)
        q = said["quality"]
        size = sum(os.path.getsize(f"{self.folder}/{name}") for name in os.listdir(self.folder))
        check(q["dropped"] == 0 and q["clean_end"], "the long job", q)
        check(size < 3 << 20, "the long job's recording takes", size)
        return f"a job of {made:,} steps with {self.orders} orders, {size >> 10} KiB of recording, {q['dropped']} records lost; " + self.held.flat("it")


def over_and_over(until, turn, pause=0.0):
    """A thread that takes turns until then."""
    def run():
        while time.monotonic() < until:
            try:
                turn()
            except Exception as e:  # the soak goes on, and fails in the end
                check(False, turn, repr(e))
            time.sleep(pause)
    thread = threading.Thread(target=run)
    thread.start()
    return thread
