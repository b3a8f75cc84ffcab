"""Writes the source of a drawn job.

The job is one file, or two where the defect stands in a module of its own. With FIX=1 it runs without its defect. Its last line of output is
JSON: steps, step_ms (mean behind the first steps, by its own clock), defect_ms (of a step, measured around the defect's lines) and
wall_s of its training loops and of its evaluations.
"""
import os
import textwrap

from defects import DEFECTS, scaled
from frameworks import FRAMEWORKS, width

PRELUDE = """
import json
import os
import sys
import time

FIXED = bool(os.environ.get("FIX"))
FOLDER = os.environ["TFH_TMP"]
JOBS = {jobs!r}
BEGUN, SPENT, EVALUATED = [], [0.0], [0.0]
"""

OUTCOME = """
def outcome():
    first = len(BEGUN) // 10 + 2
    BEGUN.append(time.perf_counter())
    each = (BEGUN[-1] - BEGUN[first] - EVALUATED[0]) / (len(BEGUN) - 1 - first)
    print(json.dumps({{"steps": len(BEGUN) - 1, "step_ms": each * 1e3, "defect_ms": SPENT[0] * 1e3 / (len(BEGUN) - 1),
                      "train_s": BEGUN[-1] - BEGUN[0] - EVALUATED[0], "evaluate_s": EVALUATED[0]}}), flush=True)
    sys.stdout.flush()
    os._exit(0) if {leave} else None
"""


def indent(text, levels=1):
    return textwrap.indent(text.strip("\n") + "\n", "    " * levels) if text.strip() else ""


class Writer:
    def __init__(self, drawn):
        self.d, self.row, self.f = drawn, DEFECTS[drawn.defect], FRAMEWORKS[drawn.framework]
        ms = drawn.compute_ms
        self.values = dict(scaled(drawn.defect_ms), fwd=drawn.noun, batch="1", fwd_ms=round(ms * 0.35, 3), bwd_ms=round(ms * 0.55, 3),
                           opt_ms=round(ms * 0.1, 3), width=width(ms), megabytes=min(60, max(1, int(drawn.defect_ms * 5))))  # jobs of the driver have buffers of 64
        device_setup, device_lines = self.f.defects.get(drawn.defect, ("", ""))
        self.setup = self.fill(self.row.setup or device_setup)
        self.lines = self.fill(self.row.lines or device_lines)

    def fill(self, text):
        """The values by name. Braces of PTX and of dictionaries are left alone."""
        for name, value in self.values.items():
            text = text.replace("{%s}" % name, str(value))
        return text.replace("{{", "{").replace("}}", "}").strip("\n")

    def guarded(self):
        """The defect's lines, timed, not run by the twin; none where the defect is in a loader."""
        if not self.lines or self.row.where == "beside" or self.d.loader:
            return "", ""
        slow = self.lines
        call, definition = self.placed(slow)
        turn = "not FIXED" if self.row.each == 1 else "not FIXED and i %% %d == %d" % (self.row.each, self.row.each - 1)
        body = "begun = time.perf_counter()\nif %s:\n%s" % (turn, indent(call))
        if self.row.batch:
            body += "else:\n    made = 1\n"
        return definition, body + "SPENT[0] += time.perf_counter() - begun\n"

    def result(self):
        return self.row.batch or "0"

    def placed(self, slow):
        """The lines in their place: what is called in the step, and what is defined before it."""
        name, noun = self.d.verb + "_" + self.d.noun, self.d.noun.capitalize()
        makes = "made = " if self.row.batch else ""
        whole = "def %s(i):\n%s    return %s\n" % (name, indent(slow), self.result())
        place = self.d.place
        if place == "inline":
            return slow + ("\nmade = " + self.result() if self.row.batch else ""), ""
        if place == "function":
            return makes + name + "(i)", whole
        if place == "method":
            return makes + "%s.%s(i)" % (noun.upper(), name), "class %s:\n%s\n\n%s = %s()\n" % (
                noun, indent(whole.replace("(i):", "(self, i):", 1)), noun.upper(), noun)
        if place == "module":
            return makes + "%s_tools.%s(i)" % (self.d.noun, name), "MODULE:" + whole
        if place == "deep":
            return makes + "outer_%s(i)" % self.d.noun, whole + ("\n\ndef inner_%s(i):\n    return %s(i)\n\n\ndef outer_%s(i):\n    return inner_%s(i)\n"
                                                                 % (self.d.noun, name, self.d.noun, self.d.noun))
        return makes + name + "(i)", ("def counted(function):\n    def wrapper(*args):\n        wrapper.calls += 1\n        return function(*args)\n"
                                      "    wrapper.calls = 0\n    return wrapper\n\n\n@counted\n" + whole)

    def source(self):
        """Text of the job, text of its module ("" - none)."""
        definition, slow = self.guarded()
        module = ""
        if definition.startswith("MODULE:"):
            module = "\n".join((self.row.imports, "import json", "import os", "import time", "", 'FOLDER = os.environ["TFH_TMP"]', self.setup, "", "",
                                definition[len("MODULE:"):].replace("\n\n\n", "\n\n")))
            definition = ""
        head = [PRELUDE.format(jobs=os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "jobs"))).strip(), self.row.imports]
        setup = [] if module else [self.setup]
        if module:
            head.append("sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))\nimport %s_tools" % self.d.noun)
        body = self.step(slow)
        made = "made = next(SOURCE)\n" if self.row.where == "beside" else ""
        whole = head + [self.fill(self.f.setup), self.out()] + setup + ["", definition, self.beside(), self.loader(), "",
                        OUTCOME.format(leave=self.row.where == "beside"), "", self.evaluation(), self.loop(made + body), ""]
        return "\n".join(part for part in whole if part is not None), module

    def out(self):
        return "OUT = np.empty(1 << 14, np.float32)" if self.d.framework in ("numba", "pycuda") else ""

    def beside(self):
        """Batches from a thread or a process, no more than the job takes: a worker that is left with more would wait for ever."""
        if self.row.where != "beside":
            return ""
        slow = indent(self.lines, 3)
        n = self.d.steps + 1
        if self.d.defect.startswith("queue"):
            return ("def %s_batches():\n    q = queue.Queue(2)\n\n    def fill():\n        for i in range(%d):\n            if not FIXED:\n%s            q.put(i)\n\n"
                    "    threading.Thread(target=fill, daemon=True).start()\n    while True:\n        yield q.get()\n\n\nSOURCE = %s_batches()\n"
                    % (self.d.noun, n, indent(slow, 1), self.d.noun))
        return ("def %s_worker(pipe):\n    for i in range(%d):\n        if not FIXED:\n%s        pipe.send(i)\n\n\ndef %s_batches():\n"
                "    here, there = multiprocessing.Pipe()\n    multiprocessing.get_context('fork').Process(target=%s_worker, args=(there,), daemon=True).start()\n"
                "    while True:\n        yield here.recv()\n\n\nSOURCE = %s_batches()\n" % (self.d.noun, n, slow, self.d.noun, self.d.noun, self.d.noun))

    def loader(self):
        """Batches by the framework's own loader, which runs the defect's lines."""
        if not self.d.loader:
            return ""
        lines = indent(self.lines, 2)
        made = indent("made = " + self.result(), 2)
        item = "    made = 1\n    if not FIXED:\n" + lines + made
        if self.d.framework == "torch":
            return ("class %s(torch.utils.data.Dataset):\n    def __len__(self):\n        return %d\n\n    def __getitem__(self, i):\n%s        return DATA + 0.01 * made\n\n\n"
                    "LOADER = torch.utils.data.DataLoader(%s(), batch_size=None)\n"
                    % (self.d.noun.capitalize(), self.per_epoch(), indent(item), self.d.noun.capitalize()))
        return ("def %s(i):\n%s    return np.float32(made)\n\n\ndef batch_of(i):\n    made = tf.ensure_shape(tf.numpy_function(%s, [i], tf.float32), ())\n    return DATA + 0.01 * made\n\n\n"
                "LOADER = tf.data.Dataset.range(%d).map(batch_of)\n" % (self.d.verb, item, self.d.verb, self.per_epoch())).replace("def ", "import numpy as np\n\n\ndef ", 1)

    def per_epoch(self):
        return self.d.steps // 4 if self.d.shape in ("epochs", "evaluated") else self.d.steps

    def step(self, slow):
        """Lines of one step; `i` is its number."""
        f, fill = self.f, self.fill
        makes = self.row.where == "beside" or (self.row.batch and not self.d.loader)
        send = "" if self.d.loader else fill(f.send.replace("{batch}", "made" if makes else "1"))
        micro = fill(f.micro)
        if self.d.shape == "accumulated":
            micro = "for micro in range(4):\n" + indent(send + "\n" + micro)
            send = ""
        ends = fill(f.loss if self.d.wait == "loss" or not f.wait else f.wait)
        parts = [slow if self.row.where == "before" else "", send, micro, fill(f.update), ends, slow if self.row.where == "after" else ""]
        return "\n".join(part.strip("\n") for part in parts if part.strip()) + "\n"

    def evaluation(self):
        if self.d.shape != "evaluated":
            return ""
        return ("def evaluate():\n    begun = time.perf_counter()\n    for k in range(%d):\n%s    EVALUATED[0] += time.perf_counter() - begun\n\n"
                % (self.d.steps // 6, indent(self.fill(self.f.score), 2)))

    def loop(self, body):
        """The loop around the step."""
        d, each = self.d, self.per_epoch()
        mark = "BEGUN.append(time.perf_counter())\n"
        turns = "for x in LOADER:" if d.loader else None
        if d.shape in ("epochs", "evaluated"):
            inner = (turns or "for n in range(%d):" % each) + "\n" + indent(mark + body + "i += 1")
            more = "evaluate()\n" if d.shape == "evaluated" else 'print("epoch", epoch, file=sys.stderr)\n'
            return "i = 0\nfor epoch in range(4):\n" + indent(inner + more) + "outcome()\n"
        if d.shape == "trainer":
            one = "class Trainer:\n    def __init__(self):\n        self.done = 0\n\n    def advance(self, i%s):\n%s\n    def fit(self):\n%s\n\nTrainer().fit()\noutcome()\n"
            call = "BEGUN.append(time.perf_counter())\nself.advance(self.done%s)\nself.done += 1\n"
            return one % (", x" if d.loader else "", indent(body, 2),
                          indent((turns or "for n in range(%d):" % d.steps) + "\n" + indent(call % (", x" if d.loader else "")), 2))
        if d.shape == "while":
            return "i = 0\nwhile i < %d:\n" % d.steps + indent(mark + body + "i += 1") + "outcome()\n"
        if turns:
            return "i = 0\n" + turns + "\n" + indent(mark + body + "i += 1") + "outcome()\n"
        return "for i in range(%d):\n" % d.steps + indent(mark + body) + "outcome()\n"

    def simulated(self):
        """Settings of the simulated GPU."""
        if not self.f.on_device or self.d.framework == "driver":
            return {}
        us = [int(self.d.compute_ms * part * 1000 / (4 if self.d.shape == "accumulated" and part != 0.1 else 1)) for part in (0.35, 0.55, 0.1)]
        return {"SIM_KERNEL": "*_fwd* %dus; *_bwd* %dus; *_opt* %dus; *tiny* 2us" % tuple(us)}


def lines_of(text):
    return [n for n, line in enumerate(text.splitlines(), 1) if line.rstrip().endswith("# here")]


def write(drawn, folder):
    """Writes the job to `folder`; path of its main file, lines that may lead by file name, settings of the simulated GPU."""
    writer = Writer(drawn)
    source, module = writer.source()
    path = os.path.join(folder, drawn.noun + ".py")
    marks = {}
    for name, text in ((drawn.noun + ".py", source), (drawn.noun + "_tools.py", module)):
        if text:
            with open(os.path.join(folder, name), "w") as f:
                f.write(text)
            marks[name] = lines_of(text)
    return path, marks, writer.simulated()
