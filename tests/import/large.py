#!/usr/bin/env python3
"""A trace of 450,000 events, as gzip: read with less than 300 MB of memory, in a time that is printed (it never fails the test)."""
import gzip
import os
import sys
import time

BUILD, TMP = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
EVENTS = 450000
HOST = ('{"ph":"X","cat":"cpu_op","name":"aten::op%d","pid":1,"tid":1,"ts":%d.125,"dur":9.5,"args":{"External id":%d,'
        '"Input Dims":[[128,3,224,224],[]],"Input type":["float",""],"Call stack":"train.py(54): <module>;model.py(7): forward"}},\n')
CALL = ('{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":%d.5,"dur":4.25,'
        '"args":{"External id":%d,"cbid":211,"correlation":%d}},\n')
KERNEL = ('{"ph":"X","cat":"kernel","name":"void gemm_kernel_%d(float*, float const*, int)","pid":0,"tid":7,"ts":%d.0,"dur":8.75,'
          '"args":{"External id":%d,"queued":0,"device":0,"context":1,"stream":7,"correlation":%d,"registers per thread":38,'
          '"shared memory":0,"blocks per SM":0.6,"warps per SM":5.0,"grid":[50,1,1],"block":[256,1,1],"est. achieved occupancy %%":8}},\n')
path = TMP + "/large.json.gz"
with gzip.open(path, "wt", compresslevel=1) as f:
    f.write('{"schemaVersion":1,"traceEvents":[\n')
    for i in range(1, EVENTS // 3 + 1):
        f.write(HOST % (i % 50, i * 10, i) + CALL % (i * 10, i, i) + KERNEL % (i % 20, i * 10 + 6, i, i))
    f.write("{}]}")
start = time.monotonic()
pid = os.spawnv(os.P_NOWAIT, BUILD + "/tests/import/dump", ["dump", "-s", path])
_, status, use = os.wait4(pid, 0)
print("%d events: %.2f s, %.2f s of processor, %d MB" % (EVENTS, time.monotonic() - start, use.ru_utime + use.ru_stime,
                                                        use.ru_maxrss // 1024))
assert status == 0
sanitized = os.environ.get("TFH_SAN")
assert sanitized or use.ru_maxrss < 300 * 1024
sys.exit(0)
