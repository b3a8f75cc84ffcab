"""Batch 15: jobs in C, with several devices, streams, threads and processes."""
from stranger import main, native

HEALTHY = ["compute.dense", "compute.dominant-op", "compute.underfilled"]

native("audio", 15, "host", ["host.callback"], 300, functions=("code_block", "on_block"), twin=True, never="gpu-contention",
       note="a host function in the stream codes each block; fix: a thread does")
native("cfd", 15, "host or transfer", ["host.sync", "transfer.d2h", "host.launch"], 23141, functions=("residual_norm", "solve_pressure"),
       twin=True,
       note="the residual is fetched after each sweep; fix: after each tenth. Each sweep is a step; the time steps have 24 to 66")
native("chunks", 15, "transfer", ["transfer.h2d-pinned", "transfer.d2h"], 1000, functions=("main",), twin=True,
       note="a launch in the default stream lets four streams wait for each other; fix: streams that do not wait for it")
native("ddp", 15, "communication", ["communication.transfer"], 200, twin=True,
       sim={"SIM_DEVICES": "2", "SIM_NCCL_GBPS": "3.2", "SIM_CONCURRENT_KERNELS": "2"},
       note="gradients are summed after the backward pass; fix: layer by layer, beside it")
native("graphs", 15, "host", ["host.launch", "host.compile", "host.code"], 800, functions=("make_graph",), twin=True,
       never_first="capture the step in a graph",
       note="a graph is captured for each request; fix: one is kept for each size")
native("halo", 15, "host or communication", ["host.wait", "communication.jitter"], 500, functions=("exchange",),
       sim={"SIM_DEVICES": "2"}, twin=True,
       note="one of two processes waits for the other, which has four times the cells; fix: an even cut")
native("mcprice", 15, "compute", HEALTHY, 300, note="no defect: two streams take turns")
native("md", 15, "host", ["host.code"], 1000, functions=("rebuild_neighbours", "look_in"), twin=True,
       note="every 20th step the host makes lists of neighbours; fix: the device does")
native("pool", 15, "host", ["host.lock"], 2500, functions=("get_tile",), sim={"SIM_CONCURRENT_KERNELS": "4"}, twin=True,
       note="four threads render under one lock; fix: only the table is under it")
native("scan", 15, "transfer", ["transfer.h2d-pageable"], 1238, functions=("copy_group",), twin=True,
       note="row groups are copied from a mapped file; fix: from pinned memory, on two streams")
native("server", 15, "host", ["host.sleep"], 750, functions=("wait_done",), twin=True,
       note="looks every 4 ms whether a batch is done; fix: waits for the event")
native("storm", 15, "host", ["host.checkpoint", "host.code", "host.wait", "host.logging"], 600, functions=("write_fields",),
       twin=True,
       note="from step 370 on each step writes 3 MB and syncs the file; fix: every 20th step does")
native("transcode", 15, "host", ["host.lock", "host.wait", "host.code"], 400,
       functions=("take", "encode_frame", "encoder"), twin=True,
       note="the thread that encodes is slower than the device, so that no output buffer is free; fix: a faster setting")
native("twodev", 15, "host", ["host.sync"], 360, functions=("finish",), sim={"SIM_DEVICES": "2"}, twin=True,
       note="one device is waited for before the other gets its work; fix: both are waited for together")

if __name__ == "__main__":
    main()
