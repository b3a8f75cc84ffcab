#!/usr/bin/env python3
"""The completions in bash, zsh and fish themselves: commands, a command's flags, values of a flag, words of an operand, files.
timeout: 60
"""
import os
import pty
import re
import select
import subprocess
import sys
import time

build, src, tmp = os.environ["TFH_BUILD"], os.environ["TFH_SRC"], os.environ["TFH_TMP"]
tool = os.path.join(build, "bin", "tfhook")
os.chdir(tmp)
# (what is typed, what must be offered, what must not)
QUIET_S = 0.3
CASES = [("re", {"report", "repair"}, {"run", "ctl"}),
         ("to", {"top"}, {"report"}),
         ("report --ke", {"--kernels"}, {"--json", "report"}),
         ("top --open", {"--openmetrics"}, {"--once"}),
         ("completions f", {"fish"}, {"bash"}),
         ("help rep", {"report", "repair"}, {"run"}),
         ("report one-r", {"one-recording"}, {"report"}),
         ("run ls-my", {"ls-my-program"}, {"report"})]
# Values of flags: bash completes files there.
VALUES = [("report --color al", {"always"}, {"never"}), ("env --format sl", {"slurm"}, {"shell"})]


def script(shell):
    return subprocess.run([tool, "completions", shell], capture_output=True, text=True, check=True).stdout


def bash(typed):
    words = ["tfhook", *typed.split(" ")]
    code = script("bash") + "\nCOMP_WORDS=(%s); COMP_CWORD=%d; _tfhook; printf '%%s\\n' \"${COMPREPLY[@]}\"" % (" ".join(words), len(words) - 1)
    done = subprocess.run(["bash", "--norc", "-c", code], capture_output=True, text=True)
    assert not done.stderr, done.stderr
    return set(done.stdout.split())


def fish(typed):
    done = subprocess.run(["fish", "--no-config", "-c", script("fish") + "\ncomplete -C 'tfhook %s'" % typed], capture_output=True, text=True)
    assert not done.stderr, done.stderr
    return {line.split("\t")[0].rstrip("/") for line in done.stdout.splitlines()}


class Zsh:
    """zsh has no way to ask for completions: they are typed and listed on a terminal."""

    def __init__(self):
        os.mkdir("functions")
        with open("functions/_tfhook", "w") as f:
            f.write(script("zsh"))
        self.child, self.ours = pty.fork()
        if not self.child:
            os.environ.update(TERM="dumb", COLUMNS="200", LINES="50")
            os.execvp("zsh", ["zsh", "-f", "-i"])
        self.tell("PS1=; unsetopt zle_bracketed_paste; bindkey '^X?' list-choices; fpath=($PWD/functions $fpath); "
                  "autoload -Uz compinit; compinit -u -D; LISTMAX=1000; echo rea''dy\n", "ready")

    def tell(self, text, until):
        os.write(self.ours, text.encode())
        seen, end = "", time.monotonic() + 15
        while until not in seen:
            assert time.monotonic() < end, (text, seen)
            if select.select([self.ours], [], [], 0.2)[0]:
                seen += os.read(self.ours, 65536).decode(errors="replace")
        return seen

    def __call__(self, typed):
        # zsh leaves a list out while more is typed, so nothing is until it has been quiet; ^U forgets the line afterwards.
        seen = self.tell("tfhook %s\x18?" % typed, "")
        while select.select([self.ours], [], [], QUIET_S)[0]:
            seen += os.read(self.ours, 65536).decode(errors="replace")
        seen += self.tell("\x15echo do''ne\n", "done")
        return set(re.findall(r"[\w-]+", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", " ", seen)))


def asked(ask, typed, wanted):
    """What is offered; a shell that had no processor for a while is asked again."""
    for _ in range(4):
        got = ask(typed)
        if wanted <= got:
            break
    return got


def main():
    os.mkdir("one-recording")
    os.mkdir("bin")
    with open("bin/ls-my-program", "w") as f:
        f.write("#!/bin/sh\n")
    os.chmod("bin/ls-my-program", 0o755)
    os.environ["PATH"] = "%s:%s:%s" % (os.path.join(tmp, "bin"), os.path.dirname(tool), os.environ["PATH"])
    zsh = Zsh()
    for name, ask, cases in (("bash", bash, CASES), ("fish", fish, CASES + VALUES), ("zsh", zsh, CASES + VALUES)):
        for typed, wanted, unwanted in cases:
            got = asked(ask, typed, wanted)
            assert wanted <= got, (name, typed, wanted, got)
            assert not unwanted - set(typed.split()) & got, (name, typed, got)


if __name__ == "__main__":
    if subprocess.run([os.path.join(src, "scripts", "bootstrap"), "shells"]).returncode:
        sys.exit(77)
    sys.exit(main())
