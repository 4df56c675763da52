"""Spaces for strategies: made up, smooth, with kinds, and with variants that cannot be."""

import math
from random import Random

from policygen.gpu.strategies import AskedVariant, Domain

SCAN = {
    "ipt": range(7, 25),
    "tpb": range(128, 1025, 32),
    "ns": range(0, 2049, 4),
    "dcid": range(8),
    "l2w": range(0, 1201, 5),
    "trp": range(2),
    "ld": range(3),
}
"""As large as that of a scan: 2 * 10^10 variants."""
SMALL = {"ipt": range(2, 9, 2), "tpb": range(32, 257, 32), "ld": range(3)}


class Counted:
    """A domain whose key counts how often it is asked; large tiles cannot be."""

    def __init__(self, ranges, *, same=False):
        self.asked = 0
        self.same = same
        self.domain = Domain(ranges, self.key)

    def key(self, values):
        self.asked += 1
        ipt, tpb, *others = values
        if ipt * tpb > 1024 and len(others) == 1:
            return None
        # Under 64 threads the load modifier is ignored.
        return (ipt, tpb) if self.same and tpb < 64 else values


def smooth(seed):
    """Scores of the scan's space with one optimum, kinds that matter, and a limit of memory."""
    draw = Random(seed)
    items, threads = draw.randint(9, 22), draw.choice([192, 256, 320, 384, 512, 640])
    kinds = [draw.gauss(0, 0.03) for _ in range(8)]
    loads = [draw.gauss(0, 0.02) for _ in range(3)]
    ways = [draw.gauss(0, 0.05) for _ in range(2)]
    delay = draw.uniform(0, 2000)

    def score(values):
        ipt, tpb, ns, dcid, _, trp, ld = values
        tile = math.log2(ipt * tpb / (items * threads))
        found = 1.05 - 0.125 * tile**2 - 0.08 * abs(math.log2(tpb / threads))
        found += kinds[dcid] + loads[ld] + ways[trp]
        return max(0.3, found - (0.03 * abs(ns - delay) / 2048 if dcid else 0))

    return Domain(SCAN, lambda values: values if values[0] * values[1] <= 12288 else None), score


def searched(strategy, score, *, count, batch, late=0, noise=0.0, seed=0):
    """The scores of what a strategy asks for, which it is told with noise, at once or later."""
    draw, found, waiting = Random(seed), [], []
    while len(found) < count:
        asked = strategy.ask(min(batch, count - len(found)))
        if not asked:
            break
        found += [score(values) for values in asked]
        waiting.append(asked)
        if len(waiting) > late:
            strategy.tell(
                [AskedVariant(v, score(v) * math.exp(draw.gauss(0, noise))) for v in waiting.pop(0)]
            )
    return found


def everything(strategy, score, *, batch=7, late=0):
    """All that a strategy asks for until there is no more."""
    found, waiting = [], []
    while asked := strategy.ask(batch):
        found += asked
        waiting.append(asked)
        if len(waiting) > late:
            strategy.tell([AskedVariant(values, score(values)) for values in waiting.pop(0)])
    return found
