"""What is timed: our kernels, each with the strongest ways to do the same that PyTorch offers.

A case is a dict (name, kind, elements, counted bytes, mix of reads and writes, launches) and a
function that makes the candidates; data are made when it is called and freed after. Peers that are
not installed, or that this list cannot call, stand in the table with a sentence.
"""
import math

import torch
import torch.nn.functional as F

from device import stream, workspace
from library import BF16, FP32, GELU, RELU, addresses, counts
from timing import Candidate

MIXES = ("R1W0", "R1W1", "R2W1", "R3W2", "R4W3")


def sets_for(bytes_a_set, l2):
    """How many sets of data make up four times the L2 cache."""
    return max(1, math.ceil(4 * l2 / max(1, bytes_a_set)))


def absent(name, sentence):
    def call(_):
        raise RuntimeError(sentence)
    return Candidate(name, call)


def _random(n, dtype=torch.float32, scale=1.0):
    return (torch.randn(n, device="cuda") * scale).to(dtype)


def _lists(sizes, dtype=torch.float32):
    """Tensors in memory of their own each, as a framework allocates them."""
    return [_random(n, dtype) for n in sizes]


def _slices(bucket, sizes):
    return list(torch.split(bucket, list(sizes)))


def _padded(sizes):
    return [(n + 3) // 4 * 4 for n in sizes]  # slices of a bucket at multiples of 16 bytes


def _bucket_views(sizes, dtype):
    bucket = torch.empty(sum(_padded(sizes)), dtype=dtype, device="cuda")
    views = [part[:n] for part, n in zip(_slices(bucket, _padded(sizes)), sizes)]
    return bucket, views


def _measure(kernels):
    return torch.zeros(kernels.call("measure_bytes"), dtype=torch.uint8, device="cuda")


def _state(kernels):
    import numpy as np
    return torch.as_tensor(np.frombuffer(kernels.initial_state(), np.uint8).copy()).cuda()


def _ours_pack(kernels, grads, views, to_type, measured):
    args = (addresses([g.data_ptr() for g in grads]), addresses([v.data_ptr() for v in views]),
            counts([g.numel() for g in grads]), len(grads), FP32, to_type)
    measure = partials = None
    if measured:
        measure = _measure(kernels)
        partials = torch.empty(kernels.call("pack_partials", *args), dtype=torch.float64,
                               device="cuda")

    def call():
        kernels.call("pack", *args, 1.0, measure.data_ptr() if measured else None,
                     partials.data_ptr() if measured else None, 1.0 if measured else 0.0, stream())
    call.measure = measure
    call.keep = (grads, views, partials)
    return call


def pack_case(kernels, name, sizes, to_bf16, l2):
    n = sum(sizes)
    counted = n * (6 if to_bf16 else 8)
    dtype = torch.bfloat16 if to_bf16 else torch.float32

    def make():
        sets = sets_for(counted, l2)
        data = []
        for _ in range(sets):
            grads = _lists(sizes)
            _, views = _bucket_views(sizes, dtype)
            data.append((grads, views, _ours_pack(kernels, grads, views,
                                                  BF16 if to_bf16 else FP32, to_bf16)))
        peers = []
        if to_bf16:
            def copies_and_norm(i):
                torch._foreach_copy_(data[i][1], data[i][0])
                torch.linalg.vector_norm(torch.stack(torch._foreach_norm(data[i][0])))
            peers.append(Candidate("_foreach_copy_ + _foreach_norm", copies_and_norm))
        else:
            peers.append(Candidate("_foreach_copy_",
                                   lambda i: torch._foreach_copy_(data[i][1], data[i][0])))
            flat = torch.empty(n, device="cuda")
            peers.append(Candidate("cat(out=)", lambda i: torch.cat(data[i][0], out=flat)))
            peers.append(absent("cub::DeviceMemcpy::Batched", "PyTorch has no call for it"))
            peers.append(absent("cudaMemcpyBatchAsync", "PyTorch has no call for it"))
        return Candidate("pack", lambda i: data[i][2]()), peers, sets

    what = "pack to bf16 + norm" if to_bf16 else "pack fp32"
    return {"case": what + ", " + name, "kind": "pack", "elements": n, "counted_bytes": counted,
            "mix": "R2W1" if to_bf16 else "R1W1", "launches": math.ceil(len(sizes) / 1000)}, make


def update_case(kernels, name, n, rule, l2):
    size = {"SGD": 12, "momentum": 20, "AdamW": 28}[rule]

    def make():
        sets = sets_for(size * n, l2)
        data = []
        for _ in range(sets):
            own = [_random(n), _random(n, scale=0.01)] + [torch.zeros(n, device="cuda")
                                                          for _ in range((size - 12) // 8)]
            peer = [own[0].clone(), own[1]] + [torch.zeros(n, device="cuda")
                                               for _ in range((size - 12) // 8)]
            data.append((own, peer, _state(kernels)))
        steps = [torch.ones((), device="cuda") for _ in range(sets)]

        def ours(i):
            (w, g, *moments), _, state = data[i]
            if rule == "AdamW":
                kernels.call("update_adam", w.data_ptr(), g.data_ptr(), FP32, moments[0].data_ptr(),
                             moments[1].data_ptr(), None, n, 1e-3, 0.9, 0.999, 1e-8, 0.01, 1, 1.0,
                             None, None, state.data_ptr(), stream())
            else:
                kernels.call("update_sgd", w.data_ptr(), g.data_ptr(), FP32,
                             moments[0].data_ptr() if moments else None, None, n, 1e-3,
                             0.9 if moments else 0.0, 0.0, 0.0, 0, 1.0, None, None,
                             state.data_ptr(), stream())

        def fused(i):
            _, (w, g, *moments), _ = data[i]
            if rule == "AdamW":
                torch._fused_adamw_([w], [g], [moments[0]], [moments[1]], [], [steps[i]], lr=1e-3,
                                    beta1=0.9, beta2=0.999, weight_decay=0.01, eps=1e-8,
                                    amsgrad=False, maximize=False)
            else:
                torch._fused_sgd_([w], [g], moments, weight_decay=0.0,
                                  momentum=0.9 if moments else 0.0, lr=1e-3, dampening=0.0,
                                  nesterov=False, maximize=False, is_first_step=False)
        return (Candidate(rule, ours),
                [Candidate("_fused_adamw_" if rule == "AdamW" else "_fused_sgd_", fused)], sets)

    mix = {"SGD": "R2W1", "momentum": "R3W2", "AdamW": "R4W3"}[rule]
    return {"case": "%s, %s" % (rule, name), "kind": "update", "elements": n,
            "counted_bytes": size * n, "mix": mix, "launches": 1}, make


def pipeline_case(kernels, name, sizes, l2):
    """Gradients -> bucket, norm, clipped AdamW, bf16 weights. The peer unpacks, as DDP's buckets
    without views do."""
    n = sum(sizes)
    padded = sum(_padded(sizes))
    counted = n * (8 + 30)

    def make():
        sets = sets_for(counted, l2)
        data = []
        for _ in range(sets):
            grads = _lists(sizes)
            bucket, views = _bucket_views(sizes, torch.float32)
            bucket.zero_()
            flat = [torch.randn(padded, device="cuda"), torch.zeros(padded, device="cuda"),
                    torch.zeros(padded, device="cuda")]
            copy = torch.empty(padded, dtype=torch.bfloat16, device="cuda")
            weights = _lists(sizes)
            peer = (weights, [torch.zeros_like(w) for w in weights],
                    [torch.zeros_like(w) for w in weights],
                    [torch.empty_like(w, dtype=torch.bfloat16) for w in weights],
                    [torch.ones((), device="cuda") for _ in weights])
            data.append((grads, bucket, views, flat, copy, peer,
                         _ours_pack(kernels, grads, views, FP32, True), _state(kernels)))

        def ours(i):
            _, bucket, _, (w, mean, variance), copy, _, pack, state = data[i]
            pack()
            measure = pack.measure.data_ptr()
            kernels.call("update_adam", w.data_ptr(), bucket.data_ptr(), FP32, mean.data_ptr(),
                         variance.data_ptr(), copy.data_ptr(), padded, 1e-3, 0.9, 0.999, 1e-8, 0.01,
                         1, 1.0, measure + 12, measure + 16, state.data_ptr(), stream())

        def theirs(i):
            grads, _, views, _, _, (weights, means, variances, copies, steps), _, _ = data[i]
            torch._foreach_copy_(views, grads)
            torch._foreach_copy_(grads, views)
            norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(grads)))
            torch._foreach_mul_(grads, torch.clamp(1.0 / (norm + 1e-6), max=1.0))
            torch._fused_adamw_(weights, grads, means, variances, [], steps, lr=1e-3, beta1=0.9,
                                beta2=0.999, weight_decay=0.01, eps=1e-8, amsgrad=False,
                                maximize=False)
            torch._foreach_copy_(copies, weights)
        return (Candidate("pack + AdamW", ours),
                [Candidate("copy, copy back, clip, _fused_adamw_, copy", theirs)], sets)

    return {"case": "clip + AdamW + bf16 copy, " + name, "kind": "pipeline", "elements": n,
            "counted_bytes": counted, "mix": "R4W3", "launches": 2}, make


def _dgc_set(kernels, sizes, kept, flat):
    """One set of data: (gradients, (velocity, residual), plan, (indices, values, reports), what
    keeps the workspace alive, the scale of each gradient)."""
    layers = torch.exp(2 * torch.randn(64, device="cuda"))
    scale = [layers[i % 64] for i in range(len(sizes))]
    if flat:
        scale = [layers.repeat_interleave(math.ceil(sum(sizes) / 64))[:sum(sizes)]]
    grads = [_random(m) * s for m, s in zip(sizes, scale)]
    own = [[torch.zeros(m, device="cuda") for m in sizes] for _ in range(2)]
    plan = kernels.call("dgc_create", addresses([g.data_ptr() for g in grads]),
                        addresses([u.data_ptr() for u in own[0]]),
                        addresses([v.data_ptr() for v in own[1]]), None, counts(sizes),
                        counts(kept), len(sizes), FP32)
    at, size, memory = workspace(kernels, "dgc_workspace_bytes", plan)
    kernels.call("dgc_prepare", plan, at, size, stream())
    packed = kernels.call("dgc_packed", plan)
    out = (torch.empty(packed, dtype=torch.int32, device="cuda"),
           torch.empty(packed, device="cuda"),
           torch.empty(len(sizes) * kernels.call("dgc_report_bytes"), dtype=torch.uint8,
                       device="cuda"))
    return grads, own, plan, out, memory, scale


def _dgc_peers(data, state, kept, flat):
    def select(u, v, magnitude, m):
        _, index = torch.topk(magnitude, m, sorted=False)
        values = v[index]
        u.index_fill_(0, index, 0)
        v.index_fill_(0, index, 0)
        return index, values

    def eager(i):
        us, vs = state[i]
        for g, u, v, m in zip(data[i][0], us, vs, kept):
            torch.add(g, u, alpha=0.9, out=u)
            v.add_(u)
            select(u, v, v.abs(), m)

    def update(g, u, v):
        u.mul_(0.9).add_(g)
        v.add_(u)
        return v.abs()
    compiled_update = torch.compile(update, dynamic=False)

    def compiled(i):
        us, vs = state[i]
        for g, u, v, m in zip(data[i][0], us, vs, kept):
            select(u, v, compiled_update(g, u, v), m)

    def sampled(i):
        """A threshold from a strided 1 % sample; sends about as many."""
        us, vs = state[i]
        for g, u, v, m in zip(data[i][0], us, vs, kept):
            torch.add(g, u, alpha=0.9, out=u)
            v.add_(u)
            sample = v[::100].abs()
            threshold = torch.topk(sample, max(1, m // 100))[0].min()
            index = (v.abs() >= threshold).nonzero().view(-1)
            u.index_fill_(0, index, 0)
            v.index_fill_(0, index, 0)
    peers = [Candidate("eager update + topk", eager)]
    if flat:
        peers = [Candidate("torch.compile'd update + topk", compiled)] + peers + [
            Candidate("sampled threshold (not exact)", sampled),
            absent("compiled update + cub::DeviceTopK",
                   "DeviceTopK came with CCCL 3.2; CUDA 13.0 brings CCCL 3.0"),
            absent("Paddle's k_select", "the Fleet collective library is not installed")]
    return peers


def dgc_case(kernels, name, sizes, l2, flat):
    n = sum(sizes)
    kept = [max(1, m // 1000) for m in sizes]
    counted = 20 * n

    def make():
        sets = sets_for(12 * n, l2)
        data = []
        for _ in range(sets):
            data.append(_dgc_set(kernels, sizes, kept, flat))

        def ours(i):
            _, _, plan, (indices, values, reports), _, _ = data[i]
            kernels.call("dgc_step", plan, 0.9, 1.0, 0.0, 0, None, 0, None, 0.95,
                         indices.data_ptr(), values.data_ptr(), reports.data_ptr(), stream())

        # Residuals as after so many steps of fresh noise: they pile up under the threshold.
        for i in range(sets):
            grads, _, _, _, _, scale = data[i]
            for _ in range(60):
                for g, factor in zip(grads, scale):
                    torch.randn(g.numel(), out=g).mul_(factor)
                ours(i)
        state = [([u.clone() for u in own[0]], [v.clone() for v in own[1]])
                 for _, own, _, _, _, _ in data]

        return Candidate("dgc_step", ours), _dgc_peers(data, state, kept, flat), sets

    return {"case": "dgc_step, " + name, "kind": "dgc_step", "elements": n,
            "counted_bytes": counted, "mix": "R3W2", "launches": 7, "kept": sum(kept)}, make


def sparse_case(kernels, name, n, ranks, l2):
    kept = n // 1000
    counted = 72 * ranks * kept

    def make():
        # Of the weights only touched sectors move: few sets suffice to leave nothing in the cache.
        sets = sets_for(counted, l2) if n < 50e6 else 4
        weights = torch.randn(n, device="cuda")
        data = []
        for _ in range(sets):
            lists = [torch.randperm(n, device="cuda", dtype=torch.int32)[:kept].sort()[0]
                     for _ in range(ranks)]
            data.append((torch.cat(lists), 1e-6 * torch.randn(ranks * kept, device="cuda"), lists))
        plan = kernels.call("sparse_create", addresses([weights.data_ptr()]), counts([n]),
                            counts([kept]), 1)
        at, size, memory = workspace(kernels, "sparse_workspace_bytes", plan)
        kernels.call("sparse_prepare", plan, at, size, stream())
        rejected = torch.zeros(1, dtype=torch.int32, device="cuda")
        dense = torch.zeros(n, device="cuda")
        peer = weights.clone()

        def ours(i):
            indices, values, _ = data[i]
            kernels.call("sparse_apply", plan, ranks, indices.data_ptr(), values.data_ptr(), kept,
                         0.1, 1, rejected.data_ptr(), stream())

        def scatter_dense(i):
            dense.zero_()
            for rank, index in enumerate(data[i][2]):
                dense.index_add_(0, index, data[i][1][rank * kept:(rank + 1) * kept])
            torch._fused_sgd_([peer], [dense], [], weight_decay=0.0, momentum=0.0, lr=0.1,
                              dampening=0.0, nesterov=False, maximize=False, is_first_step=False)

        def straight(i):
            for rank, index in enumerate(data[i][2]):
                peer.index_add_(0, index, data[i][1][rank * kept:(rank + 1) * kept], alpha=-0.1)
        return (Candidate("sparse_apply", lambda i, keep=memory: ours(i)),
                [Candidate("index_add_ into the weights, rank by rank", straight),
                 Candidate("zero, index_add_, _fused_sgd_ (the goal's peer)", scatter_dense)], sets)

    return {"case": "sparse_apply of %d ranks, %s" % (ranks, name), "kind": "sparse_apply",
            "elements": n, "counted_bytes": counted, "mix": None, "launches": 2,
            "kept": kept}, make


def batch_norm_case(kernels, name, shape, with_add, l2):
    batch, height, width, channels = shape
    n = batch * height * width * channels
    counted = n * (8 if with_add else 6)

    def make():
        sets = sets_for(counted, l2)
        rows = n // channels
        gamma, beta, mean, inverse = (torch.ones(channels, device="cuda") for _ in range(4))
        work = torch.empty(kernels.call("batch_norm_workspace", rows, channels), device="cuda")
        data = []
        for _ in range(sets):
            x, z = (_random(n, torch.bfloat16).view(batch, height, width, channels)
                    for _ in range(2))
            data.append((x, z, torch.empty_like(x), x.permute(0, 3, 1, 2), z.permute(0, 3, 1, 2)))

        def ours(i):
            x, z, y, _, _ = data[i]
            kernels.call("batch_norm_forward", BF16, rows, channels, 1, 1e-5, x.data_ptr(),
                         z.data_ptr() if with_add else None, gamma.data_ptr(), beta.data_ptr(),
                         mean.data_ptr(), inverse.data_ptr(), None, None, 0.1, work.data_ptr(),
                         y.data_ptr(), stream())

        def plain(x, z):
            y = F.batch_norm(x, None, None, gamma, beta, training=True)
            return F.relu(y + z if with_add else y)
        compiled = torch.compile(plain, dynamic=False)

        def run(function):
            def call(i):
                with torch.no_grad():
                    function(data[i][3], data[i][4])
            return call
        return (Candidate("batch_norm", ours),
                [Candidate("eager (cuDNN batch norm)", run(plain)),
                 Candidate("torch.compile", run(compiled)),
                 absent("cuDNN BN_ADD_ACTIVATION",
                        "cudnnBatchNormalizationForwardTrainingEx has no call in PyTorch")], sets)

    return {"case": "batch norm%s + relu, %s" % (" + add" if with_add else "", name),
            "kind": "elementwise", "elements": n, "counted_bytes": counted, "mix": "R2W1",
            "launches": 2}, make


def add_relu_case(kernels, name, n, l2):
    def make():
        sets = sets_for(6 * n, l2)
        data = [tuple(_random(n, torch.bfloat16) for _ in range(3)) for _ in range(sets)]

        def ours(i):
            a, b, y = data[i]
            kernels.call("add_activation", BF16, RELU, a.data_ptr(), b.data_ptr(), y.data_ptr(), n,
                         stream())
        compiled = torch.compile(lambda a, b: F.relu(a + b), dynamic=False)
        return (Candidate("add_activation", ours),
                [Candidate("eager, two kernels", lambda i: F.relu(data[i][0] + data[i][1])),
                 Candidate("torch.compile", lambda i: compiled(data[i][0], data[i][1]))], sets)
    return {"case": "add + relu bf16, " + name, "kind": "elementwise", "elements": n,
            "counted_bytes": 6 * n, "mix": "R2W1", "launches": 1}, make


_ARITHMETIC = "bound by arithmetic: bytes and their predicted time are a floor far below"


def _gemm_workspace(kernels):
    size = kernels.call("gemm_workspace_bytes")
    return torch.empty(size, dtype=torch.uint8, device="cuda"), size


def linear_case(kernels, name, rows, inputs, outputs, l2):
    """A transformer's first feed-forward product with bias and gelu (its form with tanh, which is
    the one that cublasLt has); nothing is kept for the backward pass, as in the peers."""
    elements = rows * outputs
    counted = 2 * (rows * inputs + outputs * inputs + outputs + elements)

    def make():
        sets = sets_for(counted, l2)
        memory, size = _gemm_workspace(kernels)
        w = _random(outputs * inputs, torch.bfloat16, inputs ** -0.5).view(outputs, inputs)
        b = _random(outputs, torch.bfloat16)
        data = [(_random(rows * inputs, torch.bfloat16).view(rows, inputs),
                 torch.empty(rows, outputs, dtype=torch.bfloat16, device="cuda"))
                for _ in range(sets)]

        def ours(i):
            x, y = data[i]
            kernels.call("linear_forward", BF16, GELU, rows, inputs, outputs, x.data_ptr(),
                         w.data_ptr(), b.data_ptr(), y.data_ptr(), None, memory.data_ptr(), size,
                         stream())

        def plain(x):
            return F.gelu(F.linear(x, w, b), approximate="tanh")
        compiled = torch.compile(plain, dynamic=False)
        return (Candidate("linear_forward", ours, _ARITHMETIC),
                [Candidate("_addmm_activation(use_gelu=True)",
                           lambda i: torch._addmm_activation(b, data[i][0], w.t(), use_gelu=True)),
                 Candidate("F.linear + F.gelu", lambda i: plain(data[i][0])),
                 Candidate("torch.compile", lambda i: compiled(data[i][0]))], sets)

    return {"case": "linear + bias + gelu bf16, " + name, "kind": "gemm", "elements": elements,
            "counted_bytes": counted, "mix": None, "launches": 1,
            "flop": 2 * rows * inputs * outputs}, make


def linear_gradient_case(kernels, name, rows, inputs, outputs, l2):
    """Behind it, the second product's gradients: through gelu with its bias gradient, and of the
    weights with theirs. Here `inputs` are the wide side."""
    counted = 2 * (2 * rows * (inputs + outputs) + 2 * outputs * inputs + 2 * rows * inputs)

    def make():
        sets = sets_for(counted, l2)
        memory, size = _gemm_workspace(kernels)

        def halves(*shape):
            return _random(math.prod(shape), torch.bfloat16).view(*shape)
        w = halves(outputs, inputs)
        # What a forward pass keeps is z, rows of a multiple of 8 elements: here just random.
        assert kernels.call("linear_aux_bytes", BF16, GELU, rows, inputs) == 2 * rows * inputs
        data = [(halves(rows, inputs), halves(rows, inputs), halves(rows, outputs))
                for _ in range(sets)]
        dz, dw = torch.empty_like(data[0][0]), torch.empty_like(w)
        db, db_before = halves(outputs), halves(inputs)

        def ours(i):
            z, x, dy = data[i]
            kernels.call("linear_input_gradient", BF16, GELU, rows, inputs, outputs, dy.data_ptr(),
                         w.data_ptr(), z.data_ptr(), dz.data_ptr(), db_before.data_ptr(),
                         memory.data_ptr(), size, stream())
            kernels.call("linear_weight_gradient", BF16, rows, inputs, outputs, dy.data_ptr(),
                         x.data_ptr(), dw.data_ptr(), db.data_ptr(), memory.data_ptr(), size,
                         stream())

        def plain(z, x, dy):
            dz = torch.ops.aten.gelu_backward(dy.mm(w), z, approximate="tanh")
            return dz, dz.sum(0), dy.t().mm(x), dy.sum(0)
        compiled = torch.compile(plain, dynamic=False)
        return (Candidate("linear_input_gradient, linear_weight_gradient", ours, _ARITHMETIC),
                [Candidate("mm, gelu_backward, sum, mm, sum", lambda i: plain(*data[i])),
                 Candidate("torch.compile", lambda i: compiled(*data[i]))], sets)

    return {"case": "linear gradients through gelu bf16, " + name, "kind": "gemm",
            "elements": rows * inputs, "counted_bytes": counted, "mix": None, "launches": 2,
            "flop": 4 * rows * inputs * outputs}, make


def all_cases(kernels, models, l2):
    """In order of value: a budget that ends early has timed the most important."""
    r50, base, large = models["ResNet-50"], models["BERT-base"], models["BERT-large"]
    named = (("25.5 M", r50), ("110 M", base), ("340 M", large))
    cases = [dgc_case(kernels, size + " flat", [sum(model)], l2, True) for size, model in named]
    cases += [sparse_case(kernels, size, sum(model), 8, l2) for size, model in named]
    for size, model in named:
        cases.append(pack_case(kernels, size, model, False, l2))
        cases.append(pack_case(kernels, size, model, True, l2))
        for rule in ("SGD", "momentum", "AdamW"):
            cases.append(update_case(kernels, size, sum(model), rule, l2))
        cases.append(pipeline_case(kernels, size, model, l2))
    cases.append(dgc_case(kernels, "ResNet-50's tensors", r50, l2, False))
    shape = (256, 56, 56, 256)
    for with_add in (False, True):
        cases.append(batch_norm_case(kernels, "205 M", shape, with_add, l2))
    cases.append(add_relu_case(kernels, "205 M", 256 * 56 * 56 * 256, l2))
    cases.append(linear_case(kernels, "8192 x 768 -> 3072", 8192, 768, 3072, l2))
    cases.append(linear_gradient_case(kernels, "8192 x 3072 -> 768", 8192, 3072, 768, l2))
    bucket = [4 << 20]
    cases.append(pack_case(kernels, "16 MB bucket", bucket, False, l2))
    cases.append(update_case(kernels, "16 MB bucket", bucket[0], "momentum", l2))
    cases.append(dgc_case(kernels, "16 MB bucket", bucket, l2, True))
    xl = models["GPT-2 XL"]
    cases.append(pack_case(kernels, "1.5 G", xl, False, l2))
    cases.append(update_case(kernels, "1.5 G", sum(xl), "AdamW", l2))
    cases.append(sparse_case(kernels, "25.5 M", sum(r50), 32, l2))
    return cases
