#!/usr/bin/env python3
"""The JSON of a real recording, and of traces of others, fits docs/report.schema.json; shares add to 1; steps, CSV and report tell the same."""
import csv
import io
import json
import os
import re
import subprocess
import sys

SRC, BUILD, TMP = (os.environ[k] for k in ("TFH_SRC", "TFH_BUILD", "TFH_TMP"))
TFHOOK = os.path.join(BUILD, "bin/tfhook")
SCHEMA = json.load(open(os.path.join(SRC, "docs/report.schema.json")))
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def is_type(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def check(value, rule, at="$"):
    """The part of JSON Schema that the file uses; anything else in it is an error here."""
    known = {"$schema", "$defs", "title", "description", "type", "required", "properties", "const", "enum", "items", "$ref",
             "oneOf", "minimum", "maximum", "pattern", "propertyNames", "additionalProperties", "maxItems"}
    assert set(rule) <= known, (at, set(rule) - known)
    if "$ref" in rule:
        assert set(rule) <= {"$ref", "description"}, (at, rule)
        check(value, SCHEMA["$defs"][rule["$ref"].split("/")[-1]], at)
        return
    if "oneOf" in rule:
        fits = 0
        for option in rule["oneOf"]:
            try:
                check(value, option, at)
                fits += 1
            except AssertionError:
                pass
        assert fits == 1, (at, value)
    if "type" in rule:
        names = rule["type"] if isinstance(rule["type"], list) else [rule["type"]]
        assert any(is_type(value, n) for n in names), (at, value, names)
    assert "const" not in rule or value == rule["const"], (at, value)
    assert "enum" not in rule or value in rule["enum"], (at, value)
    if is_type(value, "number"):
        assert value >= rule.get("minimum", value) and value <= rule.get("maximum", value), (at, value)
    if isinstance(value, str) and "pattern" in rule:
        assert re.search(rule["pattern"], value), (at, value)
    if isinstance(value, list):
        assert len(value) <= rule.get("maxItems", len(value)), at
        for i, item in enumerate(value):
            check(item, rule.get("items", {}), "%s[%d]" % (at, i))
    if isinstance(value, dict) and "oneOf" not in rule:  # whose alternatives name the keys
        for key in rule.get("required", []):
            assert key in value, (at, "lacks", key)
        for key, item in value.items():
            check(key, rule.get("propertyNames", {}), at)
            inner = rule.get("properties", {}).get(key, rule.get("additionalProperties"))
            assert inner is not None, (at, "not in the schema", key)
            check(item, inner, at + "." + key)


def report(*flags):
    return subprocess.run([TFHOOK, "report", "rec", *flags], cwd=TMP, check=True, stdout=subprocess.PIPE, text=True).stdout


def main():
    job = os.path.join(BUILD, "tests/jobs/client_loop")
    if os.environ.get("TFH_SAN") in ("address", "thread") or not os.path.exists(job):
        print("needs client_loop, and a recorder that can be preloaded")
        return 77
    env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(BUILD, "sim"))
    subprocess.run([TFHOOK, "run", "-q", "-o", "rec", job, "--steps", "40", "--h2d", "1e6", "--spin", "3000"], cwd=TMP, env=env, check=True, stdout=subprocess.DEVNULL)
    result = json.loads(report("--json"))
    check(result, SCHEMA)
    assert abs(sum(p["share"] for p in result["breakdown"]) - 1) < 1e-6, result["breakdown"]
    assert abs(sum(p["s_per_step"] for p in result["breakdown"]) - result["steps"]["total_s"] / result["steps"]["count"]) < 1e-4
    assert result["end"]["how"] == "exit" and result["end"]["code"] == 0
    assert os.path.basename(result["run"]["command"][0]) == "client_loop"
    assert result["verdict"]["tier"] == "A" and result["quality"]["gpu_times"] == "cupti", result["quality"]
    assert 0 < result["quality"]["device_times_share"] < 1 and 0 < result["quality"]["cupti_share"] < 1, result["quality"]
    others = os.environ.get("TFH_TRACES")
    for name in sorted(os.listdir(others)) if others else []:
        if name.endswith((".json.gz", ".pb")):
            path = os.path.join(others, name)
            foreign = json.loads(subprocess.run([TFHOOK, "report", "--json", path], check=True, stdout=subprocess.PIPE).stdout)
            check(foreign, SCHEMA)
            assert foreign["quality"]["gpu_times"] == "imported" and foreign["run"]["source"] != "tft", name

    steps = [json.loads(line) for line in report("--steps", "--json").splitlines()]
    for step in steps:
        check(step, SCHEMA["$defs"]["step"], "step %d" % step["index"])
        total = sum(step["breakdown"].values())
        assert step["segment"] != "train" or abs(total - step["dur_s"]) < 1e-6 * max(1, step["dur_s"]) + 1e-5, step
    rows = list(csv.DictReader(io.StringIO(report("--csv"))))
    assert len(rows) == len(steps) > 30, (len(rows), len(steps))
    assert [int(r["index"]) for r in rows] == [s["index"] for s in steps]
    assert len(report("--steps").splitlines()) == len(steps) + 1
    train = [s for s in steps if s["segment"] == "train" and s["class"]]
    assert len(train) == result["steps"]["count"], (len(train), result["steps"])


if __name__ == "__main__":
    sys.exit(main())
