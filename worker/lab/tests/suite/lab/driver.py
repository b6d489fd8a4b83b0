"""Prints the programs of the tcgen05 lab, and single-edit mutants of them, with the kinds of finding the lab gives.

Usage: driver.py FOLDER SEED MUTANTS. One block per program, fields separated by tabs: `program` NAME HALF EDIT, `mbar` NAME
VALID COUNT, `meta` WORDS, `agent` NAME CTA SIZE GPU WARP, `op` VERB ARGUMENTS KEYS FLAGS, `group` CTA ID TOTAL SIZE
MEMBERS (the agents that meet at a named barrier before any edit), `kinds` SETTING KINDS, `end`.
"""
import importlib, random, sys

folder, seed, mutants = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
sys.path.insert(0, folder)
sys.dont_write_bytecode = True
import tcref
from tcref import DEFAULT, FLIPS, PRACTICE, Bound, Op, Program, analyse, explore, kinds, parse_pair

MODULES = 'programs_bugs programs_consan programs_examples programs_probes'.split()
SETTINGS = [('letter', DEFAULT), ('practice', PRACTICE)] + [(f'{q}={v}', dict(DEFAULT, **{q: v})) for q, v in FLIPS]


def judged(text, edit):
    """Finds the kinds of the edited program by setting, as tcref.judge does."""
    found, leaves = {}, {}
    for name, sw in SETTINGS:
        mode = sw['Q18']
        if mode not in leaves:
            got = []
            for blocks in {'A': (False, True), 'B': (False,), 'C': (True,)}[mode]:
                if blocks and 'g=2' not in text:
                    continue
                p = Program(text)
                edit(p)
                got += explore(p, blocks, 20000)[0]
            if not got:
                p = Program(text)
                edit(p)
                got = explore(p, False, 20000)[0]
            leaves[mode] = got
        all_of = set()
        for leaf in leaves[mode]:
            all_of |= analyse(leaf, sw)
        found[name] = kinds(all_of)
    return found


def dump(name, half, what, text, edit):
    try:
        found = judged(text, edit)
    except (Bound, KeyError):
        return False
    plain, p = Program(text), Program(text)
    edit(p)
    print('program', name, half, what, sep='\t')
    for b, (ok, count) in p.mbar.items():
        print('mbar', b, int(ok), count, sep='\t')
    if p.meta:
        print('meta', ' '.join(sorted(p.meta)), sep='\t')
    groups = {}
    for a in plain.agents:
        for o in a.ops:
            if o.v in ('bar', 'bara', 'wsync'):
                groups.setdefault((o.v == 'wsync', a.cta, o.a[0], o.a[1]), {})[a.name] = a.n
    for (warp, cta, ident, total), who in groups.items():
        print('group', int(warp), cta, ident, total, sum(who.values()), ' '.join(who), sep='\t')
    for a in p.agents:
        print('agent', a.name, a.cta, a.n, a.gpu, a.warp, sep='\t')
        for o in a.ops:
            if o.v not in ('exit', 'nop'):
                keys = ' '.join(f'{k}={v}' for k, v in o.k.items())
                print('op', o.v, ' '.join(o.a), keys, ' '.join(sorted(o.f)), sep='\t')
    for setting, k in found.items():
        print('kinds', setting, ' '.join(sorted(k)), sep='\t')
    print('end')
    return True


def weaker(o):
    """Lists ways to weaken or change one operation."""
    out = []
    if o.v in ('wait', 'twait'):
        out.append(Op(o.v, [o.a[0], str(1 - int(o.a[1]))] + o.a[2:], o.k, o.f, o.text))
    if o.v in ('wait', 'arrive', 'expect', 'csync'):
        out.append(Op(o.v, o.a, o.k, o.f ^ {'rlx'}, o.text))
    if o.v in ('wait', 'arrive'):
        out.append(Op(o.v, o.a, o.k, o.f ^ {'cluster'}, o.text))
    if o.v == 'arrive' and 'one' not in o.f:
        out.append(Op(o.v, o.a, o.k, o.f | {'one'}, o.text))
    if o.v in ('stf', 'red', 'atom', 'await'):
        out.append(Op(o.v, o.a, o.k, o.f - {'rel', 'acq'}, o.text))
    if o.v == 'bwait' and 'read' not in o.f:
        out.append(Op(o.v, o.a, o.k, o.f | {'read'}, o.text))
    return out


def change(p, rng):
    """Draws one edit and its name; None if the drawn place has none."""
    i = rng.randrange(len(p.agents))
    ops = p.agents[i].ops
    j = rng.randrange(len(ops))
    o = ops[j]
    how = rng.choice(['delete', 'delete', 'duplicate', 'move', 'weaken', 'weaken'])
    if o.v == 'exit':
        return None
    where = f'{how} {p.agents[i].name}.{j} {o.text}'
    if how == 'delete':
        return where, lambda q: q.agents[i].ops.pop(j)
    if how == 'duplicate':
        return where, lambda q: q.agents[i].ops.insert(j, q.agents[i].ops[j])
    if how == 'move':
        k = rng.randrange(len(ops) - 1)
        return f'{where} to {k}', lambda q: q.agents[i].ops.insert(k, q.agents[i].ops.pop(j))
    ways = weaker(o)
    if not ways:
        return None
    w = rng.choice(ways)

    def edit(q):
        q.agents[i].ops[j] = w
    return f'{where} to {" ".join([w.v] + w.a + sorted(w.f))}', edit


programs = []
for module in MODULES:
    for name, _, _, _, text in importlib.import_module(module).BUGS:
        buggy, fixed = parse_pair(text)
        for half, t in (('buggy', buggy), ('fixed', fixed))[buggy == fixed:]:
            programs.append((name, half, t))
if not mutants:
    for name, half, text in programs:
        if not dump(name, half, '', text, lambda p: None):
            print('bound', name, half, sep='\t')
rng, done, seen = random.Random(seed), 0, set()
able = [x for x in programs if ' skip ' not in x[2]]   # a skip counts operations
while done < mutants:
    name, half, text = rng.choice(able)
    found = change(Program(text), rng)
    if found and (name, half, found[0]) not in seen:
        seen.add((name, half, found[0]))
        done += dump(name, half, found[0], text, found[1])
