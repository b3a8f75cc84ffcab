"""Two torchrun agents, each on a host (a namespace of a name of its own) with so many ranks, and the store in which they meet apart from
both, so that either may be lost: elastic_launch.py RANKS_PER_HOST JOB ARGUMENT... Ends with 0 if one of them does. The agents wait a minute for
each other: one that begins alone may get the other's address wrong when that one joins."""
import os
import subprocess
import sys

import torch.distributed as dist

store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
agents = []
for host in range(2):
    command = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "1:2", "--nproc-per-node", sys.argv[1], "--max-restarts", "3", "--rdzv-backend", "c10d", "--rdzv-id", "7",
               "--rdzv-endpoint", "127.0.0.1:%d" % store.port, "--local-addr", "127.0.0.1", "--monitor-interval", "0.2",
               "--rdzv-conf", "is_host=0,last_call_timeout=60,keep_alive_interval=1,keep_alive_max_attempt=3,join_timeout=300", *sys.argv[2:]]
    agents.append(subprocess.Popen(["unshare", "-u", "sh", "-c", 'hostname "$0" && exec "$@"', "node%d" % host, *command], env=dict(os.environ, OMP_NUM_THREADS="1")))
codes = [agent.wait() for agent in agents]
sys.exit(0 if 0 in codes else 1)
