"""Writes programs of the lab of literal lanes as litmus texts, each behind a line with the lab's answer.

driver.py FOLDER rows | FOLDER N SEED. A program is a line `@ NAME | ANSWERS | PAIRS`, its text, and an empty line. ANSWERS
are words; PAIRS are pairs of lines of racing instructions, or `?` if they may depend on values that a race leaves open.
A program that has no translation is a line `- REASON` alone.
"""
import random
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import fuzz
import lanes
import table

INDEX = {'l': 'mov.u32 i, lane;', '0': 'mov.u32 i, 0;', '+1': 'add.u32 i, lane, 1;\nrem.u32 i, i, {n};',
         '+2': 'add.u32 i, lane, 2;\nrem.u32 i, i, {n};', 'sh': 'add.u32 i, lane, 1;', '^1': 'xor.b32 i, lane, 1;',
         '/2': 'shr.u32 i, lane, 1;', 'rev': 'mov.u32 i, {last};\nsub.u32 i, i, lane;', 'lo': 'and.b32 i, lane, 1;',
         '1': 'mov.u32 i, 1;', '2': 'mov.u32 i, 2;', '3': 'mov.u32 i, 3;'}
ORDER = {'rlx': 'relaxed', 'acq': 'acquire', 'rel': 'release', 'ar': 'acq_rel'}
WAIT = 'mbarrier.%s_wait.parity.acquire.cta.shared::cta.b64 %s, [a], 0;'
PLAIN = {'fence': 'fence.acq_rel.gpu;', 'cpw': 'cp.async.wait_all;', 'bar': 'bar.sync 0;', 'exit': 'exit;'}


class Untold(Exception):
    """A program that means something else here."""


def elements(prog, kinds):
    return sorted({o.at(l, n) for n, code in prog.warps for o in code if o.k in kinds for l in lanes.lanes_of(o.mask, n)})


def arrivals(prog, place):
    each = [(o, l, n) for n, code in prog.warps for o in code if o.k == 'arr' for l in lanes.lanes_of(o.mask, n)]
    return sum(o.at(l, n) == place for o, l, n in each)


def count(prog, place):
    return prog.counts.get(place, prog.counts.get(place[0], 1))


def used(code, reg):
    return reg is not None and any((o.pred and o.pred[0] == reg) or o.rs == reg for o in code)


def overwritten(prog, place, wanted):
    """whether a store may leave less at a place than a wait wants: here the wait then hangs, in the lab it reads an older write"""
    each = [(o, l, n) for n, code in prog.warps for o in code if o.k == 'sst' for l in lanes.lanes_of(o.mask, n)]
    return any(o.at(l, n) == place and o.v < wanted for o, l, n in each)


def refuse(prog, answer):
    """Waits are by parity here, so no barrier may complete a third phase; and the lab does not let a test count as a wait."""
    if answer.proto and any(o.k == 'mt' for _, code in prog.warps for o in code):
        raise Untold('a test that may count as a wait')
    for place in elements(prog, {'arr', 'mw', 'mt'}):
        if arrivals(prog, place) >= 2 * count(prog, place):
            raise Untold('two phases of an mbarrier')
    for n, code in prog.warps:
        for o in code:
            if o.k in ('mw', 'mt') and o.v > 0:
                raise Untold('a wait for a later phase')
            if o.k == 'swait' and any(overwritten(prog, o.at(l, n), o.v) for l in lanes.lanes_of(o.mask, n)):
                raise Untold('a wait for a value that may be overwritten')
            inside = all(o.m >> lanes.FUN[o.f](l, n) & 1 for l in lanes.lanes_of(o.mask, n))
            if o.k == 'shf' and not (inside and o.rs) and used(code, o.r):
                raise Untold('a shuffle from nobody')
            if o.k == 'red' and o.sem in ('acq', 'ar'):
                raise Untold('a reduction that acquires')
            if o.k == 'exit' and o.pred:
                raise Untold('an exit that depends on a value')


class Text:
    def __init__(self, prog):
        self.prog, self.lines, self.where, self.labels = prog, [], {}, 0

    def add(self, *lines):
        self.lines += lines

    def label(self):
        self.labels += 1
        return 'L%d' % self.labels

    def warp(self, w, n, code):
        place = 'lanes 0-%d' % (n - 1) if n > 1 else 'lane 0'
        self.add('P%d (gpu 0, cta 0, warp %d, %s) {' % (w, w, place), '.reg lane = %laneid;', 'bar.sync 2;')
        for pc, o in enumerate(code):
            self.operation(w, pc, n, o)
        self.add('bar.sync 1;', '}')

    def operation(self, w, pc, n, o):
        guard, full = '', (1 << n) - 1
        if o.mask & full != full:
            self.add('mov.u32 g, %d;' % (o.mask & full), 'shr.u32 g, g, lane;', 'and.b32 g, g, 1;')
            guard = '@g '
        if o.pred:
            self.add('setp.eq.u32 h, %s, %d;' % o.pred)
            if guard:
                self.add('selp.b32 h, h, 0, g;')
            guard = '@h '
        if o.loc or o.k == 'shf':
            self.add(*INDEX[o.f].format(n=n, last=n - 1).split('\n'))
        if o.loc:
            size, name = (8, 'b') if o.k in lanes.MB else (4, 'm')
            self.add('mul.lo.u64 a, i, %d;' % size, 'add.u64 a, a, %s_%s;' % (name, o.loc))
        if o.rs:
            self.add('setp.ne.u32 s, %s, 0;' % o.rs)
        if o.k in ('swait', 'mw'):
            self.where[w, pc] = self.blocked(o, guard)
        else:
            self.add(guard + self.plain(o))
            self.where[w, pc] = len(self.lines)

    def blocked(self, o, guard):
        label, over = self.label(), self.label()
        if guard:
            self.add('@!%sbra %s;' % (guard[1:], over))
        self.add(label + ':')
        at = len(self.lines) + 1
        if o.k == 'mw':
            self.add(WAIT % ('try', 'p'), '@!p bra %s;' % label)
        else:
            self.add('ld.%s.gpu.shared.u32 w, [a];' % ORDER[o.sem])
            self.add('setp.lt.u32 p, w, %d;' % o.v, '@p bra %s;' % label)
        if guard:
            self.add(over + ':')
        return at

    def plain(self, o):
        order = ORDER[o.sem]
        return {
            'st': lambda: 'st.weak.shared.u32 [a], %d;' % o.v,
            'ld': lambda: 'ld.weak.shared.u32 %s, [a];' % (o.r or 't'),
            'cpa': lambda: 'cp.async.ca.shared.global [a], [source], 4;',
            'sst': lambda: 'st.%s.gpu.shared.u32 [a], %d;' % (order, o.v),
            'sld': lambda: 'ld.%s.gpu.shared.u32 %s, [a];' % (order, o.r or 't'),
            'red': lambda: 'red.%s.gpu.shared.add.u32 [a], 1;' % order,
            'atom': lambda: 'atom.%s.gpu.shared.add.u32 %s, [a], 1;' % (order, o.r or 't'),
            'arr': lambda: 'mbarrier.arrive.release.cta.shared::cta.b64 _, [a];',
            'mt': lambda: WAIT % ('test', o.r),
            'ws': lambda: 'bar.warp.sync %d;' % o.m,
            'shf': lambda: 'shfl.sync.idx.b32 %s, %s, i, 31, %d;' % (o.r or 't', o.rs or 'lane', o.m),
            'vote': lambda: 'vote.sync.any.pred %s, %s, %d;' % (o.r or 't', 's' if o.rs else 'zero', o.m),
        }.get(o.k, lambda: PLAIN[o.k])()


def written(prog, answer):
    refuse(prog, answer)
    t = Text(prog)
    t.add('moire "lab"', '.global .b32 source;')
    memory, barriers = elements(prog, lanes.DATA | lanes.STRONG), elements(prog, lanes.MB)
    for loc in sorted({loc for loc, _ in memory}):
        t.add('.shared .b8 m_%s[32];' % loc)
    for loc in sorted({loc for loc, _ in barriers}):
        t.add('.shared .b8 b_%s[64];' % loc)
    for w, (n, code) in enumerate(prog.warps):
        t.warp(w, n, code)
    # One more warp makes the mbarriers, and comes to each barrier of all threads.
    t.add('Q (gpu 0, cta 0, warp %d) {' % len(prog.warps))
    t.add(*('mbarrier.init.shared::cta.b64 [b_%s+%d], %d;' % (loc, 8 * at, count(prog, (loc, at))) for loc, at in barriers))
    t.add('bar.sync 2;', *['bar.sync 0;'] * max(sum(o.k == 'bar' for o in code) for _, code in prog.warps), 'bar.sync 1;', '}')
    return t


def told(name, prog, answer):
    try:
        text = written(prog, answer)
    except Untold as why:
        print('-', why)
        return
    words = [word for word, holds in (('race', answer.races), ('hang', answer.hang), ('protocol', answer.proto), ('undefined', answer.undef)) if holds]
    pairs = {tuple(sorted(text.where[w, pc] for w, _, pc in pair)) for pair in answer.races}
    steered = any(o.k == 'ld' and o.r and used(code, o.r) for _, code in prog.warps for o in code)
    said = '?' if steered else ' '.join('%d-%d' % pair for pair in sorted(pairs))
    print('@ %s | %s | %s' % (name, ' '.join(words), said))
    print('\n'.join(text.lines) + '\n')


def drawn(count, seed):
    rng, sizes = random.Random(seed), (2, 3, 3, 4)
    for number in range(count):
        if rng.random() < .6:
            prog = fuzz.gen_idiom(rng, sizes)
        else:
            prog = fuzz.gen(rng, rng.choice(['mix', 'mix', 'mbar', 'flag', 'coll', 'val']), sizes)
        try:
            told('%d of seed %d' % (number, seed), prog, lanes.run(prog, lanes.literal(prog), limit=3000))
        except lanes.Limit:
            print('-', 'more states than the lab takes')


if sys.argv[2] == 'rows':
    for name, _, prog in table.rows:
        told(name, prog, lanes.run(prog, lanes.literal(prog)))
else:
    drawn(int(sys.argv[2]), int(sys.argv[3]))
