# PyTorch's own answer to how gradients are put into buckets, for tests/dialect/torch_buckets_test.cc.
# Reads cases from the JSON file that is named: [{"tensors": [[elements, dtype, sparse], ...],
# "limits": [bytes, bytes], "indices": [int, ...]}, ...]; prints the list of their buckets.
import json
import sys

import torch
import torch.distributed

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16, "fp64": torch.float64}


def tensor_of(elements, dtype):
    # One number, seen so many times: no memory is needed to be of a size.
    return torch.empty(1, dtype=DTYPES[dtype]).expand(elements)


def buckets_of(case):
    tensors = [tensor_of(elements, dtype) for elements, dtype, _ in case["tensors"]]
    sparse = [is_sparse for _, _, is_sparse in case["tensors"]]
    if not tensors:
        return []
    buckets, _ = torch.distributed._compute_bucket_assignment_by_size(
        tensors, case["limits"], sparse, case["indices"]
    )
    return buckets


with open(sys.argv[1]) as file:
    print(json.dumps([buckets_of(case) for case in json.load(file)]))
