"""The kernels on a GPU behind the same face as truth.NumpyKernels: arrays in, arrays out.

Every output is poisoned (0xFF: a NaN, an index that nobody has) and stands between canaries that
must survive.
"""
import numpy as np
import torch

import library
from library import BF16, FP32, RELU, addresses, counts

_CANARY_BYTES = 256
_CANARY = 0x5A
_TYPES = {"fp32": (FP32, torch.float32), "bf16": (BF16, torch.bfloat16)}


def stream():
    return torch.cuda.current_stream().cuda_stream


class Guarded:
    """A tensor on the GPU between canaries; `offset` elements from the aligned address."""

    def __init__(self, elements, dtype=torch.float32, values=None, offset=1):
        size = torch.empty(0, dtype=dtype).element_size()
        before = _CANARY_BYTES + offset * size
        self._bytes = torch.full((before + elements * size + _CANARY_BYTES,), _CANARY,
                                 dtype=torch.uint8, device="cuda")
        body = self._bytes[before:before + elements * size]
        body.fill_(0xFF)
        self._edges = (self._bytes[:before], self._bytes[before + elements * size:])
        # A view of bytes at an odd element is not one of floats: values go through bytes.
        self._body, self._dtype, self.elements = body, dtype, elements
        if values is not None:
            self.set(torch.as_tensor(values).to(dtype))

    @property
    def address(self):
        return self._body.data_ptr()

    def set(self, tensor):
        if self.elements:
            self._body.copy_(tensor.contiguous().view(torch.uint8).reshape(-1).to("cuda"))

    def get(self):
        if any(bool((edge != _CANARY).any()) for edge in self._edges):
            raise library.KernelError("a canary beside an array was overwritten")
        return self._body.clone().cpu().view(self._dtype)


def _floats(elements, values=None, offset=1):
    return Guarded(elements, torch.float32, values, offset)


class DeviceKernels:
    def __init__(self, kernels):
        self._kernels = kernels
        self._dgc = {}

    def _call(self, name, *arguments):
        answer = self._kernels.call(name, *arguments)
        torch.cuda.synchronize()  # an asynchronous failure belongs to this call
        return answer

    @staticmethod
    def rounded(values, to_type):
        return torch.as_tensor(values).to(_TYPES[to_type][1]).float().numpy()

    def pack(self, tensors, to_type, scale, most):
        code, dtype = _TYPES[to_type]
        sources = [_floats(t.size, t, offset=i % 4) for i, t in enumerate(tensors)]
        outs = [Guarded(t.size, dtype, offset=i % 4) for i, t in enumerate(tensors)]
        args = (addresses([s.address for s in sources]), addresses([o.address for o in outs]),
                counts([t.size for t in tensors]), len(tensors), FP32, code)
        partials = _doubles(self._kernels.call("pack_partials", *args))
        measure = torch.zeros(self._kernels.call("measure_bytes"), dtype=torch.uint8, device="cuda")
        self._call("pack", *args, scale, measure.data_ptr(), partials.data_ptr(), most, stream())
        raw = measure.cpu().numpy().tobytes()
        total = np.frombuffer(raw, np.float64, 1)[0]
        norm, coefficient = np.frombuffer(raw, np.float32, 2, 8)
        bad = np.frombuffer(raw, np.int32, 1, 16)[0]
        return ([o.get().float().numpy() for o in outs], float(total), float(norm),
                float(coefficient), bool(bad))

    def _state(self):
        raw = np.frombuffer(self._kernels.initial_state(), np.uint8).copy()
        return torch.as_tensor(raw).cuda()

    def sgd(self, w, g, m, rate, momentum, decay, steps):
        w, g, m = _floats(w.size, w), _floats(g.size, g), _floats(m.size, m)
        state = self._state()
        for _ in range(steps):
            self._call("update_sgd", w.address, g.address, FP32, m.address, None, w.elements, rate,
                       momentum, 0.0, decay, 0, 1.0, None, None, state.data_ptr(), stream())
        return w.get().numpy(), m.get().numpy()

    def adam(self, w, g, rate, beta1, beta2, eps, decay, steps):
        n = w.size
        w, g = _floats(n, w), _floats(n, g)
        mean, variance = _floats(n, np.zeros(n, np.float32)), _floats(n, np.zeros(n, np.float32))
        state = self._state()
        for _ in range(steps):
            self._call("update_adam", w.address, g.address, FP32, mean.address, variance.address,
                       None, n, rate, beta1, beta2, eps, decay, 1, 1.0, None, None,
                       state.data_ptr(), stream())
        return w.get().numpy(), mean.get().numpy(), variance.get().numpy()

    def dgc(self, g, u, v, kept, momentum, candidate_scale, first, skip=False):
        n = g.size
        if first:
            self._dgc = {"g": _floats(n), "u": _floats(n), "v": _floats(n)}
            s = self._dgc
            s["plan"] = self._call("dgc_create", addresses([s["g"].address]),
                                   addresses([s["u"].address]), addresses([s["v"].address]), None,
                                   counts([n]), counts([kept]), 1, FP32)
            size = self._kernels.call("dgc_workspace_bytes", s["plan"])
            s["workspace"] = torch.full((max(256, size),), 0xFF, dtype=torch.uint8, device="cuda")
            self._call("dgc_prepare", s["plan"], s["workspace"].data_ptr(), size, stream())
        s = self._dgc
        for name, values in (("g", g), ("u", u), ("v", v)):
            s[name].set(torch.as_tensor(values))
        packed = self._kernels.call("dgc_packed", s["plan"])
        indices, values = Guarded(packed, torch.int32), _floats(packed)
        report = torch.zeros(self._kernels.call("dgc_report_bytes"), dtype=torch.uint8, device="cuda")
        flag = torch.ones(1, dtype=torch.int32, device="cuda")
        self._call("dgc_step", s["plan"], momentum, 1.0, 0.0, 0, None, 0,
                   flag.data_ptr() if skip else None, candidate_scale, indices.address,
                   values.address, report.data_ptr(), stream())
        got = indices.get().numpy().view(np.uint32)
        used = got != 0xFFFFFFFF  # pads
        return (s["u"].get().numpy(), s["v"].get().numpy(), got[used], values.get().numpy()[used])

    def sparse_apply(self, w, lists, rate):
        places = lists[0][0].size
        weights = _floats(w.size, w)
        plan = self._call("sparse_create", addresses([weights.address]), counts([w.size]),
                          counts([places]), 1)
        size = self._kernels.call("sparse_workspace_bytes", plan)
        workspace = torch.full((max(256, size),), 0xFF, dtype=torch.uint8, device="cuda")
        self._call("sparse_prepare", plan, workspace.data_ptr(), size, stream())
        indices = torch.as_tensor(np.concatenate([i.view(np.int32) for i, _ in lists])).cuda()
        values = torch.as_tensor(np.concatenate([v for _, v in lists])).cuda()
        rejected = torch.zeros(1, dtype=torch.int32, device="cuda")
        self._call("sparse_apply", plan, len(lists), indices.data_ptr(), values.data_ptr(), places,
                   rate, 1, rejected.data_ptr(), stream())
        return weights.get().numpy()

    def add_relu(self, a, b):
        n = a.size
        a, b, y = _floats(n, a), _floats(n, b), _floats(n)
        self._call("add_activation", FP32, RELU, a.address, b.address, y.address, n, stream())
        return y.get().numpy()

    def batch_norm(self, x, residual, gamma, beta):
        rows, channels = x.shape
        n = x.size
        x, residual, y = _floats(n, x.ravel()), _floats(n, residual.ravel()), _floats(n)
        gamma, beta = _floats(channels, gamma), _floats(channels, beta)
        mean, inverse = _floats(channels), _floats(channels)
        work = _floats(self._kernels.call("batch_norm_workspace", rows, channels), offset=0)
        self._call("batch_norm_forward", FP32, rows, channels, 1, 1e-5, x.address, residual.address,
                   gamma.address, beta.address, mean.address, inverse.address, None, None, 0.1,
                   work.address, y.address, stream())
        return (y.get().numpy().reshape(rows, channels), mean.get().numpy(), inverse.get().numpy())


def _doubles(count):
    return torch.empty(max(1, count), dtype=torch.float64, device="cuda")
