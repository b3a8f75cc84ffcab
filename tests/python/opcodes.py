#!/usr/bin/env python3
"""What must hold, of every CPython that is here: its opcodes do what lib/sampling/opcodes.def says, and have as much cache. The rows of a
new version: opcodes.py --rows, executed by it."""
import os
import re
import subprocess
import sys

KINDS = {
    "SKIP": "PUSH_NULL", "EXTEND": "EXTENDED_ARG", "SMALL_INT": "LOAD_SMALL_INT", "LOAD_CONST": "LOAD_CONST LOAD_CONST__LOAD_FAST",
    "LOAD_FAST": "LOAD_FAST LOAD_FAST_CHECK LOAD_FAST_BORROW LOAD_FAST__LOAD_FAST LOAD_FAST__LOAD_CONST", "LOAD_NAME": "LOAD_NAME",
    "LOAD_GLOBAL": "LOAD_GLOBAL", "LOAD_DEREF": "LOAD_DEREF", "LOAD_2": "LOAD_FAST_LOAD_FAST LOAD_FAST_BORROW_LOAD_FAST_BORROW",
    "STORE_FAST": "STORE_FAST DELETE_FAST STORE_FAST__LOAD_FAST STORE_FAST__STORE_FAST", "STORE_NAME": "STORE_NAME DELETE_NAME",
    "STORE_GLOBAL": "STORE_GLOBAL DELETE_GLOBAL", "STORE_DEREF": "STORE_DEREF DELETE_DEREF", "STORE_2": "STORE_FAST_STORE_FAST",
    "STORE_LOAD": "STORE_FAST_LOAD_FAST", "STORE_ATTR": "STORE_ATTR DELETE_ATTR", "SWAP": "SWAP ROT_TWO", "COPY": "DUP_TOP COPY", "ADD": "INPLACE_ADD BINARY_ADD", "BINARY": "BINARY_OP",
    "COMPARE": "COMPARE_OP", "YIELD": "YIELD_VALUE", "FOR": "FOR_ITER", "BRANCH": "SEND CALL_FINALLY", "FORWARD": "JUMP_FORWARD",
    "BACK": "JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT", "TO": "JUMP_ABSOLUTE",
    "ENDS": "RETURN_VALUE RETURN_CONST RAISE_VARARGS RERAISE INTERPRETER_EXIT", "CALL": "CALL_FUNCTION_EX PRECALL CALL CALL_KW",
    "REFUSED": "ENTER_EXECUTOR RESERVED TRACE_RECORD",
}


def rows():
    """(minor, opcode, kind, cache) of this interpreter, without what is plain."""
    import dis
    import opcode
    minor, plain = sys.version_info[1], {}
    numbers = dict(opcode.opmap) if minor < 11 else dict(dis._all_opmap) if minor < 13 else {**opcode.opmap, **opcode._specialized_opmap}
    for name, forms in getattr(opcode, "_specializations", {}).items():
        plain.update({form: name for form in forms})
    caches = getattr(opcode, "_inline_cache_entries", {})
    caches = dict(caches.items()) if hasattr(caches, "items") else {opcode.opname[i]: n for i, n in enumerate(caches)}
    kinds = {name: kind for kind, names in KINDS.items() for name in names.split()}
    kinds.update({"LOAD_ATTR": "ATTR_2" if minor >= 12 else "ATTR", "LOAD_METHOD": "ATTR"})
    for name, number in sorted(numbers.items(), key=lambda x: x[1]):
        base = plain.get(name, name)
        # Up to 3.12, a pair begins with the first of two instructions, and the second one follows.
        kind = kinds.get(name if "__" in name else base) or ("REFUSED" if name.startswith("INSTRUMENTED") else "PLAIN")
        jump = re.match(r"(POP_)?JUMP_(FORWARD_|BACKWARD_)?IF_(TRUE|FALSE|)", base)
        if jump:
            kind = jump.group(3) if jump.group(1) and jump.group(3) and not base.endswith("OR_POP") else "BRANCH"
            kind += "_TO" if opcode.opmap[base] in opcode.hasjabs else "_BACK" if jump.group(2) == "BACKWARD_" else ""
        cache = caches.get(base, 0) if "__" not in name else 0
        if number < 256 and (kind != "PLAIN" or cache):
            yield minor, number, kind, cache


if "--rows" in sys.argv:
    merged = []
    for minor, number, kind, cache in rows():
        if merged and merged[-1][2] == number - 1 and merged[-1][3:] == [kind, cache]:
            merged[-1][2] = number
        else:
            merged.append([minor, number, number, kind, cache])
    for row in merged:
        print("ROW(%d, %d, %d, %s, %d)" % tuple(row))
    sys.exit(0)

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
import interpreters  # noqa: E402

row = r"ROW\(\d+, \d+, \d+, \w+, \d+\)"
with open(os.path.join(here, "..", "..", "lib", "sampling", "opcodes.def")) as f:
    known = re.findall(row, f.read())
wrong = 0
for version, python in interpreters.every():
    told = subprocess.run([python, os.path.abspath(__file__), "--rows"], stdout=subprocess.PIPE, text=True, check=True).stdout.split("\n")[:-1]
    mine = [r for r in known if r.startswith("ROW(%s," % version.split(".")[1])]
    if mine != told:
        wrong += 1
        print("FAIL", version, "missing:", sorted(set(told) - set(mine)), "too many:", sorted(set(mine) - set(told)))
sys.exit(bool(wrong))
