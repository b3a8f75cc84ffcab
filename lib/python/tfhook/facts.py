"""Identity and attributes of a run (job, team, image, ...), from its run.json or its digest."""
from __future__ import annotations

import dataclasses
import datetime
import hashlib
import json
import os
import pwd
from typing import Any, Dict, List, Mapping, Optional, Tuple

from .command import TfhookError, output
from .text import shown

DIGEST = "digest.tft"
OF_HOST = ".digest.tft"  # follows a host's name
MOST_BYTES = 1 << 20  # read of a run.json
#: Sources of a column: the label of that name, else the first of these recorded variables that is not empty (docs/fleets.md).
SOURCES: Mapping[str, Tuple[str, ...]] = {
    "cluster": ("SLURM_CLUSTER_NAME",),
    "owner": ("SLURM_JOB_USER",),
    "team": ("SLURM_JOB_ACCOUNT",),
    "image": ("APPTAINER_CONTAINER", "SINGULARITY_CONTAINER", "NVIDIA_BUILD_ID"),
    "hardware": ("SLURM_JOB_PARTITION",),
    "job": ("SLURM_JOB_NAME",),
    "settings": (),
}
ATTEMPT = ("SLURM_RESTART_COUNT", "TORCHELASTIC_RESTART_COUNT")


@dataclasses.dataclass(frozen=True)
class Facts:
    """What was recorded about a run when it began. Texts are escaped by `shown`."""
    host: str = ""
    start_utc: str = ""
    cwd: str = ""
    command: Tuple[str, ...] = ()
    env: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def day(self) -> Optional[datetime.date]:
        when = time_of(self.start_utc)
        return when.date() if when else None

    @property
    def run(self) -> str:
        """Id of the run, equal for the run directory, its copies and its digest."""
        known = [self.host, self.start_utc, self.cwd, list(self.command), sorted(self.env.items())]
        return hashlib.sha256(json.dumps(known).encode()).hexdigest()[:32]


def time_of(text: Optional[str]) -> Optional[datetime.datetime]:
    """Parses a time in the format of RFC 3339."""
    try:
        return datetime.datetime.fromisoformat((text or "").replace("Z", "+00:00"))
    except ValueError:
        return None


def digests_of_hosts(path: str) -> List[str]:
    """Names of the hosts' digests in a run directory in which several hosts recorded."""
    return sorted(name for name in os.listdir(path) if name.endswith(OF_HOST) and name[0] != ".") if os.path.isdir(path) else []


def read(path: str) -> Facts:
    """Reads the facts of a run directory or a digest. They are empty for another profiler's trace."""
    if os.path.isdir(path):
        named = os.path.join(path, "run.json")
        if os.path.isfile(named):
            return _from_json(named)
        path = os.path.join(path, next(iter(digests_of_hosts(path)), DIGEST))
    return _from_digest(path) if path.endswith(".tft") and os.path.isfile(path) else Facts()


def _from_json(path: str) -> Facts:
    try:
        with open(path, "rb") as f:
            data = json.loads(f.read(MOST_BYTES).decode("utf-8", "surrogateescape"))
        if not isinstance(data, dict):
            raise ValueError("no object")
    except (OSError, ValueError) as error:
        raise TfhookError("%s: %s" % (path, error), 3) from None
    env, command = data.get("env"), data.get("command")
    host, start_utc, cwd = (shown(data.get(name) or "") for name in ("host", "start_utc", "cwd"))
    return Facts(
        host, start_utc, cwd, tuple(shown(word) for word in command) if isinstance(command, list) else (),
        {shown(name): shown(value) for name, value in env.items()} if isinstance(env, dict) else {})


def _from_digest(path: str) -> Facts:
    facts: Dict[str, str] = {}
    command: List[str] = []
    for line in output(["info", path], empty=True).splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and name.startswith("command."):
            command.append(value)
        elif equals:
            facts.setdefault(name, value)
    return Facts(facts.get("run.host", ""), facts.get("run.start_utc", ""), facts.get("run.cwd", ""), tuple(command),
                 {name[len("env."):]: value for name, value in facts.items() if name.startswith("env.")})


def labels_of(text: str) -> Dict[str, str]:
    """Parses TFHOOK_LABELS: name=value,name=value. Ignores entries of another form."""
    pairs = (part.partition("=") for part in text.split(","))
    return {name: value for name, equals, value in pairs if equals and name}


def script_of(command: Tuple[str, ...]) -> Optional[str]:
    """The program that a command line runs: a script, a module, else the command itself."""
    for at, word in enumerate(command):
        if word.endswith(".py"):
            return os.path.basename(word)
        if word == "-m" and at and at + 1 < len(command) and os.path.basename(command[at - 1]).startswith("python"):
            return command[at + 1]
    return os.path.basename(command[0]) if command else None


def owner_of(path: str) -> Optional[str]:
    try:
        number = os.stat(path).st_uid
        return pwd.getpwuid(number).pw_name
    except OSError:
        return None
    except KeyError:
        return str(number)


def attributes(facts: Facts, path: str, given: Mapping[str, str]) -> Dict[str, Any]:
    """The columns with a run's attributes. `given`: the collector's labels, for runs that have no label of that name."""
    labels = {**given, **labels_of(facts.env.get("TFHOOK_LABELS", ""))}
    row: Dict[str, Any] = {}
    for column, variables in SOURCES.items():
        row[column] = labels.get(column) or next((facts.env[v] for v in variables if facts.env.get(v)), None)
    row["job"] = row["job"] or script_of(facts.command)
    row["owner"] = row["owner"] or owner_of(path)
    row["settings"] = row["settings"] or hashlib.sha256(json.dumps(facts.command[1:]).encode()).hexdigest()[:16]
    row["labels"] = sorted(labels.items())
    row["attempt"] = next((int(facts.env[v]) for v in ATTEMPT if facts.env.get(v, "").isdigit()), None)
    return row
