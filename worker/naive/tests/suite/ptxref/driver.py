"""Runs ptxref.py on many files with enough rounds of its value fixpoint.

As published it stops after 1 + (computed stores) rounds, one too early where a constant store stands behind an await
or a branch: `st y,1; st x,1 || while (x != 1); st y,2 || while (y != 1)` is then said to terminate.
A file that takes more than two seconds is given up.
Usage: driver.py SCRIPT MODEL "Q6=B Q11=A" FILE...
"""
import os, signal, sys

script, model, settings = sys.argv[1:4]
sys.path.insert(0, os.path.dirname(script))
sys.dont_write_bytecode = True
import ptxref


def all_traces(pr, sw, bound=2):
    places = {pr.where(i['loc'])[0] for code in pr.code for i in code if 'loc' in i}
    domain = {p: {pr.init.get(p, 0)} for p in places}
    ops = [i for code in pr.code for i in code]
    computed = sum(1 for i in ops if i['op'] == 'rmw' or i['op'] == 'st' and isinstance(i['a'], str))
    for _ in range(computed + 2 + sum(1 for i in ops if i['op'] == 'br')):
        found = [ptxref.traces(pr, t, domain, sw, bound) for t in range(len(pr.code))]
        longer = {p: set(v) for p, v in domain.items()}
        for trace in (t for ts in found for t in ts):
            for place, value in trace.gives:
                longer[place].add(value)
        if longer == domain:
            break
        domain = longer
    return found


ptxref.all_traces = all_traces
overrides = tuple(tuple(s.split('=')) for s in settings.split())


def late(*_):
    raise TimeoutError


signal.signal(signal.SIGVTALRM, late)
for path in sys.argv[4:]:
    signal.setitimer(signal.ITIMER_VIRTUAL, 2)
    try:
        v = ptxref.verdicts(path, model, overrides)
        words = ' '.join(f'{k}:{ptxref.grade(k, x)}' for k, x in v.items())
    except TimeoutError:
        words = 'bound:late'
    except Exception as x:
        words = f'error:{x!r}'
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    print(model, os.path.basename(path), words)
