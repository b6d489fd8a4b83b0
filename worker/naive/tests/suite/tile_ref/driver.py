"""Runs the enumerator of the Tile IR lab on many programs.

Its answers are filtered: it has no floor under control dependencies, so executions whose values hold themselves up
through a condition (under NTA-2 also through token order) are dropped here, for outcomes and races alike.
Usage: driver.py REFMODEL, and on standard input one program a line: its threads, then its switches.
An answer is a line: whether some execution has a race, then the final states: what is read, in order, then x and y.
"""
import sys

sys.dont_write_bytecode = True
with open(sys.argv[1]) as f:
    text = f.read()
mark = "if not ok: continue"
assert text.count(mark) == 1, "the script is not the one this was written for"
ref = {"__name__": "refmodel"}
exec(compile(text.replace(mark, "if not (ok and floor(ev, rf | rmw | (rpo if V['NTA'] == '2' else set()))): continue"), "refmodel", "exec"), ref)


def floor(ev, rest):
    read = {(e.tb, e.ins.r): e for e in ev if e.k == "R"}
    for e in ev:
        needs = [e.ins.g[0]] if e.ins.g else []
        needs += [e.ins.v] if e.k == "W" and isinstance(e.ins.v, str) else []
        rest |= {(read[e.tb, r], e) for r in needs}
    return not any(a is b for a, b in ref["tc"](rest, ev))


ref["floor"] = floor
I = ref["I"]
for line in sys.stdin:
    threads, switches = eval(line)
    outcomes, racy = ref["run"](threads, **switches)
    names = [f"{t}:{i.r}" for t, thread in enumerate(threads) for i in thread if i.r]
    states = set()
    for read, memory in outcomes:
        read, memory = dict(read), dict(memory)
        states.add(" ".join(str(v) for v in [read.get(n, 0) for n in names] + [memory.get(l, 0) for l in "xy"]))
    print(("race;" if racy else "none;") + ";".join(sorted(states)))
