"""A training script that knows nothing of any recorder, of two ranks that torchrun starts.

    train.py --steps COUNT [--from BATCH] [--save FILE] [--plain] [--exit CODE]

FILE gets all that training has changed, byte by byte. --plain: without DistributedDataParallel.
"""

import argparse
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import beside_train


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--from", type=int, default=0, dest="begin")
    parser.add_argument("--save")
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--exit", type=int)
    return parser.parse_args()


def main():
    options = parse()
    assert __file__ == sys.argv[0]
    torch.set_num_threads(1)
    torch.manual_seed(7)
    model = nn.Sequential(nn.Linear(20, 300), nn.BatchNorm1d(300), nn.ReLU(), nn.Dropout(0.2),
                          nn.Linear(300, 20))
    if not options.plain:
        dist.init_process_group("gloo")
        model = DistributedDataParallel(model)
    # What looks at a model ahead of the training is none of its steps.
    with torch.no_grad():
        model(torch.ones(4, 20))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: 1.0)
    for at in range(options.begin, options.begin + options.steps):
        optimizer.zero_grad()
        model(beside_train.batch(at)).pow(2).mean().backward()
        optimizer.step()
        schedule.step()
    if options.save and int(os.environ.get("RANK", 0)) == 0:
        with open(options.save, "wb") as file:
            for tensor in model.state_dict().values():
                file.write(tensor.numpy().tobytes())
            for state in optimizer.state_dict()["state"].values():
                file.write(state["exp_avg"].numpy().tobytes())
            file.write(bytes(torch.get_rng_state().tolist()))
    if dist.is_initialized():
        dist.destroy_process_group()  # its threads may not meet an interpreter that ends
    if options.exit is not None:
        sys.exit(options.exit)


if __name__ == "__main__":
    main()
