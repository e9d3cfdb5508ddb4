"""A job of DistributedDataParallel, as the README has it: torchrun ... chain.py STEPS [applied]

`applied`: with syncline_apply.py in its place. Rank 0 says how long a step takes, and a number for
all that was trained.
"""

import statistics
import sys
import time
import zlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import beside_train


def main(steps, applied):
    torch.set_num_threads(1)
    torch.manual_seed(7)
    dist.init_process_group("gloo")
    model = nn.Sequential(nn.Linear(20, 300), nn.ReLU(), nn.Linear(300, 300), nn.ReLU(),
                          nn.Linear(300, 20))
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    if applied:
        from syncline_apply import apply
        model = apply(model, optimizer)
    else:
        model = DistributedDataParallel(model)
    taken = []
    for at in range(steps):
        begun = time.perf_counter()
        optimizer.zero_grad()
        model(beside_train.batch(at)).pow(2).mean().backward()
        optimizer.step()
        taken.append(time.perf_counter() - begun)
    if dist.get_rank() == 0:
        trained = b"".join(value.numpy().tobytes() for value in model.state_dict().values())
        print(f"step time: {1e3 * statistics.median(taken):.3f} ms, trained {zlib.crc32(trained)}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), "applied" in sys.argv[2:])
