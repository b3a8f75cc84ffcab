"""A Kineto trace all of whose names are somebody's. Not a test."""


def event(cat, name, at, dur, tid=7, pid=7, **args):
    return dict(ph="X", cat=cat, name=name, pid=pid, tid=tid, ts=1700000000000000 + at, dur=dur, args=args)


def kineto(evil, steps=12):
    """Steps of a loader, copies and kernels, all of whose names end with `evil`."""
    events = [dict(ph="M", name="process_name", pid=7, tid=0, ts=0, args={"name": "python" + evil}),
              dict(ph="M", name="thread_name", pid=7, tid=7, ts=0, args={"name": "thread" + evil})]
    number = 0
    for i in range(steps):
        at = i * 10000
        events += [event("user_annotation", "ProfilerStep#%d" % i, at, 10000),
                   event("user_annotation", "enumerate(DataLoader)#" + evil + ".__next__", at + 2, 3000),
                   event("user_annotation", "range" + evil, at + 3000, 900),
                   event("python_function", "train.py(12): " + evil, at + 3000, 6000),
                   event("cpu_op", "op" + evil, at + 3010, 2000)]
        work = [("cudaMemcpyAsync", "gpu_memcpy", "Memcpy HtoD (Pageable -> Device)" + evil)]
        work += [("cudaLaunchKernel", "kernel", "kernel%d<%s>" % (k, evil)) for k in range(5)]
        for k, (call, cat, name) in enumerate(work):
            number += 1
            events += [event("cuda_runtime", call, at + 3100 + k * 10, 5, correlation=number),
                       event(cat, name, at + 3300 + k * 600, 500, tid=3, pid=0, device=0, stream=3, correlation=number,
                             bytes=1 << 20, **{"kernel" + evil: evil})]
        events.append(event("cuda_runtime", "cudaDeviceSynchronize", at + 3800, 2400, correlation=10**6 + i))
    return dict(traceEvents=events, distributedInfo={"backend": evil, "rank": 0}, deviceProperties=[{"id": 0, "name": evil}],
                traceName=evil, schemaVersion=1)
