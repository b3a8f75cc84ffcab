#!/usr/bin/env python3
"""What must hold where a job starts while the mount of its run directory hangs (bindfs, a FUSE file system whose server is stopped): it is
recorded in its journal from the first call on, waits for nothing, and ends as usual. If the mount answers meanwhile, the recording is like any
other. If it answers later, or is gone and mounted again after the job, `tfhook repair --left` saves every step; where no directory was given, so that none is known yet, it keeps the
journal, and `tfhook repair JOURNAL -o DIR` saves it. A directory that turns out not to be one costs the recording, with one line on stderr,
and leaves no journal. All of this holds for a recording thread that gets its first processor time only after the job's end, too.
timeout: 240
"""
import json
import os
import signal
import subprocess
import sys
import time

BUILD, SRC, TMP = os.environ["TFH_BUILD"], os.environ["TFH_SRC"], os.environ["TFH_TMP"]
TOOL, LOOP = BUILD + "/bin/tfhook", BUILD + "/tests/jobs/client_loop"
STEPS = 60


def skip(why):
    print(why)
    sys.exit(77)


# A mount namespace of its own, with a /dev/shm in which nobody else's journals are.
if os.environ.get("TFH_SAN") or not os.path.exists(LOOP):
    skip("needs client_loop, and a recorder that can be preloaded into ordinary programs")
if not os.environ.get("TFH_AHEAD_OWN"):
    if not os.path.exists("/dev/fuse") or subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL).returncode:
        skip("no right to mount")
    if subprocess.run([SRC + "/scripts/bootstrap", "lost-mounts"]).returncode:
        skip("no bindfs")
    os.environ["TFH_AHEAD_OWN"] = "1"
    os.execvp("unshare", ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /dev/shm && exec "$@"', "sh", sys.executable, *sys.argv])

os.chdir(TMP)
NET = TMP + "/net"
os.mkdir("net")
os.mkdir("net.real")


def eventually(what):
    until = time.monotonic() + 100
    while not (found := what()):
        assert time.monotonic() < until, "it took too long"
        time.sleep(0.02)
    return found


def serve():
    one = subprocess.Popen(["bindfs", "-f", "net.real", "net"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    eventually(lambda: os.path.ismount("net") or one.poll() is not None)
    if one.poll() is not None:
        skip("bindfs cannot mount here")
    return one


def journals():
    return ["/dev/shm/" + name for name in os.listdir("/dev/shm") if name.endswith(".journal")]


def start(*more, **where):
    """A process with the preload alone: `tfhook run` would wait for the mount itself."""
    env = dict(os.environ, LD_LIBRARY_PATH=BUILD + "/sim", LD_PRELOAD=BUILD + "/lib/libtfhook.so", OF_THE_JOB="x")
    env.update(where)
    return subprocess.Popen([LOOP, "--h2d", "1000", "--spin", "1000", *more], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(job):
    """The steps that it made, and what is on stderr."""
    out, err = job.communicate(timeout=100)
    assert job.returncode == 0 and out.startswith("steps "), (job.returncode, out, err)
    return int(out.split()[1]), err


def tool(*args):
    done = subprocess.run([TOOL, *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=100)
    assert done.returncode == 0, (args, done.returncode, done.stdout)
    return done.stdout


def check(folder, steps):
    said = json.loads(tool("report", "--json", folder))
    assert said["steps"]["total"] == steps and said["quality"]["dropped"] == 0, (folder, steps, said["steps"], said["quality"])
    return said


def hangs():
    server.send_signal(signal.SIGSTOP)


def answers():
    server.send_signal(signal.SIGCONT)


def until_the_end():
    os.mkdir("net/given")
    hangs()
    steps, err = ended(start("--steps", str(STEPS), TFHOOK_RUN=NET + "/given"))
    assert steps == STEPS and not err and len(journals()) == 1, (steps, err, journals())
    answers()
    assert os.listdir("net/given") == []
    tool("repair", "--left")
    check("net/given", STEPS)
    assert not journals(), journals()


def late_thread():
    os.mkdir("net/late")
    hangs()
    steps, err = ended(start("--steps", str(STEPS), TFHOOK_RUN=NET + "/late", LD_PRELOAD=BUILD + "/tests/record/liblate.so " + BUILD + "/lib/libtfhook.so"))
    assert steps == STEPS and not err and len(journals()) == 1, (steps, err, journals())
    answers()
    tool("repair", "--left")
    check("net/late", STEPS)
    assert not journals(), journals()


def gone():
    """The server is gone, and with it all files, until it is started again after the job."""
    global server
    os.mkdir("net/gone")
    server.kill()
    server.wait()
    steps, err = ended(start("--steps", str(STEPS), TFHOOK_RUN=NET + "/gone"))
    assert steps == STEPS and err.count("\n") <= 1 and "not recording" not in err and len(journals()) == 1, (steps, err, journals())
    subprocess.run(["umount", "-l", "net"], check=True)
    server = serve()
    tool("repair", "--left")
    check("net/gone", STEPS)
    assert not journals(), journals()


def unnamed():
    hangs()
    steps, err = ended(start("--steps", str(STEPS), TFHOOK_DIR=NET + "/runs"))
    assert steps == STEPS and not err and len(journals()) == 1, (steps, err, journals())
    answers()
    said = tool("repair", "--left")
    assert "kept" in said and "-o DIR" in said, said
    alone = subprocess.run([TOOL, "repair", *journals()], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert alone.returncode and "-o DIR" in alone.stdout and len(journals()) == 1, alone
    tool("repair", journals()[0], "-o", "saved")
    check("saved", STEPS)
    os.remove(journals()[0])


def meanwhile(**where):
    hangs()
    job = start("--steps", "100000000", "--until", TMP + "/enough", **where)
    eventually(journals)
    answers()
    folders = [NET + "/runs2", NET + "/given2"]
    eventually(lambda: [name for at in folders for _, _, names in os.walk(at) for name in names if name.endswith(".tft")])
    open("enough", "w").close()
    steps, err = ended(job)
    os.remove("enough")
    assert not err and not journals(), (err, journals())
    folder = next(at for top in folders for at, _, names in os.walk(top) if any(name.endswith(".tft") for name in names))
    assert check(folder, steps)["quality"]["clean_end"]
    if not os.path.exists(NET + "/given2"):
        with open(folder + "/run.json") as f:
            assert json.load(f)["command"][0] == LOOP
    subprocess.run(["rm", "-rf", *folders], check=True)


def no_directory():
    open("net.real/file", "w").close()
    steps, err = ended(start("--steps", str(STEPS), TFHOOK_RUN=NET + "/file"))
    assert steps == STEPS and err.count("\n") == 1 and "not recording: cannot write to " + NET + "/file" in err, (steps, err)
    assert not journals(), journals()


server = serve()
try:
    until_the_end()
    late_thread()
    gone()
    unnamed()
    os.mkdir("net/given2")
    meanwhile(TFHOOK_RUN=NET + "/given2")
    meanwhile(TFHOOK_DIR=NET + "/runs2")
    no_directory()
finally:
    server.kill()
    server.wait()
    subprocess.run(["umount", "-l", "net"])
