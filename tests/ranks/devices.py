#!/usr/bin/env python3
"""Eight ranks on the eight devices of one machine (simulated), in the opposite order of the devices, two below each PCIe switch: the report, from
the recording and from the host's digest, has each rank's device, bus address and switch, names the late rank by its device, and, where
both ranks below a switch are late, the switch.
timeout: 600
"""
import os
import subprocess
import sys
sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/common")
from common import check, failed, report_of, tool  # noqa: E402

BUILD, SRC, TMP = os.environ["TFH_BUILD"], os.environ["TFH_SRC"], os.environ["TFH_TMP"]
TOOL, DEVICES = f"{BUILD}/bin/tfhook", 8
if os.environ.get("TFH_SAN") or not os.path.exists(f"{BUILD}/sim/libnccl.so.2"):
    sys.exit(77)
if subprocess.run(["unshare", "-m", "mount", "--bind", "/tmp", "/sys/bus/pci/devices"], stderr=subprocess.DEVNULL).returncode:
    print("no right to mount: skipped")
    sys.exit(77)
ENV = {**os.environ, "LD_LIBRARY_PATH": f"{BUILD}/sim", "TFHOOK_CUPTI_LIB": f"{BUILD}/sim/libcupti.so.13", "SIM_DEVICES": str(DEVICES),
       "DEVICES_REVERSED": "1"}
MACHINE = r"""
set -e
mkdir -p tree/bus
for gpu in 1 2 3 4 5 6 7 8; do
  at=pci0000:10/0000:10:01.0/0000:2$(((gpu - 1) / 2)):00.0/0000:30:0$gpu.0
  mkdir -p tree/devices/$at/0000:0$gpu:00.0
  ln -s "$PWD/tree/devices/$at/0000:0$gpu:00.0" tree/bus/0000:0$gpu:00.0
done
mount --bind tree/bus /sys/bus/pci/devices
exec "$@"
"""


def run(name, *late):
    os.makedirs(f"{TMP}/{name}.dir")
    subprocess.run(["unshare", "-m", "sh", "-c", MACHINE, "sh", TOOL, "run", "-q", "-o", f"{TMP}/{name}", sys.executable, f"{SRC}/tests/ranks/launch.py", "torchrun",
                    "1", str(DEVICES), "200", "150", *late], env=ENV, cwd=f"{TMP}/{name}.dir", check=True, stdout=subprocess.DEVNULL)
    said = report_of(f"{TMP}/{name}")
    for r in said["ranks"]:
        gpu = DEVICES - 1 - r["rank"]
        check((r["device"], r["bus"], r["pcie_switch"]) == (gpu, "0000:%02d:00.0" % (gpu + 1), "0000:2%d:00.0" % (gpu // 2)), name, r)
    return said


said = run("one", "late=5:0:30")
check([r["rank"] for r in said["ranks"] if r["straggler"]][-1:] == [5] and said["verdict"]["cause"] == "host.sleep", "late", said["ranks"])
text = " ".join(tool("report", f"{TMP}/one").split())
check("this is rank 5 of 8, on GPU 2 (0000:03:00.0)" in text, "text", text[:500])
text = tool("report", "--ranks", f"{TMP}/one")
check(any(line.split()[0] == "5" and " gpu2 " in line for line in text.splitlines() if line.split()), "table", text)
run("two", "late=4:0:30", "late=5:0:30")
# One host's digest under the name that it has among others'.
subprocess.run([TOOL, "digest", f"{TMP}/two"], stdout=subprocess.DEVNULL, check=True)
os.rename(f"{TMP}/two/digest.tft", f"{TMP}/two/here.digest.tft")
said = report_of(f"{TMP}/two", "--ranks")
check([r["bus"] for r in said["ranks"]] == ["0000:%02d:00.0" % (DEVICES - r) for r in range(DEVICES)], "bus", said["ranks"])
slow = [(f["what"], f.get("pcie_switch"), f["ranks"]) for f in said["findings"] if f["what"] != "rare-steps" and f["cause"] != "host.cpu-contention"]
check(slow == [("slow-pcie-switch", "0000:21:00.0", 2)], "switch", said["findings"])
sys.exit(failed())
