"""Jobs of many loop shapes: shapes_jobs.py NAME TRUTH runs one and writes how many rounds of what it made."""
import ctypes as C
import json
import random
import sys
import time
cu = C.CDLL("libcuda.so.1")
NAMES = ["forward", "back", "update", "act", "env", "gen", "disc", "encode", "decode", "norm"]
context, module, memory = C.c_void_p(), C.c_void_p(), C.c_uint64()
text = ".version 7.0\n.target sm_50\n.address_size 64\n" + "".join(".visible .entry spin_%s(.param .u64 ns)\n{\n\tret;\n}\n" % n for n in NAMES)
assert cu.cuInit(0) == 0 and cu.cuCtxCreate_v2(C.byref(context), 0, 0) == 0
assert cu.cuModuleLoadData(C.byref(module), text.encode()) == 0
def function(name):
    f = C.c_void_p()
    assert cu.cuModuleGetFunction(C.byref(f), module, b"spin_" + name.encode()) == 0
    return f
F = {n: function(n) for n in NAMES}
assert cu.cuMemAlloc_v2(C.byref(memory), 1 << 22) == 0
host = C.create_string_buffer(1 << 22)
def k(name, ms=0.3):
    ns = C.c_uint64(int(ms * 1e6))
    a = (C.c_void_p * 1)(C.addressof(ns))
    assert cu.cuLaunchKernel(F[name], 1, 1, 1, 1, 1, 1, 0, None, a, None) == 0
def up(n): assert cu.cuMemcpyHtoD_v2(memory, host, n) == 0
def down(n): assert cu.cuMemcpyDtoH_v2(host, memory, n) == 0
def sync(): assert cu.cuCtxSynchronize() == 0
def train(b=10000, ms=0.5):
    up(b); k("forward", ms); k("back", ms); k("update", ms / 2); sync()
def evaluate(b=10000, ms=0.5):
    up(b); k("forward", ms); sync()

def plain():                  # 1
    for _ in range(80): train()
    return dict(train=80)
def epochs_eval():            # 2
    for e in range(4):
        for _ in range(25): train()
        for _ in range(10): evaluate()
    return dict(train=100, evaluate=40, epoch=4)
def loss_fetch():             # each step fetches 4 bytes, every 10 logs
    for i in range(90):
        up(10000); k("forward"); k("back"); k("update"); down(4)
        if i % 10 == 9: time.sleep(0.004)
    return dict(train=90)
def accumulate():             # 6 micro steps, update outside
    for i in range(20):
        for _ in range(6): up(10000); k("forward"); k("back"); sync()
        k("update"); sync()
    return dict(train=20, micro=120)
def accumulate_tail():        # the last batch of each epoch is smaller
    for e in range(3):
        for i in range(30): train(10000 if i < 29 else 3000)
        down(100000); time.sleep(0.03)
    return dict(train=90, epoch=3)
def gan():                    # alternating generator and discriminator
    for i in range(60):
        up(10000); k("gen"); k("disc"); k("update"); sync()
        up(10000); k("disc"); k("back"); k("update"); sync()
    return dict(train=60)
def critics():                # two rounds of the critic for each of the generator
    for i in range(50):
        for _ in range(2): up(20000); k("disc"); k("back", 0.2); sync()
        up(20000); k("gen"); k("disc"); k("update", 0.2); sync()
    return dict(train=50)
def gathered():               # four batches an update, which follows the last without a wait; two epochs
    for e in range(2):
        for i in range(24):
            for _ in range(4): up(40000); k("encode", 0.2); k("forward"); k("back")
            k("norm", 0.1); k("update", 0.2); down(4)
        down(1 << 20); time.sleep(0.05)
    return dict(train=48, micro=192)
def sampled():                # each tenth step is followed by a look at what the model makes, which takes long
    for i in range(120):
        train()
        if i % 10 == 9:
            for _ in range(12): k("decode", 2)
            sync()
    return dict(train=120)
def rollout():                # 16 acts, then an update of 4 minibatches
    for i in range(12):
        for _ in range(16): up(400); k("act", 0.1); down(64); time.sleep(0.0005)
        for _ in range(4): train()
    return dict(loop=12, act=192, train=48)
def decode():                 # requests: prefill, then a random number of tokens
    rng = random.Random(1)
    n = 0
    for r in range(15):
        time.sleep(0.01); up(2000); k("encode"); sync()
        t = rng.randint(5, 30); n += t
        for _ in range(t): k("decode", 0.2); down(4)
    return dict(step=n, loop=15)
def checkpoints():            # irregular
    for i in range(120):
        train()
        if i in (17, 40, 95): down(1 << 22); time.sleep(0.05)
    return dict(train=120)
def eval_every():             # evaluation each 20 steps, inside the epoch
    for i in range(100):
        train()
        if i % 20 == 19:
            for _ in range(8): evaluate()
    return dict(train=100, evaluate=40)
def two_models():             # one after the other
    for _ in range(50): train(10000)
    for _ in range(70): up(20000); k("encode"); k("decode"); k("norm"); sync()
    return dict(train=50, other=70)
def varying():                # sequence lengths: another number of launches each step
    rng = random.Random(2)
    for _ in range(70):
        up(rng.choice([9000, 17000, 40000]))
        for _ in range(rng.randint(3, 12)): k("forward", 0.1)
        for _ in range(rng.randint(3, 12)): k("back", 0.1)
        k("update", 0.1); sync()
    return dict(train=70)
def warm_compile():           # the first three steps load modules
    for i in range(60):
        if i < 3:
            m = C.c_void_p(); time.sleep(0.05); assert cu.cuModuleLoadData(C.byref(m), text.encode()) == 0
        train()
    return dict(train=60)
def long_eval():              # validation takes longer than training
    for e in range(3):
        for _ in range(20): train(ms=0.3)
        for _ in range(60): evaluate(ms=1.0)
    return dict(train=60, evaluate=180, epoch=3)
def ahead():                  # no waits in the step; one each epoch
    for e in range(4):
        for _ in range(30): up(10000); k("forward", 0.2); k("back", 0.2); k("update", 0.1)
        sync(); down(4)
    return dict(train=120, epoch=4)
def every_second():           # the next batch is sent behind a step, and each second one looks at the loss
    for i in range(50):
        k("forward", 2); up(50000)
        if i % 2: sync()
    return dict(train=50)
def seeded():                 # the first step makes the weights from a seed that it sends
    for i in range(80):
        up(50000); up(400); sync()
        if not i:
            k("norm"); k("encode"); k("decode"); up(4); k("norm")
        k("forward"); k("back"); k("update"); down(4)
    return dict(train=80)
def sweep():                  # 4 learning rates, 30 steps each, then one evaluation
    for r in range(4):
        up(1 << 20)
        for _ in range(30): train()
        for _ in range(5): evaluate()
        down(4)
    return dict(train=120, evaluate=20, loop=4)
def recompiled():             # each step compiles its kernels anew, under names with a hash and a version
    for i in range(40):
        m, f = C.c_void_p(), [C.c_void_p(), C.c_void_p()]
        names = [b"spin_%s_%016x_v%d" % (n, hash((i, n)) & (1 << 64) - 1, i) for n in (b"forward", b"back")]
        ptx = text.split(".visible")[0].encode() + b"".join(b".visible .entry %s(.param .u64 ns)\n{\n\tret;\n}\n" % n for n in names)
        assert cu.cuModuleLoadData(C.byref(m), ptx) == 0
        time.sleep(0.005)
        up(10000)
        for n, p in zip(names, f):
            assert cu.cuModuleGetFunction(C.byref(p), m, n) == 0
            F[n] = p
            k(n, 0.5)
        sync()
    return dict(train=40)
def rarely():                 # a wait each fifth step, and no copies
    for i in range(100):
        k("forward", 0.4); k("back", 0.6); k("update", 0.2)
        if i % 5 == 4: sync()
    return dict(train=100)
def resident():               # 8 micro steps an update, without waits or copies; the loss is fetched each fourth step
    for i in range(40):
        for _ in range(8): k("forward", 0.1); k("back", 0.2)
        k("update", 0.2)
        if i % 4 == 3: down(4)
    return dict(train=40, micro=320)
def tiny():                   # a step is a loop over many small kernels
    for i in range(30):
        for _ in range(60): k("encode", 0.01); k("norm", 0.01); k("decode", 0.01)
        sync()
    return dict(train=30)
def agent():                  # acts with the model that it trains, 20 times for 4 minibatches
    for i in range(12):
        for _ in range(20): up(400); k("forward", 0.1); down(64); time.sleep(0.0005)
        for _ in range(4): train()
    return dict(loop=12, act=240, train=48)
def scalars_gathered():       # four small batches an update, without waits between
    for i in range(60):
        for _ in range(4): up(1000); k("forward", 0.2)
        k("update", 0.2); sync()
    return dict(train=60, micro=240)
if __name__ == "__main__":
    json.dump(globals()[sys.argv[1]](), open(sys.argv[2], "w"))
