"""What the tests of the page share: a recording, the page of it, and a browser that looks at it. Not a test."""
import contextlib
import json
import os
import subprocess
import sys

SRC, BUILD, TMP = os.environ["TFH_SRC"], os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
TFHOOK = BUILD + "/bin/tfhook"
LOOP = BUILD + "/tests/jobs/client_loop"


def begin():
    """Goes on with a python that drives browsers; a browser that is missing is installed, or named in a failure."""
    if os.environ.get("TFH_SAN") in ("address", "thread") or not os.path.exists(LOOP):
        print("needs client_loop, and a recorder that can be preloaded")
        sys.exit(77)
    if "TFH_PAGE" not in os.environ:
        status = subprocess.run([SRC + "/scripts/bootstrap", "page"]).returncode
        if status:
            sys.exit(77 if status == 3 else 1)  # 3: it can be had only as what does not do
        python = subprocess.run([SRC + "/scripts/python-env", "page"], check=True, stdout=subprocess.PIPE, text=True).stdout.split()[-1]
        os.execve(python, [python, *sys.argv], dict(os.environ, TFH_PAGE="1"))
    os.chdir(TMP)


def record(*args, name="rec", **env):
    subprocess.run([TFHOOK, "run", "-q", "-o", name, "--", LOOP, *map(str, args)], check=True, stdout=subprocess.DEVNULL,
                   env=dict(os.environ, LD_LIBRARY_PATH=BUILD + "/sim", **env))
    return name


def report(*args, codes=(0,)):
    run = subprocess.run([TFHOOK, "report", *args], capture_output=True, text=True)
    assert run.returncode in codes, (args, run.returncode, run.stderr)
    return run.stdout


def page_of(run, name="page.html", codes=(0,)):
    """The page of a recording, and its report as JSON."""
    report("--html", name, run, codes=codes)
    return os.path.abspath(name), json.loads(report("--json", run, codes=codes))


class Shown:
    """A page in a browser without a network, and all that it complained of and asked for."""

    def __init__(self, context, path, scripts=True):
        self.complaints, self.requests = [], []
        self.page = context.new_page()
        self.page.on("console", lambda m: self.complaints.append(m.text))
        self.page.on("pageerror", lambda e: self.complaints.append(str(e)))
        self.page.on("dialog", lambda d: (self.complaints.append("dialog " + d.message), d.dismiss()))
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.page.goto("file://" + path)
        self.page.wait_for_load_state("load")
        if scripts:  # what it draws is drawn
            self.page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def __call__(self, script, *args):
        return self.page.evaluate(script, *args)

    def quiet(self):
        assert not self.complaints, self.complaints
        assert len(self.requests) == 1, self.requests

    def fits(self):
        widths = self("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert widths[0] <= widths[1], "the page scrolls sideways: %s" % widths


@contextlib.contextmanager
def browser():
    from playwright.sync_api import sync_playwright  # of the environment that begin() has chosen
    with sync_playwright() as p:
        chromium = p.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"])
        try:
            yield lambda path, width=1280, **how: Shown(
                chromium.new_context(viewport={"width": width, "height": 900}, offline=True, **how), path,
                how.get("java_script_enabled", True))
        finally:
            chromium.close()
