"""The intervals' definition as a plain loop over lists: everything anew from the whole past at each step."""

from math import exp, inf, log

HALF_LIVES, GAINS = (4.0, 16.0, 64.0, 256.0, inf), (0.05, 0.3, 1.0)


def quantile(values, miss):
    values = sorted(values)
    n = len(values)
    place = (1 - miss) * (n + 1) - 1
    if place >= n - 1:
        return values[-1] * (1 / ((n + 1) * miss)) ** 0.3
    if place <= 0:
        return values[0] * max(0.0, place + 1)
    i = int(place)
    return values[i] + (place - i) * (values[i + 1] - values[i])


def scale(sizes, half_life):
    weights = [0.5 ** ((len(sizes) - 1 - s) / half_life) for s in range(len(sizes))]
    return sum(w * a for w, a in zip(weights, sizes, strict=True)) / sum(weights)


def outlier_scale(sizes):
    return max(scale(sizes, 16.0), scale(sizes, 256.0))


def next_size(a, sizes, largest):
    """What a residual of size `a` counts as, after residuals that counted as `sizes`."""
    if not largest > 0:
        return a
    multiple = 100 + 1e6 / len(sizes) ** 3
    return min(a, max(multiple * outlier_scale(sizes), 1.2 * largest))


def next_largest(a, sizes, largest, alpha):
    if sizes and a > 0 and largest > 100 * outlier_scale(sizes):
        largest *= max(0.5 ** (1 / 1024), 1.2 ** (-alpha / 2))
    return max(largest, a)


GIVEN = "given"


def plain_widths(residuals, coverages, memory, prior, given=None):
    """Half-widths (steps, coverages), coverages ascending. given: one more scale for each step."""
    sizes, largest = [], 0.0
    kinds = HALF_LIVES if given is None else (*HALF_LIVES, GIVEN)
    scores = {h: list(prior) for h in kinds}

    def scale_of(h, t):
        return given[t] if h == GIVEN else scale(sizes, h)

    debts = [0.0] * len(coverages)
    past = [[] for _ in coverages]  # the candidates of every step
    widths = []
    for t, residual in enumerate(residuals):
        row = []
        for c, coverage in enumerate(coverages):
            if t == 0:
                row.append(inf)
                continue
            alpha, candidates = 1 - coverage, []
            for h in kinds:
                for gain in GAINS:
                    logit = log(alpha / (1 - alpha)) + gain * debts[c] + (debts[c] / (3 if debts[c] > 0 else 6)) ** 3
                    q = scale_of(h, t) * quantile(scores[h][-memory:], 1 / (1 + exp(-logit)))
                    candidates.append(min(q, largest * (1.2 + 10 / t)))
            size = sum(0.99 ** (t - 1 - s) * sizes[s] for s in range(1, t))
            losses = [0.0] * len(candidates)
            for s, earlier in enumerate(past[c], start=1):
                for k, q in enumerate(earlier):
                    over = sizes[s] - q
                    losses[k] += 0.99 ** (t - 1 - s) * (over * coverage if over > 0 else -over * alpha)
            best = min(losses)
            weights = [exp(-5 * (loss - best) / (size * alpha)) if size > 0 else 1.0 for loss in losses]
            mean = sum(w * q for w, q in zip(weights, candidates, strict=True)) / sum(weights)
            row.append(max([mean, *row]))
            past[c].append(candidates)
        widths.append(row)
        a = abs(residual)
        for c, coverage in enumerate(coverages):
            if t > 0 and (a > 0 or row[c] > 0):
                debts[c] += (1 - coverage) - (a > row[c])
        a = next_size(a, sizes, largest)
        largest = next_largest(a, sizes, largest, 1 - max(coverages))
        if t > 0:
            for h in kinds:
                unit = scale_of(h, t)
                scores[h].append(0.0 if a == 0 else 1000.0 if a >= 1000 * unit else a / unit)
        sizes.append(a)
    return widths
