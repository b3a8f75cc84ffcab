#!/usr/bin/env python3
"""Work that need not be is called by its name: memory that is sent in every step from where it was, or is fetched again, or is sent
back to the device. A job that serves has idle time and no gain without it; one that may serve has a gain only if it does not; a
job whose batches come slowly in turn is none of them."""
import json
import os
import subprocess
import sys

build, tmp = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
env = {**os.environ, "LD_LIBRARY_PATH": f"{build}/sim", "TFHOOK_CUPTI_LIB": f"{build}/sim/libcupti.so.13"}
jobs = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "jobs")
START = """
import ctypes, os, random, socket, sys, threading, time
sys.path.insert(0, %r)
from device import Device
d = Device(16)
n = ctypes.c_size_t(4 << 20)
own = [ctypes.create_string_buffer(n.value) for _ in range(50)]
def up(host): d.call("cuMemcpyHtoDAsync_v2", d.memory, host, n, d.stream)
def down(host): d.call("cuMemcpyDtoHAsync_v2", host, d.memory, n, d.stream); d.sync()
def compute(): d.run(0.3); d.run(0.4, "backward"); d.run(0.1, "update")
""" % jobs
PAIR = """
a, b = socket.socketpair()
def clients():
    rng = random.Random(7)
    for i in range(50):
        time.sleep(%s)
        b.sendall(b"x" * 64)
        b.recv(64)
threading.Thread(target=clients, daemon=True).start()
for i in range(50):
    a.recv(64); up(own[i]); d.run(0.5); down(own[i - 1]); a.sendall(b"y" * 64)
"""
JOBS = {  # a job, words of its verdict, words that are not in it
    "constant": ("for i in range(50): d.up(5000 + 8 * i); up(own[0]); compute(); d.sync()", "sent from the same addresses", "back to the device"),
    "tables": ("for i in range(50): [up(own[k]) for k in range(3)]; up(own[9 + i % 40]); compute(); d.sync()",
               "sent from the same addresses, 12.6 MB", "back to the device"),
    "fresh": ("for i in range(50): up(own[i]); compute(); d.sync()", "copies block", " again"),
    "weights": ("for i in range(50): d.up(5000); compute(); down(own[i])", "same device memory is fetched", "back to the device"),
    "state": ("for i in range(50): up(own[0]); compute(); down(own[0])", "sent back to the device", " again"),
    "requests": (PAIR % "rng.expovariate(1 / 0.02)", "none if it waits for requests", "x; run "),
    "loader": (PAIR % "0.02", " gain ", "requests"),
    "bursts": (PAIR % "0.04 * (i % 2)", " gain ", "requests"),  # as of two workers
    "server": ("""
import socketserver
class Answer(socketserver.BaseRequestHandler):
    def handle(self): self.request.recv(64); up(own[0]); d.run(0.5); down(own[1]); self.request.sendall(b"y" * 64)
with socketserver.TCPServer(("127.0.0.1", 0), Answer) as s:
    def clients():
        for i in range(50):
            time.sleep(0.02)
            with socket.create_connection(s.server_address) as c: c.sendall(b"x" * 64); c.recv(64)
        s.shutdown()
    threading.Thread(target=clients, daemon=True).start()
    s.serve_forever(poll_interval=5)
""", "waits for the next request", " gain "),
}
bad = 0
for name, (body, said, not_said) in JOBS.items():
    out, path = f"{tmp}/{name}", f"{tmp}/{name}.py"
    with open(path, "w") as f:
        f.write(START + body + "\n")
    subprocess.run([f"{build}/bin/tfhook", "run", "-q", "-o", out, sys.executable, path], env=env, check=True)
    text = subprocess.run([f"{build}/bin/tfhook", "report", out], stdout=subprocess.PIPE, check=True, text=True).stdout
    whole = subprocess.run([f"{build}/bin/tfhook", "report", "--all", out], stdout=subprocess.PIPE, check=True, text=True).stdout
    verdict = " ".join(f"{text.split('WHERE THE RUN WENT')[0]} {whole.split('WHERE THE RUN WENT')[0]}".split())
    if said not in verdict or not_said in verdict or "-BOUND" not in verdict:
        bad += 1
        print("WRONG", name, repr(said), repr(not_said), text)
    json.loads(subprocess.run([f"{build}/bin/tfhook", "report", "--json", out], stdout=subprocess.PIPE, check=True).stdout)
sys.exit(bad != 0)
