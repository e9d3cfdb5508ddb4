"""What the kernels must compute, in fp64 with numpy, and the checks against it.

A check gives a list of complaints, empty where all is right. It is run on an implementation: the
kernels on a GPU (device.py) or, in a rehearsal, the same rules in fp32 with numpy (NumpyKernels).
Comparisons are written so that a NaN fails them.
"""
import numpy as np

EPS = float(np.finfo(np.float32).eps)


def _wrong(name, got, wanted, tolerance):
    got = np.asarray(got, np.float64)
    if got.shape != wanted.shape:
        return ["%s: %s elements, wanted %s" % (name, got.shape, wanted.shape)]
    right = np.abs(got - wanted) <= tolerance
    if right.all():
        return []
    at = int(np.argmin(right))
    return ["%s: %d of %d wrong, first at %d: %r, wanted %r" %
            (name, int((~right).sum()), right.size, at, float(got.flat[at]),
             float(np.asarray(wanted).flat[at]))]


def gradients(kind, elements, random):
    """Gradients as they are hard for a selection."""
    noise = random.standard_normal(elements).astype(np.float32)
    if kind == "random":
        return noise
    if kind == "layered":  # 64 layers, each of a scale of its own
        scales = np.exp(2 * random.standard_normal(64)).astype(np.float32)
        return noise * scales[np.arange(elements) * 64 // max(1, elements)]
    if kind == "hot rows":  # rows of an embedding: nearly all nothing, a few large
        rows = np.zeros(elements, np.float32)
        for start in range(0, elements, 50 * 128):
            rows[start:start + 128] = noise[start:start + 128]
        return rows
    if kind == "all equal":
        return np.where(noise > 0, np.float32(0.25), np.float32(-0.25))
    raise ValueError(kind)


KINDS = ("random", "layered", "hot rows", "all equal")


def selection(values, kept):
    """Indices of the min(kept, n) largest magnitudes, ties to the lower index, rising."""
    order = np.lexsort((np.arange(values.size), -np.abs(values)))
    return np.sort(order[:min(kept, values.size)])


def check_pack(kernels, sizes, to_type, random):
    tensors = [gradients("layered", n, random) for n in sizes]
    scale, most = 0.5, 1.0
    out, total, norm, coefficient, bad = kernels.pack(tensors, to_type, scale, most)
    wrong = []
    written = [kernels.rounded(np.float32(scale) * t, to_type) for t in tensors]
    for n, got, wanted in zip(sizes, out, written):
        if not np.array_equal(got, wanted):
            wrong.append("tensor of %d elements: not the bits of the cast" % n)
    square = sum(float(np.sum(t.astype(np.float64) ** 2)) for t in written)
    wrong += _wrong("sum of squares", [total], np.array([square]), 1e-6 * square)
    wrong += _wrong("norm", [norm], np.array([square ** 0.5]), 1e-6 * square ** 0.5)
    clip = min(1.0, most / (square ** 0.5 + 1e-6))
    wrong += _wrong("clip coefficient", [coefficient], np.array([clip]), 1e-6)
    if bad:
        wrong.append("finite values are called infinite")
    if sizes and max(sizes) > 0:
        largest = int(np.argmax(sizes))
        tensors[largest][-1] = np.nan
        if not kernels.pack(tensors, to_type, scale, most)[4]:
            wrong.append("a NaN at the end of the largest tensor is not seen")
    return wrong


def check_sgd(kernels, elements, random):
    w, g = (random.standard_normal(elements).astype(np.float32) for _ in range(2))
    m = np.zeros(elements, np.float32)
    rate, momentum, decay = 0.1, 0.9, 1e-4
    wanted_w, wanted_m = w.astype(np.float64), m.astype(np.float64)
    for _ in range(3):
        wanted_m = momentum * wanted_m + g.astype(np.float64) + decay * wanted_w
        wanted_w = wanted_w - rate * wanted_m
    got_w, got_m = kernels.sgd(w, g, m, rate, momentum, decay, steps=3)
    # A few roundings a step, of numbers of this size.
    bound = 24 * EPS * (np.abs(w) + 3 * np.abs(g) + 1)
    return _wrong("weights", got_w, wanted_w, bound) + _wrong("momentum", got_m, wanted_m, bound)


def check_adam(kernels, elements, random):
    w, g = (random.standard_normal(elements).astype(np.float32) for _ in range(2))
    rate, beta1, beta2, eps, decay = 1e-3, 0.9, 0.999, 1e-8, 0.01
    wanted = w.astype(np.float64)
    mean = np.zeros(elements)
    variance = np.zeros(elements)
    for step in range(1, 4):
        wanted *= 1 - rate * decay
        mean = beta1 * mean + (1 - beta1) * g
        variance = beta2 * variance + (1 - beta2) * g.astype(np.float64) ** 2
        root = np.sqrt(variance / (1 - beta2 ** step)) + eps
        wanted -= rate * (mean / (1 - beta1 ** step)) / root
    got_w, got_mean, got_variance = kernels.adam(w, g, rate, beta1, beta2, eps, decay, steps=3)
    return (_wrong("weights", got_w, wanted, 24 * EPS * (np.abs(w) + 1)) +
            _wrong("mean", got_mean, mean, 24 * EPS * (np.abs(g) + 1e-3)) +
            _wrong("variance", got_variance, variance, 24 * EPS * (g.astype(np.float64) ** 2 + 1e-6)))


def check_dgc(kernels, elements, kept, kind, candidate_scale, random, steps=3):
    """Two stages: u' and v' against fp64, then the selection as an oracle on the kernel's own v'."""
    momentum = 0.9
    u = random.standard_normal(elements).astype(np.float32)
    v = random.standard_normal(elements).astype(np.float32)
    wrong = []
    for step in range(steps):  # the speculative path needs a threshold of the step before
        g = gradients(kind, elements, random)
        new_u, new_v, indices, values = kernels.dgc(g, u, v, kept, momentum, candidate_scale,
                                                    first=step == 0)
        name = "step %d of %s, %d of %d" % (step + 1, kind, kept, elements)
        wanted = min(kept, elements)
        if indices.size != wanted:
            return wrong + ["%s: %d sent, wanted %d" % (name, indices.size, wanted)]
        if wanted and (np.any(np.diff(indices.astype(np.int64)) <= 0) or indices[-1] >= elements):
            return wrong + ["%s: indices do not rise, or leave the tensor" % name]
        before = new_v.copy()  # as it was before sending
        before[indices] = values
        unsent = np.ones(elements, bool)
        unsent[indices] = False
        u64, v64, g64 = (x.astype(np.float64) for x in (u, v, g))
        u64 = momentum * u64 + g64
        bound = 4 * EPS * (np.abs(momentum * u) + np.abs(g) + np.abs(v) + 1e-30)
        wrong += _wrong(name + ": residual", before, v64 + u64, bound)
        wrong += _wrong(name + ": velocity", new_u[unsent], u64[unsent], bound[unsent])
        if np.any(new_u[indices] != 0) or np.any(new_v[indices] != 0):
            wrong.append(name + ": what was sent is not cleared")
        if not np.array_equal(selection(before, kept), indices):
            wrong.append(name + ": not the largest magnitudes, ties to the lower index")
        u, v = new_u, new_v
    if elements:
        skipped = kernels.dgc(g, u, v, kept, momentum, candidate_scale, first=False, skip=True)
        if not (np.array_equal(skipped[0], u) and np.array_equal(skipped[1], v)):
            wrong.append("a step to be skipped changed u or v")
    return wrong


def check_sparse(kernels, elements, kept, ranks, random):
    w = random.standard_normal(elements).astype(np.float32)
    rate = np.float32(0.1 / ranks)
    lists = []
    for _ in range(ranks):
        indices = np.sort(random.choice(elements, min(kept, elements), replace=False))
        lists.append((indices.astype(np.uint32),
                      random.standard_normal(indices.size).astype(np.float32)))
    wanted = w.copy()
    for indices, values in lists:  # in rank order, every operation rounded: the bits are known
        wanted[indices] = wanted[indices] - rate * values
    got = kernels.sparse_apply(w, lists, float(rate))
    wrong = [] if np.array_equal(got, wanted) else ["weights: not the bits of rank order"]
    if lists[0][0].size:
        lists[0][0][-1] = elements
        if not np.array_equal(kernels.sparse_apply(w, lists, float(rate)), w):
            wrong.append("an index beyond the tensor changed weights")
    return wrong


def check_add_relu(kernels, elements, random):
    a, b = (random.standard_normal(elements).astype(np.float32) for _ in range(2))
    wanted = np.maximum(a.astype(np.float64) + b, 0)
    return _wrong("y", kernels.add_relu(a, b), wanted, 2 * EPS * (np.abs(a) + np.abs(b)))


def check_batch_norm(kernels, rows, channels, random):
    x = (random.standard_normal((rows, channels)) * 3 + 5).astype(np.float32)
    residual = random.standard_normal((rows, channels)).astype(np.float32)
    gamma, beta = (random.standard_normal(channels).astype(np.float32) for _ in range(2))
    mean = x.astype(np.float64).mean(0)
    inverse = 1 / np.sqrt(x.astype(np.float64).var(0) + 1e-5)
    y = np.maximum(gamma * (x - mean) * inverse + beta + residual, 0)
    got_y, got_mean, got_inverse = kernels.batch_norm(x, residual, gamma, beta)
    bound = 64 * EPS * (np.abs(gamma) * inverse * (np.abs(x) + np.abs(mean)) + np.abs(beta) +
                        np.abs(residual) + 1)
    return (_wrong("mean", got_mean, mean, 16 * EPS * (np.abs(mean) + 1)) +
            _wrong("inverse deviation", got_inverse, inverse, 64 * EPS * inverse) +
            _wrong("y", got_y, y, bound))


def all_checks(full):
    """(name, check of an implementation and a random generator); `full` takes larger sizes."""
    edges = [0, 1, 3, 4, 4095, 4096, 4097]
    large = [1000003] if full else [20011]
    checks = []
    for to_type in ("fp32", "bf16"):
        checks.append(("pack to " + to_type,
                       lambda k, r, t=to_type: check_pack(k, edges + large, t, r)))
    checks.append(("pack of 1100 tensors",
                   lambda k, r: check_pack(k, [7 + i % 50 for i in range(1100)], "fp32", r)))
    for n in (1, 4097, large[0]):
        checks.append(("SGD of %d" % n, lambda k, r, n=n: check_sgd(k, n, r)))
        checks.append(("AdamW of %d" % n, lambda k, r, n=n: check_adam(k, n, r)))
        checks.append(("add + relu of %d" % n, lambda k, r, n=n: check_add_relu(k, n, r)))
    for n, kept in ((1, 1), (3, 5), (4096, 0), (4097, 4), (large[0], max(1, large[0] // 1000))):
        for kind in KINDS:
            for scale in (0.95, 0.0, 1e-6, 2.0):  # speculative, exact, and both ways back
                checks.append(("DGC %d of %d, %s, candidates %g" % (kept, n, kind, scale),
                               lambda k, r, n=n, kept=kept, kind=kind, s=scale:
                               check_dgc(k, n, kept, kind, s, r)))
    for n, kept, ranks in ((1, 1, 1), (4097, 5, 8), (large[0], large[0] // 1000, 8)):
        checks.append(("sparse apply %d of %d, %d ranks" % (kept, n, ranks),
                       lambda k, r, n=n, kept=kept, ranks=ranks: check_sparse(k, n, kept, ranks, r)))
    for rows, channels in ((7, 5), (513, 64)):
        checks.append(("batch norm + add + relu %d x %d" % (rows, channels),
                       lambda k, r, rows=rows, c=channels: check_batch_norm(k, rows, c, r)))
    return checks


class NumpyKernels:
    """The kernels' rules in fp32 on the CPU. `break_rule` spoils one of them, to see that the checks
    see it: "ties", "mask", "order"."""

    def __init__(self, break_rule=""):
        self._broken = break_rule

    @staticmethod
    def rounded(values, to_type):
        if to_type == "fp32":
            return values
        bits = values.astype(np.float32).view(np.uint32).astype(np.uint64)  # bf16, ties to even
        return (((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) << 16).astype(np.uint32).view(np.float32)

    def pack(self, tensors, to_type, scale, most):
        out = [self.rounded(np.float32(scale) * t, to_type) for t in tensors]
        total = sum(float(np.sum(t.astype(np.float64) ** 2)) for t in out)
        bad = not all(np.isfinite(t).all() for t in out)
        return out, total, total ** 0.5, min(1.0, most / (total ** 0.5 + 1e-6)), bad

    def sgd(self, w, g, m, rate, momentum, decay, steps):
        f = np.float32
        for _ in range(steps):
            m = f(momentum) * m + (g + f(decay) * w)
            w = w - f(rate) * m
        return w, m

    def adam(self, w, g, rate, beta1, beta2, eps, decay, steps):
        f = np.float32
        mean, variance = np.zeros_like(w), np.zeros_like(w)
        for step in range(1, steps + 1):
            w = w * f(1 - rate * decay)
            mean = f(beta1) * mean + f(1 - beta1) * g
            variance = f(beta2) * variance + f(1 - beta2) * g * g
            root = np.sqrt(variance) / f((1 - beta2 ** step) ** 0.5) + f(eps)
            w = w - f(rate / (1 - beta1 ** step)) * mean / root
        return w, mean, variance

    def dgc(self, g, u, v, kept, momentum, candidate_scale, first, skip=False):
        u, v = u.copy(), v.copy()
        if skip:
            return u, v, np.zeros(0, np.uint32), np.zeros(0, np.float32)
        u = np.float32(momentum) * u + g
        v = v + u
        if self._broken == "ties":
            order = np.lexsort((-np.arange(v.size), -np.abs(v)))
            indices = np.sort(order[:min(kept, v.size)])
        else:
            indices = selection(v, kept)
        values = v[indices]
        v[indices] = 0
        if self._broken != "mask":
            u[indices] = 0
        return u, v, indices, values

    def sparse_apply(self, w, lists, rate):
        if any(np.any(i >= w.size) for i, _ in lists):
            return w
        w = w.copy()
        for indices, values in (reversed(lists) if self._broken == "order" else lists):
            w[indices] = w[indices] - np.float32(rate) * values
        return w

    def add_relu(self, a, b):
        return np.maximum(a + b, np.float32(0))

    def batch_norm(self, x, residual, gamma, beta):
        mean = x.mean(0, dtype=np.float64).astype(np.float32)
        variance = ((x - mean) ** 2).mean(0, dtype=np.float64).astype(np.float32)
        inverse = np.float32(1) / np.sqrt(variance + np.float32(1e-5))
        return np.maximum(gamma * (x - mean) * inverse + beta + residual, np.float32(0)), mean, inverse
