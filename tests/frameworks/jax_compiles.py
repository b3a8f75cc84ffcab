#!/usr/bin/env python3
"""What must hold: of real JAX on the processor, a jitted function that gets a new shape in every step is host.compile at the program's
line; with one shape it is not. A device beside it shows the steps, as JAX makes no call that is recorded.

timeout: 600

Where the environment `jax` exists: scripts/python-env jax makes it (100 MB)."""
import json
import os
import subprocess
import sys

BUILD, SRC, TMP = os.environ["TFH_BUILD"], os.environ["TFH_SRC"], os.environ["TFH_TMP"]
TOOL = os.path.join(BUILD, "bin", "tfhook")
PYTHON = os.path.join(os.environ.get("TFH_VENVS") or os.path.join(SRC, "build", "venv"), "jax", "bin", "python")
JOB = """import sys; sys.path.insert(0, sys.argv[1])
import device, jax, jax.numpy as jnp
@jax.jit
def loss(x, w):
    for _ in range(6):
        x = jnp.tanh(x @ w) * 0.5 + jnp.sin(x)
    return x.sum()
d, w = device.Device(), jnp.ones((64, 64))
for i in range(30):
    d.up(); d.train(2); d.down()
    loss(jnp.ones((16 + i * int(sys.argv[2]), 64)), w).block_until_ready()
"""
LINE = 11

if os.environ.get("TFH_SAN") or not os.path.exists(PYTHON):
    print("no environment `jax`: scripts/python-env jax makes it")
    sys.exit(77)
script = os.path.join(TMP, "shapes.py")
with open(script, "w") as f:
    f.write(JOB)
for more in ("1", "0"):
    out = os.path.join(TMP, "more" + more)
    subprocess.run([TOOL, "run", "-q", "-o", out, "--", PYTHON, script, os.path.join(SRC, "tests", "jobs"), more], check=True,
                   env=dict(os.environ, LD_LIBRARY_PATH=os.path.join(BUILD, "sim"), JAX_PLATFORMS="cpu"))
    verdict = json.loads(subprocess.run([TOOL, "report", "--json", out], stdout=subprocess.PIPE, text=True).stdout)["verdict"]
    place = verdict["place"] or {}
    print(more, verdict["class"], verdict["cause"], place.get("file"), place.get("line"))
    assert (verdict["cause"] == "host.compile") == (more == "1"), verdict
    if more == "1":
        assert (os.path.basename(place["file"]), place["line"]) == ("shapes.py", LINE), place
