#!/usr/bin/env python3
"""What NVML tells of the devices that the job uses is in the recording, and of no others: clocks, why they were lowered,
power, memory, PCIe and NVLink traffic (as boards before and after Blackwell count it), errors, and what an Xid means; from the moment on at which the job sets a filter of system calls no more; a clock that was lowered is a remark where the job waits for its kernels and none
where it does not. A function or a field that is not there costs its rows and nothing else; without a library, switched
off, or before there is a context, nothing is opened. A call that never returns changes neither the job's output nor
its exit status, nor when it ends: at an exit, at an exec, after the main thread has left; a child that is forked while a
call is under way can use the library."""
import json
import os
import subprocess
import sys
import time

BUILD, SRC, TMP = os.environ["TFH_BUILD"], os.environ["TFH_SRC"], os.environ["TFH_TMP"]
TOOL = os.path.join(BUILD, "bin", "tfhook")
SIM = os.path.join(BUILD, "sim")
BEGIN = "import sys; sys.path.insert(0, %r); import ctypes, device, os, threading, time\n" % os.path.join(SRC, "tests", "jobs")
TRAIN = BEGIN + "d = device.Device(%s); until = time.time() + %s\nwhile time.time() < until: d.up(); d.run(%s); d.down()\n"
END = "print('the end'); sys.exit(3)\n"
ROWS = {"gpu.busy", "gpu.memory.busy", "gpu.memory", "gpu.memory.total", "gpu.clock", "gpu.clock.limit", "gpu.memory.clock",
        "gpu.memory.clock.limit", "gpu.clock.lowered.power", "gpu.clock.lowered.heat", "gpu.clock.lowered.setting",
        "gpu.clock.lowered.other", "gpu.power", "gpu.power.limit", "gpu.temperature", "gpu.temperature.slowdown",
        "gpu.pcie.received", "gpu.pcie.sent", "gpu.ecc.corrected", "gpu.ecc.uncorrected", "gpu.processes",
        "gpu.memory.others"}


def start(name, code, libraries=SIM, **env):
    """A job under tfhook run: Python, or a program without arguments."""
    folder = os.path.join(TMP, name)
    env = dict(os.environ, LD_LIBRARY_PATH=libraries, **env)
    command = [code] if code.startswith("/") else [sys.executable, "-c", code]
    job = subprocess.Popen([TOOL, "run", "-q", "-o", folder, "--", *command], env=env, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return folder, job


def finish(name, started, output="the end\n", status=3):
    folder, job = started
    out, err = job.communicate(timeout=60)
    assert (out, job.returncode) == (output, status), (name, out, err, job.returncode)
    return folder


def report(folder, *flags):
    return subprocess.run([TOOL, "report", *flags, folder], capture_output=True, text=True, check=True).stdout


def meters(folder):
    found = json.loads(report(folder, "--json"))["machine"]
    assert all(("device" in m) == m["name"].startswith("gpu.") for m in found), found
    assert all(m["device"] == 0 for m in found if "device" in m), found
    return {m["name"]: m for m in found if "device" in m}


if os.environ.get("TFH_SAN") or not os.path.exists(os.path.join(SIM, "libnvidia-ml.so.1")):
    sys.exit(77)
LAST = os.path.join(BUILD, "tests", "record", "ends_last")
OPENED = "maps = open('/proc/self/maps').read()\nassert ('libnvidia-ml' in maps) == %s, maps\n"
FORKS = ("nvml = ctypes.CDLL('libnvidia-ml.so.1')\nuntil = time.time() + 3\nwhile time.time() < until:\n d.up(); d.down(); time.sleep(0.01); p = os.fork()\n"
         " if not p:\n  import signal; signal.alarm(3); nvml.nvmlInit_v2(); os._exit(0)\n assert os.waitpid(p, 0)[1] == 0\n")
# A filter of system calls on all threads that refuses one that nobody makes.
FILTER = ("import struct; libc = ctypes.CDLL(None, use_errno=True)\n"
          "code = b''.join(struct.pack('HBBI', *i) for i in ((0x20, 0, 0, 0), (0x15, 0, 1, 163), (6, 0, 0, 0x50001), (6, 0, 0, 0x7fff0000)))\n"
          "buffer = ctypes.create_string_buffer(code); program = struct.pack('HxxxxxxQ', 4, ctypes.addressof(buffer))\n"
          "assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.syscall(317, 1, 1, program) == 0\n")


def start_busy(name="busy"):
    return start(name, TRAIN % ("", 5.2, 20) + END, SIM_DEVICES="3", SIM_NVML_LOWERED_POWER="0.6", SIM_NVML_XID="79", SIM_NVML_NVLINK="5")


jobs = {
    "busy": start_busy(),
    "idle": start("idle", TRAIN % ("", 5.2, "0.01); time.sleep(0.02") + END, SIM_NVML_LOWERED_POWER="0.6"),
    "child": start("child", "import os, sys\np = os.fork()\nif p: sys.exit(os.waitstatus_to_exitcode(os.waitpid(p, 0)[1]))\n" + TRAIN % ("", 5.2, 5) + END),
    "filter": start("filter", TRAIN % ("", 2.5, 5) + FILTER + TRAIN[len(BEGIN):].replace("d = device.Device(%s); ", "") % (4, 5) + END),
    "older": start("older", TRAIN % ("", 5.2, 5) + END, os.path.join(SIM, "old") + ":" + SIM, SIM_NVML_LOWERED_HEAT="0.6"),
    "nvlink4": start("nvlink4", TRAIN % ("", 5.2, 5) + END, SIM_NVML_NVLINK="4", SIM_NVML_XID="79", SIM_FAIL="nvmlDeviceGetSupportedEventTypes:*:3"),
    "refused": start("refused", TRAIN % ("", 5.2, 5) + END,
                     SIM_FAIL="nvmlDeviceGetTemperature:*:3; nvmlDeviceGetFieldValues:*:999; nvmlDeviceGetPowerUsage:*:3"),
    "no device": start("no device", TRAIN % ("", 2.3, 5) + OPENED % True + END, SIM_FAIL="nvmlDeviceGetHandleByPciBusId_v2:*:6"),
    "off": start("off", TRAIN % ("", 2.3, 5) + OPENED % False + END, TFHOOK_NVML="0"),
    "short": start("short", TRAIN % ("", 0.2, 5) + OPENED % False + END),
    "no context": start("no context", BEGIN + "time.sleep(2.3)\n" + OPENED % False + END),
}
hangs = {}
for call in ("nvmlInit_v2", "nvmlDeviceGetPowerUsage"):
    env = {"SIM_NVML_HANG": call}
    hangs["exit", call] = start("exit " + call, TRAIN % ("", 2.3, 5) + END, **env)
    hangs["exec", call] = start("exec " + call, TRAIN % ("", 2.3, 5) + "os.execv('/bin/sh', ['sh', '-c', 'echo the end; exit 3'])\n", **env)
    hangs["fork", call] = start("fork " + call, TRAIN % ("", 2.3, 5) + "p = os.fork()\nif not p: os._exit(7)\nassert os.waitpid(p, 0)[1] == 7 << 8\n" + END, **env)
# No simulated GPU: its own threads would keep such a process.
for name in "libcuda.so.1", "libnvidia-ml.so.1":
    os.symlink(os.path.join(BUILD, "tests", "record", "libstuck.so"), os.path.join(TMP, name))
last = [start("last", LAST, TMP), start("last stuck", LAST, TMP, STUCK="1")]
jobs["forks"] = start("forks", TRAIN % ("", 1.2, 5) + FORKS + END, SIM_NVML_DELAY="10ms")
begun = time.time()
folder = {name: finish(name, job) for name, job in jobs.items()}
for (how, call), job in hangs.items():
    finish(how + " " + call, job)
for job in last:
    finish("last", job, status=0)
assert time.time() - begun < 50, "a call that hangs held the end up"

busy = meters(folder["busy"])
LINKS = {"gpu.nvlink.received", "gpu.nvlink.sent"}
assert set(busy) == ROWS | LINKS | {"gpu.xid.events", "gpu.xid.last"}, set(busy) ^ ROWS
assert busy["gpu.busy"]["most"] > 0.2 and busy["gpu.power"]["most"] > 70 and busy["gpu.power.limit"]["mean"] == 700, busy
assert busy["gpu.memory"]["mean"] == 8 << 20 and busy["gpu.memory.total"]["mean"] == 16 << 30, busy["gpu.memory"]
assert busy["gpu.pcie.received"]["mean"] > busy["gpu.pcie.sent"]["mean"] > 0, busy
assert 0.3 < busy["gpu.clock.lowered.power"]["mean"] < 0.9 and busy["gpu.clock.lowered.heat"]["most"] == 0, busy
assert busy["gpu.xid.last"]["most"] == 79 and busy["gpu.xid.events"]["most"] == 1, busy
nvlink4 = meters(folder["nvlink4"])
assert set(nvlink4) == ROWS | LINKS, ("no event is registered that the device does not have", set(nvlink4) ^ ROWS)
for found in busy, nvlink4:  # the simulated host is reached by both
    for way in "received", "sent":
        pcie, nvlink = found["gpu.pcie." + way]["mean"], found["gpu.nvlink." + way]["mean"]
        assert abs(pcie - nvlink) <= 1024 + 0.01 * pcie > 0, (way, pcie, nvlink)
for m in busy.values():
    assert m["line"] and m["least"] <= m["mean"] * (1 + 1e-9) and m["mean"] <= m["most"] * (1 + 1e-9), m
text = report(folder["busy"], "--all")
if "COMPUTE-BOUND" not in text:  # beside so many others it may have waited for a processor: the device's clock held nothing back
    text = report(finish("busy alone", start_busy("busy alone")), "--all")
assert "the clock of GPU 0 was lowered for power in" in text and "of 700 W)" in text.replace("\n    ", " ") and \
    "Xid 79: the device can no longer be reached" in text.replace("\n    ", " "), text
table = report(folder["busy"], "--machine").splitlines()
assert any(line.startswith("gpu0.clock.lowered.power ") for line in table) and all(len(line) <= 80 for line in table), table
assert "lowered" not in report(folder["idle"], "--all") and meters(folder["idle"])["gpu.clock.lowered.power"]["mean"] > 0.3

older = meters(folder["older"])
assert set(older) == ROWS - {"gpu.pcie.received", "gpu.pcie.sent", "gpu.ecc.corrected", "gpu.ecc.uncorrected"}, set(older)
assert older["gpu.clock.lowered.heat"]["mean"] > 0.3, older
missing = {n for n in ROWS if n.startswith(("gpu.pcie", "gpu.ecc", "gpu.temperature", "gpu.power"))}
assert set(meters(folder["refused"])) == ROWS - missing, set(meters(folder["refused"])) ^ (ROWS - missing)
assert set(meters(folder["forks"])) == ROWS
everything = {m["name"]: len(m["line"]) for m in json.loads(report(folder["filter"], "--json"))["machine"]}
assert everything.get("gpu.busy", 0) <= everything["cpu.busy"] - 2, ("the devices are let alone once the job has a filter", everything)
assert set(meters(folder["child"])) == ROWS, "a child that was forked before the first call"
for name in ("no device", "off"):
    assert not meters(folder[name]), name
