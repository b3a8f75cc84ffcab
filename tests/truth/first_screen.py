"""What a person finds on the first screen of `tfhook report`, read from its words. Not a test."""
import re


# What no person would write: a function "in" a file that there is not, "50 ms of 50 ms", "1.0 calls", numba's escapes.
ODD = re.compile(r"<builtin>|: (\d[\d.]* \w+) of \1,|\b\d+\.0 calls?\b|_3clocals|\bnan\b|\(null\)")


class Screen:
    def __init__(self, text):
        self.text, self.lines = text, text.splitlines()
        self.title = self.lines[0] if self.lines else ""
        self.rows, self.next, self.sure, self.tables = {}, [], "", []
        self.head = next((line for line in self.lines if re.match(r"[A-Z]+(-BOUND)?( \((high|medium|low)\))?( |$)", line)
                          and re.match(r"(\w+-BOUND|BALANCED|UNCLASSIFIED)", line)), "")
        self.cls = self.head.split(" ")[0].lower()
        self.sureness = (re.search(r"\((high|medium|low)\)", self.head) or [None, None])[1]
        part, label = "", ""
        for line in self.lines[1:]:
            if not line.strip():
                part, label = "", ""
            elif line[0] != " ":
                part = line.split("  ")[0]
                self.sure += line if part == "SURE" else ""
            elif part == "SURE":
                self.sure += " " + line.strip()
            elif part == "DO NEXT":
                self.next += [line] if re.match(r"  \d ", line) else []
            elif part.startswith("WHERE"):
                self.tables.append(line)
            else:
                label = line[2:11].strip() or label
                self.rows[label] = self.rows.get(label, "") + " " + line[11:].strip()

    def percents(self):
        """Sums of the tables side by side, or below each other."""
        left = [int(m) for line in self.tables for m in re.findall(r"(\d+) %", line[:40])]
        right = [int(m) for line in self.tables for m in re.findall(r"(\d+) %", line[40:])]
        return [sum(t) for t in (left, right) if t]

    def blamed(self):
        """What is to blame, or why that is not known: label and words."""
        return {k: self.rows[k] for k in ("who", "stage", "line", "copies", "kernel", "ops", "rank") if k in self.rows}

    def unanswered(self):
        """Which of the questions it leaves open: class, line or stage, gain, certainty."""
        bound = self.cls.endswith("-bound")
        why = self.rows.get("why", "")
        # Of ranks no line or stage.
        exchange = "exchange" in why
        open_ones = {"class": not self.cls, "how sure": not self.sureness and self.cls != "unclassified",
                     "what to blame": bound and not self.blamed() and not exchange,
                     "gain": bound and not re.search(r" -> .*\d \w*s\b|at most [\d.]+x|^ none|^ no estimate: ", self.rows.get("gain", "")),
                     "what it rests on": not self.sure, "it in plain words": bool(ODD.search(" ".join(self.text.split())))}
        return [what for what, is_open in open_ones.items() if is_open]
