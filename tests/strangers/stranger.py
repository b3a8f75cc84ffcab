"""What the jobs of this folder share: their table, their clock, and each framework's smallest step.

A file of jobs is run as `jobs_X.py NAME` or `jobs_X.py --list`; FIX=1 in the environment runs the job's twin, which is the
job without its defect. Each job is a function with a row in the table (job() below). A comment "# here" stands on each
line that may lead the verdict. A job's last line of output is {"steps", "step_ms"}: by its own count and clock.
"""
import inspect
import json
import os
import sys
import threading
import time
import warnings

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
FIXED = bool(os.environ.get("FIX"))
MAIN, NUMBA, PYCUDA, CLIENTS = "main", "client-numba", "client-pycuda", "clients"  # environments
TORCH, FRAMEWORKS, LIBRARIES, JAX = "torch", "frameworks", "strangers", "jax"

# Jobs come in batches, each written before anybody ran it. Once a rule of the judge was mended on a job of a batch, what is
# right of it shows nothing any more: the batch, or those of its jobs (MENDED_ON), become "seen".
BATCHES = {1: "seen", 2: "seen", 3: "seen", 4: "confirm", 5: "confirm", 6: "confirm", 7: "seen", 8: "seen",
           9: "confirm", 10: "confirm", 11: "confirm", 12: "confirm", 13: "confirm", 14: "confirm", 15: "confirm", 32: "seen", 33: "seen",
           34: "seen", 35: "seen"}
MENDED_ON = {"r_ac_accumulate", "r_fx_healthy", "r_jx_lengths", "r_li_metric", "r_li_validate", "r_nb_answers", "r_ox_eager", "r_pt_gan",
             "r_pt_sizes", "r_rl_agents", "e_pt_recv_in_call", "e_pt_taken_last", "e_tg_resident", "nb_bucket", "p_pt_small_files",
             "p_tg_rows", "pt_accumulate_log", "tf_py_map", "tg_crops", "w_jx_adam", "w_jx_callback", "w_jx_lengths",
             "w_nb_four_streams", "w_pc_two_halves", "w_pt_carts", "w_pt_gan_pictures", "w_tg_jit_each_epoch", "x_pt_late_share",
             "x_pt_dense_embedding", "x_pt_two_phases", "x_pt_balanced", "x_jx_samples", "w_tf_skipped", "x_tf_early_cache",
             "x_tf_new_rate", "x_tf_rows", "x_pt_memory", "x_pt_history", "x_pt_cells", "x_dv_path", "x_pc_slices", "x_nb_table",
             "w_dj_elements", "w_pt_short_epochs", "e_dj_field", "p_pc_float64", "r_lm_json", "tf_wide", "e_tf_figures",
             "p_tf_lines", "r_mp_block", "w_tf_csv_rows", "e_tf_json_lines", "x_tf_window", "x_tf_filtered", "r_tf_augment", "w_pt_sqlite",
             "r_hf_column", "r_zr_open", "y_tf_probe_predict", "y_jx_reward_cb", "y_jx2_reward_cb", "y_pt_clickstream",
             "y_pt_birds_aug", "y_pt_reviews_lstm", "y_odd_two_acts", "y_pt_eval_often", "z_jm_async_mlp", "z_jm_es_simulator",
             "z_nb_heat_host_arrays", "z_pc_beams_one_by_one", "z_pt_short_epochs", "z_tf_checkpoint_batches",
             "z_pt_allreduce_each", "z_jx_packed_shards", "z_pt_detect_nms", "u_ckpt_tinygrad", "u_ddp_nccl", "u_drjit_literal", "u_early_stop",
             "u_eval_auc", "u_fluid_async", "u_gan_two_nets", "u_http_infer", "u_keras_jax_save", "u_keras_pydataset",
             "u_kfold_compile", "u_mc_pricing", "u_png_loader", "u_ppo_envs", "u_predict_loop", "u_rec_hdf5", "u_serve_http", "u_sweep",
             "u_tf_bucket", "u_tf_gz_zip", "t_audio", "t_cells_segment", "t_distil_trainer", "t_dqn_actor", "t_graphs", "t_halo",
             "t_intents_debug", "t_keywords_wds", "t_pool", "t_products_metric", "t_ratings", "t_render", "t_resume_yolo",
             "t_ridge_sweep", "t_storm", "t_transcode", "t_two_tower", "t_twodev", "t_vae_history", "t_walkers", "t_tickets_keras",
             "t_alibi_masks"}

JOBS = {}
MARKS = []


def job(batch, cls, causes, steps, env=MAIN, sim=None, twin=False, says="", never="", never_first="", at=(), note=""):
    """A row of the table: class ("host or input": both are right, "any": all are), patterns of right causes, number of steps,
    environment, settings of the simulated GPU, whether its twin measures the gain; regular expressions that the full report
    must (says) and must not (never) fit, nor its first screen (never_first); what else has marked lines (at)."""
    def put(function):
        name = function.__name__
        JOBS[name] = dict(batch=batch, split="seen" if name in MENDED_ON else BATCHES[batch], cls=cls, causes=causes, steps=steps,
                          env=env, sim=sim or {}, twin=twin, says=says, never=never, never_first=never_first, note=note,
                          at=at, function=function, program="", functions=())
        return function
    return put


def native(name, batch, cls, causes, steps, functions=(), **more):
    """The row of a job that is a program in C: native/NAME.c, t_NAME in the table. Reports know its functions, not its lines:
    `functions` may lead the verdict."""
    def nothing():
        """The program is run instead."""
    nothing.__name__ = "t_" + name
    job(batch, cls, causes, steps, **more)(nothing)
    JOBS[nothing.__name__].update(program=name, functions=functions)


def lines_of(function):
    text, first = inspect.getsourcelines(function)
    return [first + i for i, line in enumerate(text) if "# here" in line]


def rows():
    """The table as it is printed."""
    return {name: dict({k: v for k, v in row.items() if k not in ("function", "at")},
                       lines=[line for part in (row["function"], *row["at"]) for line in lines_of(part)])
            for name, row in JOBS.items()}


def mark():
    """A step begins."""
    MARKS.append(time.perf_counter())


def step_scope(name):
    """A step that the job marks for tfhook."""
    sys.path.insert(1, os.path.join(HERE, "..", "..", "lib", "python"))
    import tfhook
    return tfhook.step_scope(name)


def step_ms():
    """Mean of the steps behind the first ones."""
    if len(MARKS) <= 4:
        return None
    MARKS.append(time.perf_counter())
    first = len(MARKS) // 10 + 2
    return round((MARKS[-1] - MARKS[first]) * 1e3 / (len(MARKS) - 1 - first), 3)


def finish(steps):
    """What a job says of itself."""
    print(json.dumps({"steps": steps, "step_ms": step_ms()}), flush=True)


def main():
    if sys.argv[1] == "--list":
        print(json.dumps(rows()))
        return
    finish(JOBS[sys.argv[1]]["function"]())


def temporary(name=""):
    """A path in the folder that is the job's own."""
    return os.path.join(os.environ["TFH_TMP"], name)


def burn(ms):
    """Python's code, with the global lock."""
    end = time.perf_counter() + ms / 1e3
    x = 0
    while time.perf_counter() < end:
        x += 1
    return x


def thread(function, *args):
    started = threading.Thread(target=function, args=args, daemon=True)
    started.start()
    return started


def ones(n):
    return np.ones(n, np.float32)


def filled(n, value):
    return np.full(n, value, np.float32)


# What the simulated GPU takes for a kernel.

def kernels(fwd, bwd, opt):
    return {"SIM_KERNEL": "*fwd* %s; *bwd* %s; *opt* %s" % (fwd, bwd, opt)}


def every_kernel(duration, **more):
    return dict({"SIM_KERNEL_DEFAULT": duration}, **more)


def tinygrad_kernels(duration):
    return every_kernel(duration, DEV="CUDA:PTX")


# The smallest step of each framework.

class Numba:
    """numba's CUDA, and three kernels that it compiles at their first launch."""

    def __init__(self):
        from numba import cuda
        warnings.filterwarnings("ignore")

        @cuda.jit
        def fwd(x, y):
            i = cuda.grid(1)
            if i < x.size:
                y[i] += x[i]

        @cuda.jit
        def bwd(x, y):
            i = cuda.grid(1)
            if i < x.size:
                y[i] -= x[i]

        @cuda.jit
        def opt(x, y):
            i = cuda.grid(1)
            if i < x.size:
                y[i] *= x[i]

        self.cuda, self.fwd, self.bwd, self.opt = cuda, fwd, bwd, opt

    def three(self, x, y, blocks=64, threads=256):
        self.fwd[blocks, threads](x, y)
        self.bwd[blocks, threads](x, y)
        self.opt[blocks, threads](x, y)

    def step(self, x, y, blocks=64):
        self.three(x, y, blocks)
        self.cuda.synchronize()


class PyCuda:
    """pycuda's driver, and one kernel that does nothing for as long as the simulated GPU is told."""
    PTX = b""".version 8.0
.target sm_80
.address_size 64
.visible .entry axpy(.param .u64 x, .param .f32 a, .param .u32 n) { ret; }
\0"""

    def __init__(self):
        import atexit

        import pycuda.driver as cuda
        cuda.init()
        self.context = cuda.Device(0).make_context()
        atexit.register(self.context.pop)
        self.cuda = cuda
        self.axpy = cuda.module_from_buffer(self.PTX).get_function("axpy")

    def launch(self, x, n=16384, blocks=64, times=3):
        for _ in range(times):
            self.axpy(x, np.float32(2), np.uint32(n), block=(256, 1, 1), grid=(blocks, 1))

    def wait(self):
        self.cuda.Context.synchronize()


class TinyGrad:
    """A small net of tinygrad's; step() is eager, jitted() compiled at its second call."""

    def __init__(self):
        from tinygrad import Tensor, TinyJit, nn

        class Net:
            def __init__(self):
                self.a = nn.Linear(64, 128)
                self.b = nn.Linear(128, 10)

            def __call__(self, x):
                return self.b(self.a(x).relu())

        self.Tensor, self.TinyJit, self.nn, self.net = Tensor, TinyJit, nn, Net()
        self.optimizer = nn.optim.SGD(nn.state.get_parameters(self.net), lr=0.01)

    def step(self, x, y):
        from tinygrad.helpers import Context
        with Context(TRAINING=1):
            self.optimizer.zero_grad()
            loss = self.net(x).sparse_categorical_crossentropy(y).backward()
            return loss.realize(*self.optimizer.schedule_step())

    def jitted(self):
        return self.TinyJit(self.step)

    def on_device(self, array):
        return self.Tensor(array).realize()


def tensorflow():
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
    import keras
    import tensorflow as tf
    return tf, keras


def quiet_tensorflow():
    """With as many threads as it likes."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import keras
    import tensorflow as tf
    return tf, keras


def small_model(keras, width=64):
    model = keras.Sequential([keras.Input((32,)), keras.layers.Dense(width, "relu"), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model


def marks(keras):
    """A callback that marks the steps of Keras' fit."""
    class Marks(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            mark()
    return Marks()


def pytorch():
    import torch
    torch.set_num_threads(1)
    return torch


def small_net(torch):
    nn = torch.nn
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    return model, torch.optim.SGD(model.parameters(), 0.01)


def wide_net(torch, inputs, width):
    nn = torch.nn
    model = nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))
    return model, torch.optim.SGD(model.parameters(), 0.01)


def fit(model, optimizer, x):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss


def driver(mb=8):
    """The driver's calls without any framework."""
    sys.path.insert(0, os.path.join(os.path.dirname(HERE), "jobs"))
    from device import Device
    return Device(mb)
