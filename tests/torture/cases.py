"""The table of cases. What a row means is said in harness.py, what a way does in the programs."""
import errno
import glob
import os
import shutil
import subprocess

from harness import BIN, SRC, Case, Skip

NOWHERE = r"not recording: .*; set TFHOOK_DIR"
PAUSED = r"paused: .*; "


def library(*names):
    for name in names:
        for path in glob.glob("/usr/lib/*/" + name) + glob.glob("/usr/lib64/" + name):
            return path
    return "/not/installed/" + names[0]


def root_filled(bench):
    os.makedirs(bench.tmp + "/root" + bench.run_dir)
    os.makedirs(bench.tmp + "/root/dev")


def read_only(bench):
    os.makedirs(bench.run_dir)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,size=1m", "tfh-torture", bench.run_dir], stderr=subprocess.DEVNULL)
    if done.returncode:
        raise Skip("may not mount")


LEAVING = 64321  # a user that nothing else here is



def compiled(compiler, *flags):
    def make(bench):
        source = bench.tmp + "/one.c"
        with open(source, "w") as f:
            f.write('#include "%s/tests/torture/ends.c"\n' % SRC)
        done = subprocess.run([compiler, "-std=gnu11", "-D_GNU_SOURCE", "-g", "-O1", "-pthread", "-o",
                               bench.tmp + "/one", source, *flags, "-ldl"], stderr=subprocess.PIPE)
        if done.returncode:
            raise Skip("%s cannot: %s" % (compiler, done.stderr.decode().splitlines()[:1]))
    return make


def setuid_copy(bench):
    subprocess.run(["install", "-m", "4755", BIN + "/ends", bench.tmp + "/one"], check=True)


def many_libraries(bench):
    os.mkdir(bench.tmp + "/many")
    for i in range(10000):
        shutil.copyfile(BIN + "/libother.so", "%s/many/%d.so" % (bench.tmp, i))


def linked_away(bench):
    os.symlink(bench.tmp + "/away", bench.tmp + "/link")


def faults(**how):
    return {"FAULTS": how["f"], "FAULTS_UNDER": how.get("under", "{run}")}


def ends():
    yield Case("plain", ["ends", "plain", "1000"], rc=7, quick=True)
    yield Case("ring full", ["ends", "plain", "3000000"], rc=7)
    yield Case("abort", ["ends", "abort", "1000"], rc=-6, quick=True)
    yield Case("segmentation fault", ["ends", "segv", "1000"], rc=-11, quick=True)
    yield Case("quick_exit", ["ends", "quick", "1000"], rc=5)
    yield Case("quick_exit with a handler", ["ends", "quickhandler", "1000"], rc=5, truth="part", least=1000)
    yield Case("_exit", ["ends", "underscore", "1000"], rc=6, quick=True)
    yield Case("exit_group", ["ends", "raw", "1000"], rc=5, truth="killed")
    for number in (1, 2, 3, 9, 10, 13, 14, 15, 24, 31):
        yield Case("signal %d" % number, ["ends", "signal", "1000", str(number)], rc=-number, truth="killed", quick=number == 15)
    yield Case("handler that exits", ["ends", "handler", "1000"], rc=35, truth="part", least=1000, quick=True)
    for how, what in enumerate(("exit", "_exit", "calls and exit")):
        yield Case("%s in a handler inside a call" % what, ["ends", "inside", "1000", str(how)], rc=30, quick=how == 0)
    yield Case("two exits at once", ["ends", "twice", "1000"], rc=9, quick=True)
    yield Case("fork in an exit handler", ["ends", "forks", "1000", "0"], rc=7)
    yield Case("fork in an exit handler after the end", ["ends", "forks", "1000", "1"], rc=7, truth="part", least=1000)
    yield Case("exit in a destructor at dlclose", ["ends", "destructor", "1000", "{bin}/libctor.so", "1"], rc=11, quick=True)
    yield Case("exit in a destructor at the end", ["ends", "destructor", "1000", "{bin}/libctor.so", "0"], rc=11, truth="part", least=1002)
    yield Case("processor time used up", ["ends", "usesup", "1000", "0"], rc=-24, truth="killed", least=1000, timeout=300)
    yield Case("a handler when it is used up", ["ends", "usesup", "1000", "1"], rc=44, truth="killed", least=1000, timeout=300)
    yield Case("main thread ends first", ["ends", "main", "1000"], rc=0, timeout=20, quick=True)
    yield Case("exit in a thread", ["ends", "thread", "2000"], rc=9, truth="part", least=2000)
    yield Case("calls after exit began", ["ends", "late", "1000"], rc=7, truth="part", least=1000, quick=True)
    yield Case("exec in the middle", ["ends", "exec", "5"], rc=7, quick=True)
    yield Case("exec beside calls", ["ends", "execbeside", "1000"], rc=0, truth="part", least=1000)
    yield Case("exec that fails", ["ends", "execfails", "20000"], rc=7, truth="part", least=20)
    yield Case("stop and continue", ["ends", "stopped", "100000"], rc=7)
    yield Case("coroutines", ["ends", "coroutines", "5000"], rc=7)
    yield Case("siglongjmp out of hooks", ["ends", "jumps", "500"], rc=7, truth="part", least=1000, quick=True)


def forks():
    yield Case("forks", ["forks", "one", "100"], rc=7)
    yield Case("forks, few", ["forks", "one", "10"], rc=7, quick=True)
    yield Case("forks at once", ["forks", "many", "200"], rc=7, timeout=300)
    yield Case("storm of forks", ["forks", "storm", "400"], rc=7, timeout=300)
    yield Case("vfork", ["forks", "vfork", "300"], rc=7)
    yield Case("posix_spawn", ["forks", "spawn", "300"], rc=7)
    yield Case("clone of a process", ["forks", "rawclone", "50"], rc=7, truth="killed")
    yield Case("clone3 of a process", ["forks", "clone3", "50"], rc=7, truth="killed")
    yield Case("clone with shared memory", ["forks", "clonevm", "100"], rc=7)
    yield Case("clone with shared memory and files", ["forks", "clonefiles", "100"], rc=7)
    yield Case("system", ["forks", "system", "50"], rc=7)
    yield Case("daemon", ["forks", "daemon", "1000", "{tmp}/said"], rc=7)


def threads():
    yield Case("1,000 threads alive", ["threads", "alive", "1000"], rc=7)
    yield Case("100 threads alive", ["threads", "alive", "100"], rc=7, quick=True)
    yield Case("10,000 short threads", ["threads", "short", "10000"], rc=7)
    yield Case("environment changed beside first calls", ["threads", "environment", "300"], rc=7)
    yield Case("64 threads, 1,000,000 calls each", ["threads", "flood", "1000000", "64"], rc=7, timeout=300)
    yield Case("8 threads, 100,000 calls each", ["threads", "flood", "100000", "8"], rc=7, quick=True)
    yield Case("threads end in a flush", ["threads", "flush", "200"], rc=7)
    yield Case("cancellation anywhere", ["threads", "cancel", "500"], rc=7, truth="part", least=500, quick=True)
    yield Case("calls in destructors", ["threads", "destructors", "300"], rc=7, truth="part", least=300)
    yield Case("signals at 1 kHz", ["threads", "signals", "200000"], rc=7)
    yield Case("first calls of 64 threads", ["threads", "first", "64"], rc=7, quick=True)


LIMITS = {"core": "0", "cpu": "60", "locks": "0", "memlock": "0", "msgqueue": "0", "nice": "0", "rss": "1", "rtprio": "0",
          "rttime": "0", "sigpending": "0", "stack": "65536", "nproc": "1", "data": "4194304"}


def limits():
    for kind, value in LIMITS.items():
        yield Case("limit of %s, before" % kind, ["limits", "before", "1000", kind, value], rc=7,
                   truth="part", say="|.*ulimit|not recording", least=0)
        yield Case("limit of %s, after" % kind, ["limits", "after", "1000", kind, value], rc=7, least=1000,
                   truth="part" if kind == "data" else "exact", say="|ulimit -v" if kind == "data" else None)
    other = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"] # root may exceed this one
    yield Case("no more processes for a user, before", ["limits", "before", "1000", "nproc", "1"], rc=7, truth="part", wrap=other,
               needs=["setpriv"], say="|.*ulimit -u")
    yield Case("no more processes for a user, after", ["limits", "after", "1000", "nproc", "1"], rc=7, wrap=other, needs=["setpriv"])
    for value in ("0", "3", "6", "10"):
        yield Case("%s descriptors, before" % value, ["limits", "before", "1000", "nofile", value], truth="part",
                   say="|.*(ulimit -n|TFHOOK_DIR)")
        yield Case("%s descriptors, after" % value, ["limits", "after", "1000", "nofile", value], truth="part",
                   say="|.*ulimit -n", least=1000)
    for value in ("0", "1", "4096", "100000"):
        yield Case("files of %s bytes, before" % value, ["limits", "before", "1000", "fsize", value], rc=7, truth="part",
                   say="|" + PAUSED + "|TFHOOK_DIR")
        yield Case("files of %s bytes, after" % value, ["limits", "after", "20000", "fsize", value], rc=7, truth="part",
                   say="|" + PAUSED, least=20000)
    # The program alone needs 27 of them, and 3 to 4 more with the library's code, by compiler.
    for value in (32, 120, 200):
        yield Case("address space of %d MB" % value, ["limits", "room", "1000", str(value << 20), str(20 << 20)], rc=7,
                   truth="part", say="|ulimit -v", quick=value == 32)
    yield Case("no more address space", ["limits", "after", "1000", "as", "1"], rc=7, truth="part", least=1000, say="ulimit -v", quick=True)
    yield Case("0, 1, 2 closed", ["limits", "closestd", "1000", "{tmp}/own"], rc=7, quick=True)
    yield Case("0, 1, 2 closed and written to", ["limits", "writeclosed", "1000"], rc=7, quick=True)
    for least, beyond in (3, 20), (990, 1030):
        yield Case("%d to %d closed and written to" % (least, beyond - 1),
                   ["limits", "childrenwrite", "1000", "30", str(least), str(beyond)], rc=7, quick=least == 3)
    yield Case("all descriptors closed", ["limits", "closeall", "1000", "{tmp}/own"], rc=7)
    yield Case("descriptors by number", ["limits", "closenumbers", "1000", "{tmp}/own"], rc=7, quick=True)
    yield Case("all descriptors taken", ["limits", "takenumbers", "1000", "{tmp}/own"], rc=7, truth="part", say="|" + PAUSED)
    yield Case("mlockall", ["limits", "mlockall", "1000"], rc=7)


def places():
    yield Case("no working directory", ["places", "nodirectory", "1000", "{tmp}/gone"], rc=7, env={"TFHOOK_RUN": "{run}"})
    yield Case("run directory removed", ["places", "command", "20000", "rm -rf {run}"], rc=7, truth="part", say="|" + PAUSED)
    yield Case("journal removed", ["places", "command", "20000", "rm -f /dev/shm/tfhook.*.$PPID.journal {run}/*.journal"], rc=7, quick=True)
    # logind's own function, which it calls when a user's last session ends: one journal before, none after.
    logind = library("systemd/libsystemd-shared-*.so", "libsystemd-shared-*.so")
    removes = ("want=${LD_PRELOAD:+1}; unset LD_PRELOAD; there() { find /dev/shm -user %d -name 'tfhook.*.journal' | grep -c .; }; test $(there) = ${want:-0} && python3 -c "
               "'import ctypes; exit(ctypes.CDLL(\"%s\").clean_ipc_by_uid(%d) < 0)' && test $(there) = 0" % (LEAVING, logind, LEAVING))
    # In a container the journal would lie beside the output, where logind does not look: so a root without the files that name one.
    bare = ("mkdir {tmp}/bare && mount -t tmpfs none {tmp}/bare && cd / && for d in *; do if test -L $d; then cp -a $d {tmp}/bare; elif test -d $d; then "
            "mkdir {tmp}/bare/$d && mount --rbind $d {tmp}/bare/$d; fi; done && mount -t tmpfs -o mode=1777 none {tmp}/bare/dev/shm && exec chroot --userspec=%d:%d {tmp}/bare \"$@\"" % (LEAVING, LEAVING))
    yield Case("logind's RemoveIPC", ["places", "command", "20000", removes], rc=7,
               wrap=["unshare", "-m", "/bin/sh", "-c", bare, "sh"], needs=["unshare", "python3", logind])
    yield Case("run directory renamed", ["places", "command", "20000", "mv {run} {tmp}/elsewhere 2>/dev/null; true"], rc=7, truth="part", say="|" + PAUSED)
    yield Case("run directory unreadable", ["places", "command", "1000", "chmod 0 {run} 2>/dev/null; true"], rc=7)
    yield Case("chroot", ["places", "chroot", "1000", "{tmp}/root"], rc=7, before=root_filled, truth="part", say="|" + PAUSED)
    yield Case("setuid", ["places", "setuid", "1000"], rc=7, truth="part", least=1000, say="|" + PAUSED, quick=True)
    yield Case("setuid before", ["places", "setuidfirst", "1000"], rc=7)
    yield Case("setuid program", ["{tmp}/one", "plain", "1000"], rc=7, before=setuid_copy, truth="part", env={"TORTURE_DRIVER": "{bin}/libdriver.so"},
               wrap=["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"], needs=["setpriv"])
    for name, flags in (("mounts", "0x00020000"), ("processes", "0x20000000"), ("network", "0x40000000"), ("ipc", "0x08000000"),
                        ("host names", "0x04000000"), ("files", "0x400")):
        yield Case("unshare of " + name, ["places", "unshare", "100", flags], rc=7,
                   truth="part" if name == "processes" else "exact")
    yield Case("10,000 libraries", ["places", "libraries", "1000", "{tmp}/many", "10000"], rc=7, before=many_libraries, timeout=300)
    yield Case("umask 0777", ["places", "umask", "1000"], rc=7)
    yield Case("strict seccomp", ["places", "strict", "1000"], rc=0, quick=True)
    yield Case("strict seccomp from the start", ["places", "strictfirst", "0"], rc=0)
    yield Case("no counter for a while", ["places", "nocounter", "1000", "on"], rc=7, truth="part", least=4000, quick=True)
    yield Case("no counter to the end", ["places", "nocounter", "1000"], rc=7, truth="part", least=1000, quick=True)
    yield Case("seccomp as Docker has it", ["places", "docker", "1000"], rc=7, quick=True)
    yield Case("seccomp as Docker has it, longer", ["places", "docker", "1000", "on"], rc=7)
    yield from filters()
    yield Case("days of segments", ["places", "long", "400", "20000"], rc=7, truth="part", least=1000000,
               env={"TFHOOK_MAX_SIZE": "1M"}, timeout=120)
    yield Case("segments that give way", ["threads", "flood", "1000000", "4"], rc=7, env={"TFHOOK_MAX_SIZE": "1M"}, quick=True)
    yield Case("rings of 1 MB", ["threads", "alive", "300"], rc=7, env={"TFHOOK_RING_TOTAL": "1M"})
    for name, mounts in (("/dev/shm of 64 MB", "mount -t tmpfs -o size=64m none /dev/shm"),
                         ("/dev/shm of 1 MB", "mount -t tmpfs -o size=1m none /dev/shm"),
                         ("no /dev/shm", "mount -t tmpfs -o size=4k,nr_inodes=1 none /dev"), ("/dev/shm read-only", "mount -t tmpfs -o ro none /dev/shm"),
                         ("no /proc", "umount -l /proc"), ("no /sys", "umount -l /sys")):
        yield Case(name, ["ends", "plain", "100000"], rc=7, truth="part" if name == "no /proc" else "exact",
                   wrap=["unshare", "-m", "/bin/sh", "-c", mounts + ' && exec "$@"', "sh"], needs=["unshare"])
    yield Case("a directory that cannot be made", ["ends", "plain", "1000"], rc=7, truth="part", say=NOWHERE,
               env={"TFHOOK_RUN": "/proc/self/run"}, quick=True)
    yield Case("a file in its place", ["ends", "plain", "1000"], rc=7, truth="part", say=NOWHERE,
               env={"TFHOOK_RUN": "/etc/passwd"})
    yield Case("read-only file system", ["ends", "plain", "1000"], rc=7, truth="part", say=NOWHERE,
               env={"TFHOOK_RUN": "{tmp}/ro/run"},
               wrap=["unshare", "-m", "/bin/sh", "-c", 'mkdir -p {tmp}/ro && mount -t tmpfs -o ro none {tmp}/ro && exec "$@"', "sh"])
    yield Case("full file system", ["places", "long", "50", "20000"], rc=7, truth="part", say=PAUSED,
               env={"TFHOOK_RUN": "{tmp}/full/run"},
               wrap=["unshare", "-m", "/bin/sh", "-c", 'mkdir -p {tmp}/full && mount -t tmpfs -o size=300k none {tmp}/full && exec "$@"', "sh"])


def filters():
    """System call filters that end the process. Calls that recording can do without are not made under them; where one of the
    others is forbidden, nothing is recorded from then on."""
    for when, how in (("before", "before"), ("by prctl", "prctl"), ("by syscall", "seccomp"), ("for all threads", "all")):
        for call in ("process_vm_readv", "prctl", "quotactl_fd", "get_mempolicy", "close_range"):
            yield Case("a filter that ends for %s, %s" % (call, when), ["filters", "deny", "1000", how, call], rc=7,
                       quick=how == "all" and call == "process_vm_readv")
        most = {"truth": "part"} if how == "before" else {"truth": "part", "least": 1000}
        yield Case("a filter that ends for gettid, " + when, ["filters", "deny", "1000", how, "gettid"], rc=7,
                   say="not recording: .* would kill the job at gettid" if how == "before" else None, **most)
        yield Case("a filter of the job's own calls, " + when, ["filters", "own", "1000", how], rc=7,
                   say="|not recording", quick=how in ("before", "all"), **most)
        # The list of the recorder's calls (own_calls.def) is complete.
        yield Case("a filter of all known calls, " + when, ["filters", "listed", "1000", how], rc=7, quick=how == "all")


def failing_files():
    many = ["places", "long", "60", "20000"]
    rows = [("ENOSPC", errno.ENOSPC), ("EIO", errno.EIO), ("EDQUOT", errno.EDQUOT)]
    for word, number in rows:
        for what, fault in (("making the directory", "mkdir:%d:1"), ("opening", "open:%d:1"), ("the second opening", "open:%d:2"),
                            ("later openings", "open:%d:3"), ("writing", "write:%d:1"), ("one write", "write:%d:5:1"),
                            ("later writes", "write:%d:8"), ("making room for rings", "populate:%d:1"),
                            ("making room later", "populate:%d:3"), ("truncating", "ftruncate:%d:1"), ("closing", "close:%d:1"),
                            ("mapping", "mmap:%d:1")):
            # Inside a container the journal lies beside the output, where these faults are.
            yield Case("%s at %s" % (word, what), many, rc=7, truth="part", preload="{hook}:{bin}/libfaults.so",
                       env=dict(faults(f=fault % number), container="yes", TFHOOK_MAX_SIZE="1M"),
                       say="|(" + PAUSED + "|not recording)", quick=word == "EIO" and what == "writing")
    # A network file system whose server is gone, and one that answers late.
    away = ["unshare", "-m", "{src}/tests/torture/away", "{tmp}/away"]
    for what, where in (("there", {"TFHOOK_RUN": "{tmp}/away/run"}), ("there by a link", {"TFHOOK_RUN": "", "TFHOOK_DIR": "{tmp}/link/runs"})):
        yield Case("a server that is gone, " + what, ["places", "long", "20", "2000"], rc=7, truth="part", wrap=away, env=where,
                   needs=["/dev/fuse"], before=linked_away, quick=what == "there")
    yield Case("mkdir answers after a while", ["places", "long", "90", "2000"], rc=7, preload="{hook}:{bin}/libfaults.so",
               env=faults(f="mkdir:-1500:1:1"), wrap=["unshare", "-m", "/bin/sh", "-c", 'umount -l /proc && exec "$@"', "sh"],
               quick=True)
    for what, fault in (("open", "open:-3000:1:1"), ("mkdir", "mkdir:-3000:1:1"), ("write", "write:-3000:3:1"),
                        ("every write", "write:-1500:1"), ("making room", "populate:-3000:1:1")):
        yield Case("%s hangs for seconds" % what, ["places", "long", "20", "2000"], rc=7, truth="part",
                   preload="{hook}:{bin}/libfaults.so", env=dict(faults(f=fault), container="yes"), say="|" + PAUSED)
    # The call waits for the journal a second, and no place to write to comes before the process has ended.
    for what, fault in (("making room", "populate:-9000:1:1"), ("the first write", "ftruncate:-9000:1:1")):
        yield Case("the process ends while %s hangs" % what, ["threads", "beside", "1"], rc=7, truth="part", tidy=True,
                   preload="{hook}:{bin}/libfaults.so", env=dict(faults(f=fault), container="yes"))


# What freezes is outside of it.
FREEZES = ("c=/sys/fs/cgroup/freezer/tfh-torture-$$; mkdir $c || exit 99; for i in 1 2 3; do sleep 0.2; echo FROZEN >$c/freezer.state; sleep 0.7; "
           "echo THAWED >$c/freezer.state; done & echo $$ >$c/tasks; \"$@\"; rc=$?; echo $$ >$c/../tasks; wait; rmdir $c; exit $rc")


def kernel():
    user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    yield Case("not dumpable", ["kernel", "nodump", "1000"], rc=7, quick=True)
    yield Case("not dumpable, as a user", ["kernel", "nodump", "1000"], rc=7, wrap=user, needs=["setpriv"])
    yield Case("landlock", ["kernel", "landlock", "1000"], rc=7, truth="part", least=1000, say="|" + PAUSED)
    yield Case("no new code", ["kernel", "nocode", "1000"], rc=7)
    yield Case("another effective user at the start", ["kernel", "euid", "1000"], rc=7, truth="part", say="|" + PAUSED + "|" + NOWHERE)
    yield Case("close_range before an exec", ["kernel", "cloexec", "1000", "{bin}/kernel"], rc=7, quick=True)
    yield Case("io_uring with a thread of the kernel", ["kernel", "uring", "1000"], rc=7)
    yield Case("8 MB to be locked", ["kernel", "locked", "1000", "8", "4"], rc=7, truth="part", say="ulimit -l", quick=True)
    yield Case("no child of ours", ["kernel", "childless", "1000"], rc=7, quick=True)
    for size in ("16384", "32768"):
        yield Case("threads with %s bytes of stack" % size, ["kernel", "stacks", "50", size], rc=7)
    for size in ("8192", "16384"):
        yield Case("%s bytes of stack for signals" % size, ["kernel", "signalstack", "1000", size], rc=7)
    yield Case("deeper than a path", ["kernel", "deep", "1000", "{tmp}"], rc=7, truth="part", say="|" + NOWHERE, env={"TFHOOK_RUN": ""})
    yield Case("a name that is too long", ["ends", "plain", "1000"], rc=7, truth="part", say=NOWHERE, env={"TFHOOK_RUN": "{tmp}/" + 1200 * "long"})
    yield Case("first process of a namespace", ["ends", "plain", "1000"], rc=7, wrap=["unshare", "-p", "-f", "--mount-proc"])
    yield Case("real time on one processor", ["threads", "flood", "20000", "2"], rc=7, wrap=["chrt", "-f", "1", "taskset", "-c", "0"], needs=["chrt", "taskset"])
    yield Case("frozen and thawed", ["places", "long", "60", "2000"], rc=7, wrap=["/bin/sh", "-c", FREEZES, "sh"], needs=["/sys/fs/cgroup/freezer/tasks"])


def doors():
    yield Case("dlclose of the driver", ["doors", "closes", "500"], rc=7)
    yield Case("constructors call the driver", ["doors", "constructors", "100", "{bin}/libctor.so"], rc=7)
    yield Case("lookups beside dlopen", ["doors", "lookups", "100", "{bin}/libctor.so"], rc=7, quick=True)
    yield Case("lookups beside fork", ["doors", "lookupsforked", "100"], rc=7, truth="killed")
    yield Case("a fork while the exit handler is registered", ["handlers", "forked", "100"], rc=7, quick=True)
    yield Case("static TLS", ["doors", "tls", "1000", "{bin}/libtls.so"], rc=7, quick=True)


def company():
    every = ["ends", "plain", "20000"]
    for name, path in (("jemalloc", library("libjemalloc.so.2")), ("tcmalloc", library("libtcmalloc_minimal.so.4")),
                       ("mimalloc", library("libmimalloc.so.[23]*")), ("faketime", library("faketime/libfaketime.so.1")),
                       ("another interposer", "{bin}/libother.so"), ("a clock that is set", "{bin}/libclock.so")):
        needs = [] if path.startswith("{") else [path]
        env = {"FAKETIME": "+1y"} if name == "faketime" else {}
        yield Case(name + " before", every, rc=7, preload=path + ":{hook}", env=env, needs=needs)
        yield Case(name + " behind", every, rc=7, preload="{hook}:" + path, env=env, needs=needs, quick=name == "another interposer")
        yield Case(name + " and threads", ["threads", "short", "1000"], rc=7, preload="{hook}:" + path, env=env, needs=needs)
        yield Case(name + " and forks", ["forks", "storm", "40"], rc=7, preload=path + ":{hook}", env=env, needs=needs)
    yield Case("preloaded twice", every, rc=7, preload="{hook}:{build}/lib/libtfhook-noexport.so", truth="part", least=20000)
    for compiler in ("gcc", "clang"):
        for kind in ("address", "undefined", "thread"):
            yield Case("%s -fsanitize=%s" % (compiler, kind), ["{tmp}/one", "plain", "1000"], needs=[compiler],
                       before=compiled(compiler, "-fsanitize=" + kind), env={"ASAN_OPTIONS": "verify_asan_link_order=0"})
    yield Case("strace", every, rc=7, wrap=["strace", "-f", "-o", "/dev/null"], needs=["strace"])
    yield Case("gdb", every, wrap=["gdb", "-q", "-batch", "-iex", "set debuginfod enabled off", "-ex", "set confirm off",
                                   "-ex", "set startup-with-shell off", "-ex", "handle SIGALRM nostop noprint", "-ex", "run",
                                   "--args"], needs=["gdb"], truth="part", least=20000,
               ignore=rb"(?m)^(\[.*|Using host.*|process .* new program.*|/.*/ends)\n")
    yield Case("a clock that is not the counter", every, rc=7, preload="{hook}",
               wrap=["unshare", "-m", "/bin/sh", "-c", "mount --bind {src}/tests/torture/hpet "
                     "/sys/devices/system/clocksource/clocksource0/current_clocksource && exec \"$@\"", "sh"])


# Rows of other groups in which each call walks its stack, too.
WALKED = ("plain", "handler that exits", "exit in a handler inside a call", "main thread ends first", "exec beside calls", "coroutines",
          "siglongjmp out of hooks", "storm of forks", "10,000 short threads", "cancellation anywhere", "calls in destructors", "signals at 1 kHz",
          "all descriptors closed", "descriptors by number", "strict seccomp", "seccomp as Docker has it", "not dumpable, as a user", "no new code",
          "threads with 16384 bytes of stack", "8192 bytes of stack for signals", "dlclose of the driver", "constructors call the driver",
          "jemalloc and forks", "gcc -fsanitize=address", "gcc -fsanitize=thread", "address space of 120 MB")


def backtraces(cases):
    for case in cases:
        if case.name in WALKED:
            case.name += ", with backtraces"
            case.env = dict(case.env, TFHOOK_STACKS="copy")
            yield case


def rows():
    for group in (ends, forks, threads, limits, places, failing_files, kernel, doors, company):
        yield from group()


def all_cases():
    yield from rows()
    yield from backtraces(rows())
