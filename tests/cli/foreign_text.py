#!/usr/bin/env python3
"""Whatever a trace, a file's name, run.json or an option says, no command writes a control character but the newline, a bidi
control, a character that shows nothing, or bytes that are no UTF-8; nothing of it begins a line; JSON stays JSON and tells the
name whole. The hostile text stands in every field of Kineto and XPlane traces and of .tft files, their NOTE, NAME and HEAD."""
import json
import os
import re
import shutil
import subprocess
import sys
import unicodedata

SRC, BUILD, TMP = os.environ["TFH_SRC"], os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
sys.path.insert(0, SRC + "/tests/import")
import nsysdb  # noqa: E402
from evil_kineto import kineto  # noqa: E402
from xspace import MS, Plane  # noqa: E402

TFHOOK, EVIL_TFT, LOOP = BUILD + "/bin/tfhook", BUILD + "/tests/cli/evil", BUILD + "/tests/jobs/client_loop"
if os.environ.get("TFH_SAN") in ("address", "thread"):
    sys.exit(77)
EVIL = "\x1b]0;OWNED\x07\x1b[31mRED\x1b[2J\r\n\tFAKED LINE\u009b31m\u202e\u2066\u200b\u2028\u00ad\ufeff\x7f"
RAW = EVIL.encode() + b"\xff\xc0\x9b\xed\xa0\x80\xf4\x90\x80\x80"  # bad bytes, overlong ESC, a surrogate, beyond Unicode
os.chdir(TMP)
counted = 0


def refused(c):
    return c != "\n" and (unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") or c in "\ufe0f\u3164\uffa0\u115f")


def look(what, output):
    text = output.decode()  # strictly
    bad = sorted({hex(ord(c)) for c in text if refused(c)})
    assert not bad, (what, bad, text)
    fake = [line for line in text.splitlines() if line.strip().startswith("FAKED LINE")]
    assert not fake, (what, text)
    return text


def tfhook(*args, codes=(0,), env=None, evil=True):
    global counted
    run = subprocess.run([TFHOOK, *args], capture_output=True, stdin=subprocess.DEVNULL, timeout=60,
                         env=dict(os.environ, LC_ALL="C.UTF-8", **(env or {})))
    what = " ".join(repr(a)[:60] for a in args)
    out, err = look(what, run.stdout), look(what, run.stderr)
    assert run.returncode in codes, (what, run.returncode, out, err)
    assert not evil or "OWNED" in out + err, (what, out, err)
    counted += 1
    return out + err


def read(path, codes=(0,)):
    """Every way to look at a recording."""
    tfhook("report", "--color=never", path, codes=codes, evil=False)
    tfhook("report", "--color=never", "--all", path, codes=codes)
    for part in ("--wide", "--kernels", "--transfers", "--input", "--ranks", "--memory", "--where", "--step=1"):
        tfhook("report", "--color=never", part, path, codes=codes + (2,), evil=False)
    whole = json.loads(tfhook("report", "--json", path, codes=codes))
    page = "%d.html" % counted
    tfhook("report", "--html", page, path, codes=codes, evil=False)
    with open(page, "rb") as f:
        look(page, f.read().replace(b"\t", b" "))  # of its own script
    for line in tfhook("report", "--json", "--steps", path, codes=codes, evil=False).splitlines():
        json.loads(line)
    for row in tfhook("report", "--csv", path, codes=codes, evil=False).splitlines():
        assert not re.search(r"(^|,)[=+@-](?![0-9.])", row), row
    tfhook("report", "--steps", path, codes=codes, evil=False)
    tfhook("info", path, codes=codes, evil=b"evil" in os.fsencode(path))
    for words in ([], ["1"], ["gain"], ["verdict"], ["tier"]):
        tfhook("why", "--color=never", *words, path, codes=codes + (2,), evil=False)
    digest = "%d.digest.tft" % counted
    tfhook("digest", "-o", digest, path, codes=codes + (2,), evil=False)
    if os.path.exists(digest):
        tfhook("report", "--color=never", "--all", digest, codes=codes, evil=False)
        tfhook("diff", "--all", digest, path, codes=codes, evil=False)
        json.loads(tfhook("diff", "--json", digest, path, codes=codes, evil=False))
    for form in ("perfetto", "kineto", "csv", "folded", "otlp"):  # what they hold is the file's; what is said, the terminal's
        said = subprocess.run([TFHOOK, "export", "--to", form, "-o", "%d.%s" % (counted, form), path], capture_output=True, timeout=60)
        look("export " + form, said.stdout + said.stderr)
    return whole


def xplane(evil):
    """Twenty steps that wait for a stage of tf.data; planes, lines, events and stats are named with `evil`."""
    host, dev, main, loader, stream = Plane("/host:CPU"), Plane("/device:GPU:0"), [], [], []
    for i in range(20):
        t = i * 10 * MS
        main.append(("train", t, 10 * MS, {"_r": 1, "step_num": 100 + i, "s" + evil: evil}))
        main.append(("IteratorGetNextOp::DoCompute", t + MS, 7 * MS, {"id": 77, "group_id": i}))
        main.append(("Iterator::Root", t + MS + 1000, 7 * MS - 2000, {"id": 5}))
        main.append(("Iterator::Root::Prefetch" + evil, t + MS + 2000, 7 * MS - 5000, {"id": 6, "parent_id": 5}))
        loader.append(("Iterator::Root::Prefetch" + evil + "::Map" + evil, t + MS, 7 * MS - 10000, {"id": 7, "parent_id": 6}))
        main.append(("cuLaunchKernel", t + 8 * MS + 100000, 5000, {"correlation_id": i + 1}))
        stream.append(("gemm" + evil, t + 8 * MS + 200000, MS, {"correlation_id": i + 1}))
        main.append(("cuStreamSynchronize", t + 8 * MS + 120000, MS + 90000, {"id": 1}))
    host.line("python" + evil, main, 1)
    host.line("tf_data" + evil, loader, 2)
    dev.line("Stream #13(Compute)" + evil, stream, 13)
    return host.pack() + dev.pack() + Plane("plane" + evil).pack()


def write(name, data):
    with open(name, "wb") as f:
        f.write(data)
    return name


def traces():
    evil = "%s=1+1,\"@" % EVIL
    whole = read(write("k.json", json.dumps(kineto(evil)).encode()))
    assert any(EVIL in k["name"] for k in whole["kernels"]), "the JSON does not tell the name whole"
    raw = json.dumps(kineto("@@")).encode().replace(b"@@", RAW.replace(b"\n", b"\\n").replace(b"\r", b"\\r"))
    read(write("raw.json", raw))
    read(nsysdb.from_kineto(nsysdb.load("k.json"), "n.sqlite"))
    whole = read(write("x.xplane.pb", xplane(EVIL)))
    assert any(EVIL.split("[")[0] in s["name"] for s in whole["input"]["stages"]), whole["input"]
    for trace in ("k.json", "x.xplane.pb"):
        out = trace + ".tft"
        tfhook("import", trace, "-o", out, evil=False)
        read(out)
        # What no importer writes: versions, hosts and functions of that name.
        subprocess.run([EVIL_TFT, out, "evil-" + out, RAW], check=True)
        read("evil-" + out)
        tfhook("verify", "evil-" + out, evil=False)


def recorded():
    """A recorded run whose files were all written anew, killed and whole; run.json and end.json of others."""
    env = dict(os.environ, LD_LIBRARY_PATH=BUILD + "/sim")
    subprocess.run([TFHOOK, "run", "-q", "-o", "rec", LOOP, "--steps", "40", "--h2d", "100000", "--spin", "1000", "--mark", "1"],
                   env=env, check=True, stdout=subprocess.DEVNULL)
    name = b"evil" + RAW.replace(b"/", b"")
    os.mkdir(name)
    for file in os.listdir("rec"):
        if file.endswith(".tft"):
            target = name + b"/" + RAW.replace(b"/", b"") + file.encode()
            subprocess.run([EVIL_TFT, "rec/" + file, target, RAW], check=True)
        else:
            facts = json.load(open("rec/" + file))
            facts = {k: v + EVIL if isinstance(v, str) and k != "schema" else v for k, v in facts.items()}
            if "command" in facts:
                facts["command"] = [a + EVIL for a in facts["command"]]
                facts["env"] = {"TFHOOK_RANKZ" + EVIL: EVIL, "TFHOOK_CUPTI": EVIL}
            text = json.dumps(facts, indent=2, ensure_ascii=file == "end.json").encode(errors="surrogatepass")
            write(name + b"/" + file.encode(), text)
    read(name)
    tfhook("info", "--chunks", name)
    tfhook("verify", name)
    tfhook("repair", name, codes=(0, 3, 4))
    shutil.rmtree(name + b".repaired")
    for file in os.listdir(name):  # cut, empty, none
        if file.endswith(b".tft"):
            with open(name + b"/" + file, "rb+") as f:
                f.truncate(os.path.getsize(name + b"/" + file) - 100)
    write(name + b"/" + name + b".tft", b"")
    write(name + b"/" + name + b"2.tft", b"nothing of ours")
    for command in ("report", "info", "verify", "repair"):
        tfhook(command, name, codes=(0, 3, 4))
        tfhook(command, name + b"/no such", codes=(2, 3, 5))
        tfhook(command, name + b"/" + name + b"2.tft", codes=(2, 3, 5))
    shutil.rmtree(name)


def words():
    """Options, operands and variables; a program, a directory and a recorder's settings of such names."""
    bad = RAW.replace(b"/", b"")
    for command in ("run", "report", "info", "verify", "repair", "import", "ctl", "demo", "doctor", "env", "completions", "help"):
        for args in ([b"--" + bad], [b"-" + bad], [b"--color=" + bad], [b"--output=" + bad + b"/x/y", b"/dev/null"], [bad, bad, bad]):
            tfhook(command, *args, codes=range(128), evil=False)
    tfhook(bad, codes=(2,))
    tfhook("ctl", bad, "stop", codes=(2, 3, 5))
    tfhook("run", bad, codes=(127,))
    tfhook("run", "-o", bad, "--", LOOP, "--steps", "20", codes=(0, 1),
           env={"LD_LIBRARY_PATH": BUILD + "/sim", "TFHOOK_CUPTI": EVIL, "TFHOOK_" + EVIL: EVIL, "TFHOOK_VERBOSE": "2"})
    os.mkdir(b"d" + bad)
    os.symlink("/nowhere", b"d" + bad + b"/prog")
    tfhook("run", b"d" + bad + b"/prog", codes=(126, 127))
    tfhook("doctor", b"d" + bad + b"/prog", codes=(0, 1), env={"TFHOOK_DIR": EVIL, "NVTX_INJECTION64_PATH": EVIL})
    other = os.path.join(TMP, "\x1b[2J\u202eOWNED.so")  # that the loader finds: its own messages are none of ours
    shutil.copy(BUILD + "/sim/libcuda.so.1", other)
    tfhook("env", codes=(1,), evil=False, env={"LD_PRELOAD": other})
    tfhook("run", "-q", LOOP, "--steps", "3", codes=(0, 125), env={"TFHOOK_DIR": "/proc/" + EVIL})
    subprocess.run([LOOP, "--steps", "3"], env=dict(os.environ, LD_LIBRARY_PATH=BUILD + "/sim", TFHOOK_DIR="/proc/" + EVIL,
                                                    LD_PRELOAD=BUILD + "/lib/libtfhook.so", TFHOOK_VERBOSE="2",
                                                    TFHOOK_LOG="log"), stderr=open("stderr", "w"), stdout=subprocess.DEVNULL)
    for file in ("log", "stderr"):
        assert "OWNED" in look(file, open(file, "rb").read()), file


traces()
recorded()
words()
print("%d commands, no byte of theirs that a terminal obeys" % counted)
