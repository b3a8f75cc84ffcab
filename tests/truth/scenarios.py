"""The table of scenarios: small jobs with one defect of a chosen size, each with its twin without the defect, and what must
come out. Sizes are drawn from ranges by the seed, so nothing can be tuned to them.

A scenario's `job` and `twin` are the arguments of one of the programs (PROGRAMS in truth.py), with {expressions} over what
was drawn. `!` marks the defect in a plan of libtrain.c. The twin is the job without what `remove` takes away, so its own
clock says what the prediction must be; where nothing but computing is in the way, the twin has computing only.
"""
import collections
import random
import re

FIELDS = dict(
    program="train", job="", twin="", draw={}, steps=60, env={},
    cls=None,          # the class that the verdict must have
    causes=(),         # one of these must be its cause
    also=(),           # classes that must be in `also`; the verdict may as well be one of them
    remove=None,       # what the twin lacks; None: nothing to predict, and `why` says why
    why="",
    blocking="",       # what of the truth log blocks, besides what is marked: H2D, D2H, D2D, P2P, rendezvous
    stage=(),          # names of the stage that may be guilty
    kernel="",         # kernels[0]
    advice="",         # regular expression that an entry of the advice must fit
    segments={},       # segments that must be found, and how many (None: any)
    told={},           # other fields of the report, by path, and what they must be
    remark="",         # regular expression that a note in the report must fit
    besides="",        # cause of what recurs beside the steps and may take longer than they do: theirs must be right all the same
    every=0, special="",  # every so many steps are of another class
    others={},         # class of other ranks
    tier="A",
    gpu=False,         # runs unchanged on a real GPU
)
Scenario = collections.namedtuple("Scenario", ["name", "text"] + list(FIELDS))
TABLE = []


def add(name, text, **given):
    TABLE.append(Scenario(name, text, **dict(FIELDS, **given)))


INPUT, TRANSFER, COMPUTE = "input-bound", "transfer-bound", "compute-bound"
HOST, COMMUNICATION = "host-bound", "communication-bound"
NOTHING_ELSE = "everything-but-compute"
# Causes of a host that does something of its own, when no pipeline is visible that tells what is between two batches.
OWN = ("host.callback", "host.python", "host.unknown", "host.code", "host.sleep", "host.lock")
LOADER = ("input.unknown", "input.generator")

# ---- the seven cases of the classic walk-through of the TensorFlow profiler ------------------------------------------
add("classic-healthy", "batches are ready, a small copy, long kernels", cls=COMPUTE, gpu=True,
    draw=dict(k=(12.0, 20.0), get=(2.0, 5.0), mb=(0.1, 0.5)), remove=NOTHING_ELSE,
    job="{n} 'get:{get}:4 h2d:{mb*1e6:.0f}:pinned k:{k/4}:2:spin_gemm k:{k/4}:2:spin_conv lag:2'",
    twin="{n} 'k:{k/4}:4 lag:2'")
add("classic-small-batch", "over half of the step is launching small kernels", cls=HOST, causes=["host.launch"], steps=40,
    draw=dict(kernels=(500, 900), k=(0.002, 0.004)), env={"SIM_LAUNCH_COST": "12us"}, remove="launch",
    job="{n} 'get:0.5:4 h2d:1e5:pinned k:0.5:1:spin_gemm k:{k}:{kernels}! sync'",
    twin="{n} 'get:0.5:4 h2d:1e5:pinned k:{0.5+k*kernels} sync'")
add("classic-network-input", "three quarters of the step wait for a slow file", program="feed", cls=INPUT,
    causes=["input.read", "input.remote"], stage=["TFRecord", "TFRecordV2"], remove="input", gpu=True,
    draw=dict(k=(8.0, 10.0), f=(2.8, 3.4)),
    job="--plan 'h2d:2e5:pinned k:{k} sync' --source records --source-ms {k*f} --defect",
    twin="--plan 'h2d:2e5:pinned k:{k} sync' --source slices --prefetch 4 --defect")
add("classic-preprocessing", "the processor is busy preparing, the device a third of the time", program="feed", cls=INPUT,
    causes=["input.map", "input.cpu"], stage=["Map", "ParallelMap", "ParallelMapV2"], remove="input", gpu=True,
    draw=dict(k=(8.0, 10.0), f=(1.8, 2.4)),
    job="--plan 'h2d:2e5:pinned k:{k} sync' --map {k*f} --busy --defect",
    twin="--plan 'h2d:2e5:pinned k:{k} sync' --prefetch 4 --defect")
add("classic-large-copy", "a copy to the device ten times as large as needed", cls=TRANSFER,
    causes=["transfer.h2d-pageable"], remove="transfer", blocking="H2D", gpu=True,
    draw=dict(k=(5.0, 8.0), mb=(15.0, 25.0)),
    job="{n} 'get:1:4 h2d:{mb*1e6:.0f}:pageable! k:{k} sync'", twin="{n} 'get:1:4 k:{k} sync'")
add("classic-one-op", "one op takes most of the computing", cls=COMPUTE, causes=["compute.dominant-op"], kernel="spin_conv",
    advice="spin_conv", remove=NOTHING_ELSE, gpu=True, draw=dict(k=(10.0, 16.0), f=(0.08, 0.12)),
    job="{n} 'get:1:4 k:{k*f}:1:spin_gemm k:{k}:1:spin_conv k:{k*f}:1:spin_norm k:{k*f/2}:1:spin_loss lag:2'",
    twin="{n} 'k:{k*(1+2.5*f)} lag:2'")
add("classic-callback", "heavy work on the host after every step", cls=HOST, causes=["host.callback"], remove="host", gpu=True,
    draw=dict(k=(5.0, 8.0), ms=(6.0, 12.0)),
    job="{n} 'get:0.5:4 h2d:1e5:pinned k:{k} sync sleep:{ms}!'", twin="{n} 'get:0.5:4 h2d:1e5:pinned k:{k} sync'")

# ---- input -----------------------------------------------------------------------------------------------------------
add("map-sleep", "the dataset's map sleeps", program="feed", cls=INPUT, causes=["input.map"], gpu=True,
    stage=["Map", "ParallelMap", "ParallelMapV2"], remove="input", draw=dict(k=(8.0, 12.0), ms=(8.0, 16.0)),
    job="--plan 'h2d:1e5:pinned k:{k} sync' --map {ms} --defect", twin="--plan 'h2d:1e5:pinned k:{k} sync' --prefetch 4 --defect")
for depth, f in ((0, (0.8, 1.5)), (2, (1.5, 2.5)), (16, (1.5, 2.5))):
    add("slow-reader-%d" % depth, "a slow file, %s" % ("%d batches ahead" % depth if depth else "nothing ahead"),
        program="feed", cls=INPUT, causes=["input.read"], stage=["TFRecord", "TFRecordV2"], remove="input", gpu=True,
        draw=dict(k=(8.0, 12.0), f=f),
        job="--plan 'h2d:1e5:pinned k:{k} sync' --source records --source-ms {k*f} --defect --prefetch %d" % depth,
        twin="--plan 'h2d:1e5:pinned k:{k} sync' --source slices --prefetch 4 --defect")
add("slow-generator", "a Python generator is slow", program="feed", cls=INPUT, causes=["input.generator"], gpu=True,
    stage=["Generator", "FlatMap"], remove="input", draw=dict(k=(8.0, 12.0), ms=(12.0, 18.0)),
    job="--plan 'h2d:1e5:pinned k:{k} sync' --source generator --source-ms {ms} --defect",
    twin="--plan 'h2d:1e5:pinned k:{k} sync' --prefetch 4 --defect")
add("own-loader", "a loader of the job's own is slow, two batches ahead", cls=INPUT, causes=LOADER, remove="input",
    draw=dict(k=(4.0, 7.0), f=(1.5, 2.5)), gpu=True,
    job="{n} 'get:{k*f}:2! h2d:1e5:pinned k:{k} sync'", twin="{n} 'get:0.2:4 h2d:1e5:pinned k:{k} sync'")
add("steps-per-execution", "eight steps in one call of a TensorFlow function, a slow map", program="feed", cls=INPUT,
    causes=["input.map"], stage=["Map", "ParallelMap", "ParallelMapV2"], remove="input", steps=160, gpu=True,
    draw=dict(k=(6.0, 9.0), ms=(8.0, 14.0)),
    job="--steps {n} --plan 'h2d:1e5:pinned k:{k} sync' --map {ms} --execution 8 --defect",
    twin="--steps {n} --plan 'h2d:1e5:pinned k:{k} sync' --execution 8 --prefetch 4 --defect")
add("accumulation", "gradients of four batches are gathered before each update; the loader is slow", cls=INPUT, causes=LOADER,
    remove="input", steps=80, gpu=True, told={"steps.batches_per_update": 4}, draw=dict(k=(3.0, 5.0), ms=(5.0, 8.0)),
    job="{n} 'get:{ms}! h2d:1e5:pinned k:{k}:2 k:{k/8}:6:spin_norm@4 sync'",
    twin="{n} 'get:0 h2d:1e5:pinned k:{k}:2 k:{k/8}:6:spin_norm@4 sync'")
add("one-op-and-input", "a slow loader, and one op takes most of the computing", cls=INPUT, causes=LOADER, kernel="spin_conv",
    advice="spin_conv", remove="input", gpu=True, draw=dict(k=(4.0, 6.0), f=(0.08, 0.12), ms=(6.0, 9.0)),
    job="{n} 'get:{ms}! h2d:1e4:pinned k:{k*f}:1:spin_gemm k:{k}:1:spin_conv k:{k*f}:1:spin_norm k:{k*f/2}:1:spin_loss sync'",
    twin="{n} 'get:0 h2d:1e4:pinned k:{k*f}:1:spin_gemm k:{k}:1:spin_conv k:{k*f}:1:spin_norm k:{k*f/2}:1:spin_loss sync'")
add("hidden-input", "the host is three steps ahead; a slow get-next is hidden", cls=COMPUTE, remove="input", gpu=True,
    draw=dict(k=(10.0, 14.0), f=(0.4, 0.7)),
    job="{n} 'get:{k*f} h2d:1e5:pinned k:{k} lag:3'", twin="{n} 'get:0.1 h2d:1e5:pinned k:{k} lag:3'")
add("unseen-loader", "a loader that nobody can see sleeps before every step", cls=HOST, causes=OWN, remove="host",
    draw=dict(k=(5.0, 8.0), ms=(6.0, 12.0)), gpu=True,
    job="{n} 'sleep:{ms}! h2d:1e5:pinned k:{k} sync'", twin="{n} 'h2d:1e5:pinned k:{k} sync'")

# ---- copies ----------------------------------------------------------------------------------------------------------
for memory in ("pageable", "pinned"):
    add("h2d-" + memory, "large %s copies to the device" % memory, cls=TRANSFER, causes=["transfer.h2d-" + memory],
        remove="transfer", blocking="H2D", gpu=True, draw=dict(k=(5.0, 8.0), mb=(20.0, 40.0)),
        job="{n} 'h2d:{mb*1e6:.0f}:%s! k:{k} sync'" % memory, twin="{n} 'k:{k} sync'")
add("tiny-copies", "thousands of tiny copies", cls=TRANSFER, causes=["transfer.small-copies"], remove="transfer",
    blocking="H2D", gpu=True, steps=40, draw=dict(k=(5.0, 8.0), copies=(600, 1200), bytes=(256, 4096)),
    job="{n} 'h2d:{bytes}:pinned:async:{copies}! k:{k} sync'", twin="{n} 'k:{k} sync'")
add("fetch-results", "results are fetched with blocking copies", cls=TRANSFER, causes=["transfer.d2h"], remove="transfer",
    blocking="D2H", gpu=True, draw=dict(k=(5.0, 8.0), mb=(10.0, 25.0)),
    job="{n} 'h2d:1e4:pinned k:{k} d2h:{mb*1e6:.0f}:pageable:sync!'", twin="{n} 'h2d:64:pinned k:{k} d2h:64:pageable:sync'")
add("device-copies", "large copies inside the device", cls=TRANSFER, causes=["transfer.d2d"], remove="transfer",
    blocking="D2D", draw=dict(k=(4.0, 6.0), mb=(8.0, 16.0)), env={"SIM_D2D_GBPS": "2"},
    job="{n} 'h2d:1e4:pinned k:{k/2} d2d:{mb*1e6:.0f} k:{k/2} sync'", twin="{n} 'k:{k/2}:2 sync'")
add("peer-copies", "copies from device to device", cls=TRANSFER, causes=["transfer.p2p"], remove="transfer", blocking="P2P",
    env={"SIM_DEVICES": "2"}, draw=dict(k=(4.0, 6.0), mb=(15.0, 25.0)),
    job="{n} 'k:{k/2} p2p:{mb*1e6:.0f} k:{k/2} sync dev:1 k:0.1 sync'", twin="{n} 'k:{k/2}:2 sync dev:1 k:0.1 sync'")
add("hidden-copies", "large copies in another stream, hidden behind computing", cls=COMPUTE, remove="transfer", gpu=True,
    draw=dict(k=(12.0, 18.0), f=(0.3, 0.6)),
    job="{n} 'on:2 h2d:{k*f*4e6:.0f}:pinned on:0 k:{k} lag:2'", twin="{n} 'on:2 h2d:64:pinned on:0 k:{k} lag:2'")
add("device-prefetch", "the next batch goes to the device while this one is computed", cls=COMPUTE, remove=NOTHING_ELSE,
    gpu=True, draw=dict(k=(12.0, 18.0), f=(0.3, 0.6)),
    job="{n} 'get:1:4 on:1 after:0 k:{k} note:1 on:2 h2d:{k*f*4e6:.0f}:pinned note:0 on:1 lag:2'", twin="{n} 'on:1 k:{k} lag:2'")
add("device-prefetch-late", "the same, but the copy takes longer than the computing", cls=TRANSFER,
    causes=["transfer.h2d-pinned"], remove="transfer", blocking="H2D", gpu=True, draw=dict(k=(5.0, 7.0), f=(1.8, 2.6)),
    job="{n} 'get:0.5:4 on:1 after:0 k:{k} note:1 on:2 h2d:{k*f*4e6:.0f}:pinned note:0 on:1 lag:2'",
    twin="{n} 'get:0.5:4 on:1 k:{k} lag:2'")
add("managed", "managed memory moves to the device and back", cls=TRANSFER, causes=["transfer.managed"], remove="transfer",
    blocking="H2D D2H", draw=dict(k=(4.0, 6.0), mb=(10.0, 20.0)),
    job="{n} 'h2d:1e4:pinned managed:{mb*1e6:.0f} k:{k} sync'", twin="{n} 'h2d:64:pinned k:{k} sync'")
add("fallback", "an op between device ops runs on the processor", cls=TRANSFER, causes=["transfer.fallback"],
    remove="transfer", blocking="H2D D2H", gpu=True,
    draw=dict(k=(3.0, 5.0), mb=(4.0, 8.0), ms=(0.5, 1.0)),
    job="{n} 'get:0.2:4 h2d:1e4:pinned k:{k} d2h:{mb*1e6:.0f}:pageable:sync! busy:{ms}! h2d:{mb*1e6:.0f}:pageable:sync! k:{k} sync'",
    twin="{n} 'get:0.2:4 h2d:64:pinned k:{k}:2 sync'")

# ---- kernels and launches --------------------------------------------------------------------------------------------
add("many-kernels", "thousands of kernels of 5 us, each launch takes longer", cls=HOST, causes=["host.launch"], steps=30,
    remove="launch", env={"SIM_LAUNCH_COST": "12us"}, draw=dict(kernels=(1000, 1500), k=(0.004, 0.006)),
    job="{n} 'h2d:1e4:pinned k:1:1:spin_gemm k:{k}:{kernels}! sync'", twin="{n} 'h2d:1e4:pinned k:{1+k*kernels} sync'")
add("one-kernel", "one long kernel of the same computing", cls=COMPUTE, remove=NOTHING_ELSE, gpu=True,
    draw=dict(k=(12.0, 20.0)), job="{n} 'h2d:1e4:pinned k:{k} sync'", twin="{n} 'k:{k} lag:3'")
add("graph-small", "a graph of thousands of kernels of 5 us", cls=COMPUTE, steps=40, gpu=True, remove=NOTHING_ELSE,
    draw=dict(kernels=(1500, 2500), k=(0.005, 0.008)),
    job="{n} 'h2d:1e4:pinned graph:{k}:{kernels} lag:2'", twin="{n} 'k:{k*kernels} lag:3'")
add("graph-long", "a graph of a few long kernels", cls=COMPUTE, remove=NOTHING_ELSE, gpu=True,
    draw=dict(k=(3.0, 5.0)), job="{n} 'h2d:1e4:pinned graph:{k}:4 lag:2'", twin="{n} 'k:{k}:4 lag:3'")
add("graph-input", "a graph waits for its batch", cls=INPUT, causes=LOADER, remove="input", gpu=True,
    draw=dict(k=(0.5, 0.8), ms=(6.0, 10.0)),
    job="{n} 'get:{ms}! h2d:1e4:pinned graph:{k}:10 sync'", twin="{n} 'get:0 h2d:1e4:pinned graph:{k}:10 sync'")
add("queue-full", "so many kernels ahead that the queue is full; launches block", cls=COMPUTE, remove=NOTHING_ELSE, steps=30,
    gpu=True, draw=dict(kernels=(500, 700), k=(0.025, 0.035)),
    job="{n} 'h2d:1e4:pinned k:{k}:{kernels} lag:6'", twin="{n} 'k:{k*kernels} lag:6'")
add("fine-grained", "a Python client launches hundreds of tiny kernels", program="client", cls=HOST,
    causes=["host.launch", "host.python"], steps=40, remove="launch", draw=dict(kernels=(500, 800), k=(2, 4)), gpu=True,
    job="--h2d 10000 --launches {kernels} --spin {k} --sync stream --stream own --steps {n}",
    twin="--h2d 10000 --launches 1 --spin {k*kernels} --sync stream --stream own --steps {n}")
add("wait-each", "the host waits after every one of many kernels", cls=HOST, causes=["host.sync", "host.launch"], steps=40,
    remove="sync", gpu=True, draw=dict(k=(0.04, 0.07)),
    job="{n} 'h2d:1e4:pinned " + "k:{k} sync " * 28 + "'", twin="{n} 'h2d:1e4:pinned k:{k}:28 sync'")

# ---- host ------------------------------------------------------------------------------------------------------------
add("callback-each", "a callback sleeps after every step", cls=HOST, causes=["host.callback"], remove="host", gpu=True,
    draw=dict(k=(6.0, 9.0), f=(0.4, 1.2)),
    job="{n} 'get:0.5:4 h2d:1e5:pinned k:{k} sync sleep:{k*f}!'", twin="{n} 'get:0.5:4 h2d:1e5:pinned k:{k} sync'")
add("callback-rare", "a callback sleeps after every n-th step", cls=COMPUTE, steps=260, gpu=True,
    remove=None, why="removing host code also removes the short pauses of the other steps", every="{every}", special=HOST,
    remark="every .*step", draw=dict(k=(8.0, 10.0), ms=(15.0, 22.0), every=(40, 50)),
    job="{n} 'get:0.5:4 h2d:1e5:pinned k:{k} sync sleep:{ms}@{every}!'", twin="{n} 'get:0.5:4 h2d:1e5:pinned k:{k} sync'")
add("logging", "every n-th step fetches metrics and logs them", cls=COMPUTE, steps=200, gpu=True,
    remove=None, why="removing host code also removes the short pauses of the other steps", every="{every}", special=HOST,
    remark="every .*step", draw=dict(k=(8.0, 10.0), ms=(8.0, 12.0), every=(30, 40)),
    job="{n} 'get:0.5:4 h2d:1e5:pinned k:{k} sync d2h:256:pageable:sync@{every} busy:{ms}@{every}!'", twin="")
add("checkpoint", "every n-th step results are fetched and written", cls=COMPUTE, steps=150, besides="host.checkpoint",
    remove=None, why="checkpoints are not training steps, so no step's time contains any of them", gpu=True,
    segments={"checkpoint": "{n//every}"}, draw=dict(k=(6.0, 8.0), mb=(40.0, 60.0), every=(20, 30)),
    job="{n} 'get:0.5:4 h2d:1e5:pinned k:{k} sync d2h:{mb*1e6:.0f}:pageable:sync@{every}! write:{mb*1e6:.0f}@{every}!'",
    twin="{n} 'get:0.5:4 h2d:1e5:pinned k:{k} sync'")
add("allocations", "memory is allocated and freed in every step", cls=HOST, causes=["host.alloc"], remove="host",
    env={"SIM_ALLOC_COST": "200us"}, draw=dict(k=(5.0, 8.0), times=(25, 50)),
    job="{n} 'h2d:1e4:pinned alloc:1e6:{times}! k:{k} sync'", twin="{n} 'h2d:1e4:pinned k:{k} sync'")
add("allocation-retries", "an allocation fails, memory is freed, and the allocation is tried again", cls=HOST, causes=["host.alloc"],
    remove="host", env={"SIM_ALLOC_COST": "2ms", "SIM_TOTAL_MEMORY_MB": "1024"}, draw=dict(k=(5.0, 8.0), mb=(600, 800)),
    job="{n} 'h2d:1e4:pinned retry:{mb*1000000}! k:{k} sync'", twin="{n} 'h2d:1e4:pinned k:{k} sync'")
add("recompiles", "a module is loaded again every n-th step", cls=COMPUTE, steps=150, besides="host.compile", env={"SIM_MODULE_LOAD": "60ms"},
    remove=None, why="steps that compile are compile segments, so no training step's time contains any of that",
    segments={"compile": "{n//every}"}, draw=dict(k=(6.0, 9.0), every=(20, 30)),
    job="{n} 'get:0.5:4 h2d:1e5:pinned k:{k} lag:1 module@{every}!'", twin="{n} 'get:0.5:4 h2d:1e5:pinned k:{k} lag:1'")
add("module-loading", "loading a module delays the first step", cls=COMPUTE, env={"SIM_MODULE_LOAD": "700ms"},
    segments={"startup": None}, remove=NOTHING_ELSE, draw=dict(k=(10.0, 14.0)),
    job="{n} 'get:0.5:4 h2d:1e4:pinned k:{k} lag:2'", twin="{n} 'k:{k} lag:3'")
add("long-start", "seconds go by before the first step", cls=COMPUTE, segments={"startup": None}, remove=NOTHING_ELSE,
    gpu=True, draw=dict(k=(10.0, 14.0), ms=(1500, 2500)),
    job="{n} 'get:0.5:4 h2d:1e4:pinned k:{k} lag:2' {ms}", twin="{n} 'k:{k} lag:3'")
add("evaluation", "another pipeline's batches are evaluated between epochs", program="feed", cls=COMPUTE, steps=120,
    segments={"eval": 2}, remove=None, why="evaluations are not training steps", gpu=True, draw=dict(k=(10.0, 14.0)),
    job="--steps {n} --plan 'h2d:1e5:pinned k:{k} lag:2' --prefetch 4 --eval 40",
    twin="--steps {n} --plan 'h2d:1e5:pinned k:{k} lag:2' --prefetch 4")

# ---- several devices, several ranks ----------------------------------------------------------------------------------
add("two-gpus-one-idle", "two devices, the second with next to nothing to do", cls=COMPUTE, env={"SIM_DEVICES": "2"},
    remove=NOTHING_ELSE, draw=dict(k=(10.0, 14.0)),
    job="{n} 'get:0.5:4 h2d:1e5:pinned k:{k} dev:1 k:0.2 sync dev:0 sync'", twin="{n} 'k:{k} lag:3'")
add("two-gpus-input", "two devices share each batch and wait for it", cls=INPUT, causes=LOADER, env={"SIM_DEVICES": "2"},
    remove="input", draw=dict(k=(6.0, 8.0), f=(0.8, 1.4)),
    job="{n} 'get:{k*f}! h2d:1e5:pinned k:{k} dev:1 h2d:1e5:pinned k:{k*0.8} sync dev:0 sync'",
    twin="{n} 'get:0 h2d:1e5:pinned k:{k} dev:1 h2d:1e5:pinned k:{k*0.8} sync dev:0 sync'")
add("late-rank", "one of two ranks comes late to every gradient exchange", program="ranks", cls=HOST, causes=OWN + LOADER,
    remove="host", draw=dict(k=(5.0, 8.0), ms=(5.0, 9.0), c=(1.0, 1.5)), others={"0": COMMUNICATION},
    job="{n} 'h2d:1e4:pinned k:{k} coll:{c} sync' 'sleep:{ms}! h2d:1e4:pinned k:{k} coll:{c} sync'",
    twin="{n} 'h2d:1e4:pinned k:{k} coll:{c} sync' 'h2d:1e4:pinned k:{k} coll:{c} sync'")
add("late-input", "the loader of one of two ranks is slow, and the other waits for it in every gradient exchange",
    program="ranks", cls=INPUT, causes=LOADER, remove="input", draw=dict(k=(5.0, 8.0), ms=(5.0, 9.0), c=(1.0, 1.5)),
    others={"0": COMMUNICATION},
    job="{n} 'get:0.2:4 h2d:1e4:pinned k:{k} coll:{c} sync' 'get:{ms}! h2d:1e4:pinned k:{k} coll:{c} sync'",
    twin="{n} 'get:0.2:4 h2d:1e4:pinned k:{k} coll:{c} sync' 'get:0.2:4 h2d:1e4:pinned k:{k} coll:{c} sync'")
add("exchange", "exchanging gradients takes as long as computing them", program="ranks", cls=COMMUNICATION,
    causes=["communication.transfer"], blocking="rendezvous", remove="communication", draw=dict(k=(5.0, 8.0), c=(5.0, 9.0)),
    job="{n} 'h2d:1e4:pinned k:{k} coll:{c} sync' 'h2d:1e4:pinned k:{k} coll:{c} sync'",
    twin="{n} 'h2d:1e4:pinned k:{k} sync' 'h2d:1e4:pinned k:{k} sync'")
add("hidden-exchange", "the exchange runs behind the computing of the next layer", program="ranks", cls=COMPUTE,
    env={"SIM_CONCURRENT_KERNELS": "4"}, remove="communication", draw=dict(k=(10.0, 14.0), c=(2.0, 4.0)),
    job="{n} 'k:{k/2} note:0 on:1 after:0 coll:{c} note:1 on:0 k:{k/2} after:1 k:0.1 sync' "
        "'k:{k/2} note:0 on:1 after:0 coll:{c} note:1 on:0 k:{k/2} after:1 k:0.1 sync'",
    twin="{n} 'k:{k/2} k:{k/2} k:0.1 sync' 'k:{k/2} k:{k/2} k:0.1 sync'")

# Where launches stay, recording stays in them: device times cost 4 to 6 us a launch on the simulated CUPTI, so that launches of
# 12 us would be predicted to take as much longer. These are as long as those of a framework that dispatches every op.
# ---- two defects of similar size -------------------------------------------------------------------------------------
add("input-and-copies", "a slow loader and large copies", cls=INPUT, also=[TRANSFER], remove="input",
    draw=dict(k=(3.0, 4.0), ms=(7.0, 9.0), f=(0.7, 0.85)), gpu=True,
    job="{n} 'get:{ms}! h2d:{ms*f*4e6:.0f}:pinned k:{k} sync'", twin="{n} 'get:0 h2d:{ms*f*4e6:.0f}:pinned k:{k} sync'")
add("callback-and-input", "a slow callback and a slow loader", cls=HOST, also=[INPUT], remove="host", gpu=True,
    draw=dict(k=(3.0, 4.0), ms=(7.0, 9.0), f=(0.7, 0.85)),
    job="{n} 'get:{ms*f} h2d:1e4:pinned k:{k} sync sleep:{ms}!'", twin="{n} 'get:{ms*f} h2d:1e4:pinned k:{k} sync'")
add("copies-and-launches", "large copies and many small kernels", cls=TRANSFER, also=[HOST], remove="transfer", steps=40,
    blocking="H2D", env={"SIM_LAUNCH_COST": "80us"}, draw=dict(kernels=(80, 120), f=(1.3, 1.5)),
    job="{n} 'h2d:{kernels*f*32e4:.0f}:pinned:sync k:0.5 k:0.003:{kernels} sync'", twin="{n} 'k:0.5 k:0.003:{kernels} sync'")

add("input-and-launches", "a slow loader and many small kernels", cls=INPUT, also=[HOST], remove="input", steps=40,
    env={"SIM_LAUNCH_COST": "80us"}, draw=dict(kernels=(80, 120), f=(1.2, 1.4)),
    job="{n} 'get:{kernels*f*0.08}! h2d:1e4:pinned k:0.003:{kernels} k:3 sync'",
    twin="{n} 'get:0 h2d:1e4:pinned k:0.003:{kernels} k:3 sync'")
add("fetch-and-callback", "results are fetched with blocking copies, then a callback works", cls=TRANSFER, also=[HOST],
    remove="transfer", blocking="D2H", gpu=True, draw=dict(k=(4.0, 6.0), mb=(12.0, 20.0), f=(0.7, 0.85)),
    job="{n} 'get:0.2:4 h2d:1e4:pinned k:{k} d2h:{mb*1e6:.0f}:pageable:sync! sleep:{mb*f/1.6}'",
    twin="{n} 'get:0.2:4 h2d:64:pinned k:{k} d2h:64:pageable:sync sleep:{mb*f/1.6}'")
add("exchange-and-copies", "gradients are exchanged and large batches copied", program="ranks", cls=COMMUNICATION,
    also=[TRANSFER], remove="communication", blocking="rendezvous", draw=dict(k=(3.0, 4.0), c=(6.0, 8.0), f=(0.7, 0.85)),
    job="{n} 'h2d:{c*f*4e6:.0f}:pinned k:{k} coll:{c} sync' 'h2d:{c*f*4e6:.0f}:pinned k:{k} coll:{c} sync'",
    twin="{n} 'h2d:{c*f*4e6:.0f}:pinned k:{k} sync' 'h2d:{c*f*4e6:.0f}:pinned k:{k} sync'")

# ---- frameworks ------------------------------------------------------------------------------------------------------
add("tinygrad-training", "tinygrad trains; its kernels take a set time", program="tiny", cls=COMPUTE, steps=40,
    env={"SIM_KERNEL_DEFAULT": "{k}ms"}, remove=None, why="a framework's own kernels cannot be left out of a twin",
    draw=dict(k=(8.0, 12.0)), job="--steps {n}", twin="--steps {n}")
add("tinygrad-loader", "tinygrad trains, plain Python prepares its batches slowly", program="tiny", cls=HOST, causes=OWN,
    steps=40, env={"SIM_KERNEL_DEFAULT": "{k}ms"}, remove=None, why="the framework's own Python stays in the twin",
    draw=dict(k=(1.0, 2.0), ms=(40.0, 60.0)),
    job="--steps {n} --slow {ms}", twin="--steps {n}")
# TensorFlow without a device. One thread computes, the other processor is for the pipeline, and computing is a quarter of a step
# or more, so that what is measured of it is no noise. The C library keeps the memory that it has: as it is, it gives pages back and
# takes them again at every product where Python's generators allocate from other threads, and computing takes half as long
# again. That goes away with the generator, but no call tells of it, so no ceiling can allow for it.
COMPUTES = " --threads 1 --iters {base/product:.0f} --steps {n} --prefetch "
TF = dict(program="tf", tier="C", steps=40, env={"MALLOC_TOP_PAD_": "64000000"}, draw=dict(ms=(30.0, 45.0), base=(14.0, 20.0)))
add("tf-map", "Keras without a device: the map sleeps", cls=INPUT, causes=["input.map"], **TF,
    stage=["Map", "ParallelMap", "ParallelMapV2"], remove="input",
    job="--shape keras --defect slow_map --ms {ms}" + COMPUTES + "explicit", twin="--shape keras" + COMPUTES + "explicit")
add("tf-loop", "a loop over a dataset inside a function; the map sleeps", cls=INPUT, causes=["input.map"], **TF,
    stage=["Map", "ParallelMap", "ParallelMapV2"], remove="input",
    job="--shape func_loop --defect slow_map --ms {ms}" + COMPUTES + "none", twin="--shape func_loop" + COMPUTES + "explicit")
add("tf-generator", "TensorFlow without a device: a slow Python generator", cls=INPUT, **TF,
    causes=["input.generator"], stage=["Generator", "FlatMap"], remove="input",
    job="--shape func_next --defect slow_generator --ms {ms}" + COMPUTES + "explicit",
    twin="--shape func_next" + COMPUTES + "explicit")
add("tf-read", "TensorFlow 1 without a device: a slow file", cls=INPUT, causes=["input.read"], **TF,
    stage=["TFRecord", "TFRecordV2"], remove="input",
    job="--shape tf1 --defect slow_read --ms {ms}" + COMPUTES + "default", twin="--shape tf1" + COMPUTES + "default")
add("tf-callback", "Keras without a device: a slow callback", cls=HOST, causes=OWN, remove="host", **TF,
    job="--shape keras --defect callback --ms {ms}" + COMPUTES + "explicit", twin="--shape keras" + COMPUTES + "explicit")
add("tf-compute", "TensorFlow without a device: matrix products on all processors", program="tf", cls=COMPUTE,
    causes=["compute.cpu"], tier="C", steps=40, remove=None, why="without device times, no gain is predicted for computing",
    draw=dict(iters=(80, 120)), job="--shape func_next --iters {iters} --steps {n}")
add("tf-steps-per-execution", "eight steps in one call of Keras, a slow map", cls=INPUT, causes=["input.map"],
    stage=["Map", "ParallelMap", "ParallelMapV2"], remove="input", **dict(TF, steps=80),
    job="--shape steps_per_execution --execution 8 --defect slow_map --ms {ms}" + COMPUTES + "explicit",
    twin="--shape steps_per_execution --execution 8" + COMPUTES + "explicit")
add("tf-evaluation", "TensorFlow: evaluation between two epochs, a slow generator", cls=INPUT, **dict(TF, steps=50),
    causes=["input.generator"], stage=["Generator", "FlatMap"], segments={"eval": 2}, remove="input",
    job="--shape train_val --defect slow_generator --ms {ms}" + COMPUTES + "none",
    twin="--shape train_val" + COMPUTES + "none")


# ---- drawing ---------------------------------------------------------------------------------------------------------

def draw(scenario, seed, product=1.0):
    """The scenario with its parameters drawn: whole numbers where the range has whole numbers. product: milliseconds that one
    matrix product of tf_jobs.py takes on this machine."""
    rng = random.Random("%s %s" % (seed, scenario.name))
    drawn = {k: rng.randint(*r) if isinstance(r[0], int) else round(rng.uniform(*r), 3)
             for k, r in sorted(scenario.draw.items())}
    drawn.update(n=scenario.steps, product=product)

    def fill(value):
        if isinstance(value, dict):
            return {k: fill(v) for k, v in value.items()}
        if not isinstance(value, str) or "{" not in value:
            return value
        return re.sub(r"\{([^}]*)\}", one, value)

    def one(match):
        code, _, form = match.group(1).partition(":")
        value = eval(code, {}, drawn)
        return format(value, form) if form else "%.6g" % value if isinstance(value, float) else str(value)

    return scenario._replace(job=fill(scenario.job), twin=fill(scenario.twin), env=fill(scenario.env), draw=drawn,
                             segments=fill(scenario.segments), every=int(fill(scenario.every)))
