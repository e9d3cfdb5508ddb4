"""The kernels' C interface (kernels/c_api.h, dgc_c_api.h and gemm_c_api.h) by ctypes.

Every call that fails raises KernelError with the text of syncline_last_error().
"""
import ctypes as c

FP32, BF16, FP16 = 0, 1, 2
RELU, GELU = 1, 2

_p, _i, _l, _f, _d = c.c_void_p, c.c_int, c.c_int64, c.c_float, c.c_double

# name: (result, arguments). A result of None: an int that is 0 or a failure.
_SIGNATURES = {
    "syncline_measure_bytes": (_l, []),
    "syncline_state_bytes": (_l, []),
    "syncline_pack_partials": (_l, [_p, _p, _p, _l, _i, _i]),
    "syncline_pack": (None, [_p, _p, _p, _l, _i, _i, _f, _p, _p, _f, _p]),
    "syncline_update_sgd": (None, [_p, _p, _i, _p, _p, _l, _d, _d, _d, _d, _i, _f, _p, _p, _p, _p]),
    "syncline_update_adam": (None, [_p, _p, _i, _p, _p, _p, _l, _d, _d, _d, _d, _d, _i, _f, _p, _p,
                                    _p, _p]),
    "syncline_add_activation": (None, [_i, _i, _p, _p, _p, _l, _p]),
    "syncline_add_activation_gradient": (None, [_i, _i, _p, _p, _p, _p, _l, _p]),
    "syncline_batch_norm_workspace": (_l, [_l, c.c_int32]),
    "syncline_batch_norm_forward": (None, [_i, _l, c.c_int32, _i, _f] + [_p] * 8 + [_f, _p, _p, _p]),
    "syncline_batch_norm_backward": (None, [_i, _l, c.c_int32, _i, _f] + [_p] * 13),
    "syncline_gemm_workspace_bytes": (_l, []),
    "syncline_linear_aux_bytes": (_l, [_i, _i, _l, _l]),
    "syncline_linear_forward": (None, [_i, _i, _l, _l, _l] + [_p] * 6 + [_l, _p]),
    "syncline_linear_input_gradient": (None, [_i, _i, _l, _l, _l] + [_p] * 6 + [_l, _p]),
    "syncline_linear_weight_gradient": (None, [_i, _l, _l, _l] + [_p] * 5 + [_l, _p]),
    "syncline_dgc_create": (_p, [_p, _p, _p, _p, _p, _p, _l, _i]),
    "syncline_dgc_workspace_bytes": (_l, [_p]),
    "syncline_dgc_packed": (_l, [_p]),
    "syncline_dgc_report_bytes": (_l, []),
    "syncline_dgc_prepare": (None, [_p, _p, _l, _p]),
    "syncline_dgc_inspect": (None, [_p, _f, _p]),
    "syncline_dgc_coefficients": (_p, [_p]),
    "syncline_dgc_skip_flag": (_p, [_p]),
    "syncline_dgc_step": (None, [_p, _f, _f, _f, _i, _p, _i, _p, _f, _p, _p, _p, _p]),
    "syncline_sparse_create": (_p, [_p, _p, _p, _l]),
    "syncline_sparse_workspace_bytes": (_l, [_p]),
    "syncline_sparse_prepare": (None, [_p, _p, _l, _p]),
    "syncline_sparse_apply": (None, [_p, _i, _p, _p, _l, _f, _i, _p, _p]),
}


class KernelError(Exception):
    pass


def addresses(pointers):
    """A host array of pointers; None where there is none."""
    return (c.c_void_p * max(1, len(pointers)))(*pointers)


def counts(values):
    return (c.c_int64 * max(1, len(values)))(*values)


class Library:
    """`missing` names the functions that this build of the kernels does not have."""

    def __init__(self, path):
        self._library = c.CDLL(path)
        self._library.syncline_last_error.restype = c.c_char_p
        self.missing = []
        for name, (result, arguments) in _SIGNATURES.items():
            try:
                function = getattr(self._library, name)
            except AttributeError:
                self.missing.append(name)
                continue
            function.argtypes = arguments
            function.restype = c.c_int if result is None else result

    def call(self, name, *arguments):
        name = "syncline_" + name
        if name in self.missing:
            raise KernelError(name + " is not in this build of the kernels")
        answer = getattr(self._library, name)(*arguments)
        failed = answer != 0 if _SIGNATURES[name][0] is None else answer is None or answer == -1
        if failed:
            raise KernelError("%s: %s" % (name, self._library.syncline_last_error().decode()))
        return answer

    def initial_state(self):
        """The bytes of an optimizer's state before its first step."""
        state = c.create_string_buffer(self.call("state_bytes"))
        self._library.syncline_initial_state.argtypes = [c.c_void_p]
        self._library.syncline_initial_state.restype = None
        self._library.syncline_initial_state(state)
        return state.raw


def argument_checks(library):
    """Bad arguments must come back with a text and launch nothing; needs no GPU.

    Gives [(what, text or None)]; None: it was accepted.
    """
    element = counts([4])
    null = addresses([None])
    bad = {
        "pack without a source": ("pack", null, null, element, 1, FP32, FP32, 1.0, None, None, 0.0,
                                  None),
        "pack of an unknown type": ("pack", null, null, element, 1, 7, FP32, 1.0, None, None, 0.0,
                                    None),
        "SGD without weights": ("update_sgd", None, None, FP32, None, None, 4, 0.1, 0.0, 0.0, 0.0, 0,
                                1.0, None, None, None, None),
        "Adam of a negative size": ("update_adam", None, None, FP32, None, None, None, -1, 0.1, 0.9,
                                    0.999, 1e-8, 0.0, 0, 1.0, None, None, None, None),
        "activation without arrays": ("add_activation", FP32, RELU, None, None, None, 4, None),
        "linear layer without weights": ("linear_forward", BF16, GELU, 4, 4, 4, null, None, null,
                                         null, None, None, 0, None),
        "bias gradient without activation": ("linear_input_gradient", BF16, 0, 4, 4, 4, null, null,
                                             None, null, null, None, 0, None),
        "weight gradient of no rows": ("linear_weight_gradient", BF16, 0, 4, 4, null, null, null,
                                       None, None, 0, None),
        "DGC of a negative k": ("dgc_create", null, null, null, None, element, counts([-1]), 1, FP32),
    }
    answers = []
    for what, (name, *arguments) in bad.items():
        try:
            library.call(name, *arguments)
            answers.append((what, None))
        except KernelError as error:
            answers.append((what, str(error)))
    return answers
