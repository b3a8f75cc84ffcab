"""One case of the torture: a job runs without the preload and with it; exit status and output must be the same, and what
was recorded must be what the job counted in a page that it shares with nobody but us (tests/torture/job.h)."""
import functools
import glob
import mmap
import os
import re
import shutil
import signal
import struct
import subprocess
import time

BUILD, SRC = os.environ["TFH_BUILD"], os.environ["TFH_SRC"]
BIN = BUILD + "/tests/torture"
HOOK = BUILD + "/lib/libtfhook.so"
TALLY = BUILD + "/tests/record/tally"
SLOT, HEADER = 64, 64


class Skip(Exception):
    pass


class Case:
    """args: program of tests/torture and what it is given; {tmp} {run} {bin} {src} {build} are filled in.

    truth, for each process:
      exact    recorded + lost == called
      killed   called <= recorded + lost <= begun: the process was ended in the middle of a call
      part     recorded + lost <= begun: recording ends before the process does, or cannot be had
      nothing  the job's own result is all that is looked at

    tidy: no journal may be left ("exact" includes it).

    say: what the one line on stderr must match ("|..." : may), least: calls recorded or told as lost in all, before: makes
    the surroundings, ignore: what a debugger prints of its own.
    """

    def __init__(self, name, args, truth="exact", *, quick=False, rc=None, env=None, preload="{hook}", wrap=(), say=None,
                 least=0, before=None, needs=None, timeout=60, ignore=None, tidy=False):
        self.name, self.args, self.truth, self.quick = name, args, truth, quick
        self.rc, self.env, self.preload, self.wrap = rc, env or {}, preload, list(wrap)
        self.say, self.least, self.before, self.needs, self.timeout, self.ignore = say, least, before, needs, timeout, ignore
        self.tidy = tidy or truth == "exact"


class Outcome:
    def __init__(self, rc, out, err, seconds):
        self.rc, self.out, self.err, self.seconds = rc, out, err, seconds


def fill(text, names):
    return re.sub(r"\{(\w+)\}", lambda m: names[m.group(1)], text)


def counts(path):
    """{pid: (begun, called)}"""
    result = {}
    if not os.path.exists(path) or not os.path.getsize(path):
        return result
    with open(path, "rb") as f, mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as page:
        used = struct.unpack_from("Q", page, 0)[0]
        for i in range(used):
            pid, _, tried, done = struct.unpack_from("IIQQ", page, HEADER + i * SLOT)
            have = result.get(pid, (0, 0))
            result[pid] = (have[0] + tried, have[1] + done)
    return result


def recorded(run):
    """{pid: (calls, lost)}, what could not be read, and what was read; calls: with those whose records gave way to newer ones,
    and are reported as that."""
    parts, bad = {}, []
    if not os.path.isdir(run):
        return {}, bad, ""
    done = subprocess.run([TALLY, "-s", run], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for line in done.stdout.splitlines():
        if not (found := re.search(r" pid=(\d+)", line)):
            if "the file is empty" not in line:  # killed between making it and its first write
                bad.append(line)
            continue
        pid = int(found.group(1))
        value = {k: int(v) for k, v in re.findall(r"\b(call|lost|given_up|dropped)=(\d+)", line)}
        calls, lost, given_up, dropped = parts.get(pid, (0, 0, 0, 0))
        parts[pid] = (calls + value.get("call", 0), lost + value["lost"], given_up + value["given_up"], max(dropped, value["dropped"]))
    # What was lost while a segment was written that gave way is in the count of the later ones, whatever order they are listed in.
    result = {pid: (calls + given_up, dropped if given_up else lost) for pid, (calls, lost, given_up, dropped) in parts.items()}
    if done.returncode:
        bad.append("tally ended with %d" % done.returncode)
    return result, bad, done.stdout


def default_signals():
    """nohup and a shell's background jobs ignore these."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


def lives(group):
    """Is a thread of it neither gone nor a zombie, which nobody may reap? A process' first thread is one before the others,
    which hold its descriptors."""
    for path in glob.glob("/proc/[0-9]*/task/*/stat"):
        try:
            with open(path) as f:
                state, _, of = f.read().rsplit(")", 1)[1].split()[:3]
        except OSError:
            continue
        if int(of) == group and state not in "ZX":
            return True
    return False


def gone(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0] in "ZX"
    except OSError:
        return True


def end_group(process):
    """A killed process has closed its pipes some time before it is gone, and with it the recorder's own descriptors."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    end = time.monotonic() + 5
    while process.returncode is not None and lives(process.pid) and time.monotonic() < end:
        time.sleep(0.005)


class Bench:
    """A folder of its own for each run of a case."""

    def __init__(self, case, tmp):
        self.case, self.tmp = case, tmp
        self.run_dir, self.page = tmp + "/run", tmp + "/page"
        self.names = {"tmp": tmp, "run": self.run_dir, "bin": BIN, "src": SRC, "build": BUILD, "hook": HOOK}

    def clean(self):
        subprocess.run(["rm", "-rf", self.tmp])
        os.makedirs(self.tmp + "/lib")
        os.chmod(self.tmp, 0o777)
        os.symlink(BIN + "/libdriver.so", self.tmp + "/lib/libcuda.so.1")

    def start(self, preloaded):
        case = self.case
        env = dict(os.environ, TORTURE_PAGE=self.page, LD_LIBRARY_PATH=self.tmp + "/lib", TFHOOK_RUN=self.run_dir,
                   TFHOOK_CUPTI="off")
        env.update({k: fill(v, self.names) for k, v in case.env.items()})
        preload = fill(case.preload if preloaded else case.preload.replace("{hook}", ""), self.names).strip(": ")
        if preload:
            env["LD_PRELOAD"] = preload
        command = [fill(a, self.names) for a in case.args]
        if not command[0].startswith("/"):
            command[0] = BIN + "/" + command[0]
        if case.wrap and preload:
            # Only the job is preloaded, not what runs it.
            env.pop("LD_PRELOAD")
            command = ["/usr/bin/env", "LD_PRELOAD=" + preload, *command]
        return subprocess.Popen([fill(w, self.names) for w in case.wrap] + command, env=env, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, cwd=self.tmp,
                                preexec_fn=default_signals)

    def journals(self, pids):
        """[(path, (inode, bytes))] of these processes that were not there before the case: process numbers come again, and
        what another job left under one is not this one's."""
        found = {}
        for place in ("/dev/shm", self.run_dir):
            for path in glob.glob(place + "/*.journal"):
                name = re.search(r"\.(\d+)(\.\d+)?\.journal$", path)
                if name and (pids is None or int(name.group(1)) in pids):
                    try:
                        st = os.stat(path)
                    except FileNotFoundError:
                        continue
                    found[path] = (st.st_ino, st.st_size)
        return [(p, v) for p, v in sorted(found.items()) if self.before.get(p, (0, 0))[0] != v[0]]

    def go(self, preloaded, kill_after=None):
        self.clean()
        self.before = {}
        self.before = dict(self.journals(None))
        if self.case.before:
            self.case.before(self)
        begin = time.monotonic()
        process = self.start(preloaded)
        if kill_after is not None:
            time.sleep(kill_after)
            end_group(process)
        try:
            out, err = process.communicate(timeout=self.case.timeout)
        except subprocess.TimeoutExpired:
            end_group(process)
            out, err = process.communicate()
            return Outcome(None, out, err, time.monotonic() - begin)
        end_group(process)
        # A daemon has left the group. Process numbers come again, so this is not waited for without a bound.
        end = time.monotonic() + 10
        while not all(map(gone, counts(self.page))) and time.monotonic() < end:
            time.sleep(0.01)
        return Outcome(process.returncode, out, err, time.monotonic() - begin)

    def compare_truth(self):
        called, (got, bad, read) = counts(self.page), recorded(self.run_dir)
        truth, wrong = self.case.truth, list(bad)
        if truth == "nothing":
            return []
        for pid in set(called) | set(got):
            begun, done = called.get(pid, (0, 0))
            calls, lost = got.get(pid, (0, 0))
            right = {"exact": calls + lost == done, "killed": done <= calls + lost <= begun,
                     "part": calls + lost <= begun}[truth]
            if not right:
                wrong.append("process %d: %d calls begun, %d ended; %d recorded, %d lost" % (pid, begun, done, calls, lost))
                wrong += ["    " + line for line in read.splitlines() if " pid=%d " % pid in line]
        total = sum(c + l for c, l in got.values())
        if total < self.case.least:
            wrong.append("%d calls recorded or lost, at least %d expected" % (total, self.case.least))
        left = self.journals(set(called) | set(got))
        if left and (wrong or self.case.tidy):
            wrong.append("journals left: " + " ".join("%s of %d bytes" % (path, size) for path, (_, size) in left))
        if self.case.truth == "part":  # one whose run directory is on a mount that is gone would stay
            for path, _ in left:
                os.remove(path)
        return wrong[:8]

    def compare_ends(self, plain, hooked):
        case, wrong = self.case, []
        if hooked.rc is None:
            return ["no end after %d s (%.1f s without the preload)" % (case.timeout, plain.seconds)]
        if plain.rc is None:
            return ["no end without the preload either: the case is wrong"]
        if case.rc is not None and plain.rc != case.rc:
            return ["ends with %s without the preload, %s expected: the case is wrong; %r" %
                    (plain.rc, case.rc, plain.out + plain.err)]
        if hooked.rc != plain.rc:
            wrong.append("exit status %s, %s without the preload" % (hooked.rc, plain.rc))
        if case.ignore:
            plain.out, hooked.out = (re.sub(case.ignore, b"", o.out) for o in (plain, hooked))
        if hooked.out != plain.out:
            wrong.append("output %r, %r without the preload" % (hooked.out[-300:], plain.out[-300:]))
        said = [line for line in hooked.err.decode(errors="replace").splitlines() if line.startswith("tfhook: ")]
        rest = b"".join(line for line in hooked.err.splitlines(True) if not line.startswith(b"tfhook: "))
        if rest != plain.err:
            wrong.append("stderr %r, %r without the preload" % (rest[-300:], plain.err[-300:]))
        if said and (not case.say or len(said) > 1 or not re.search(case.say, said[0])):
            wrong.append("says %r" % said)
        if not said and case.say and not case.say.startswith("|"):
            wrong.append("does not say %r" % case.say)
        return wrong


@functools.lru_cache(maxsize=None)
def can_unshare(what):
    return not subprocess.run(["unshare", what, "true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode


def try_case(case, tmp):
    """What is wrong, as lines; Skip when it cannot be run here."""
    if case.wrap[:1] == ["unshare"] and not can_unshare(case.wrap[1]):
        raise Skip("no namespace of its own to be had (a container, a chroot)")
    for tool in case.needs or []:
        if not (shutil.which(tool) or os.path.exists(tool)):
            raise Skip("needs " + tool)
    bench = Bench(case, tmp)
    plain = bench.go(False)
    hooked = bench.go(True)
    wrong = bench.compare_ends(plain, hooked)
    if hooked.rc is not None:
        wrong += bench.compare_truth()
    return wrong
