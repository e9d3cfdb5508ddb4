"""A job of DeepSpeed on processors that knows nothing of recordings: torchrun ... zero.py STAGE STEPS

Its collectives in shared memory are left out, as DeepSpeed would compile them.
"""

import os
import sys

os.environ["DS_ACCELERATOR"] = "cpu"

import deepspeed
import torch
from deepspeed.comm import torch as deepspeed_torch
from torch import nn

deepspeed_torch.build_shm_op = lambda: None


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(32, 64)
        self.down = nn.Linear(64, 32)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


def main(stage, steps):
    torch.set_num_threads(1)
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(8, 32), *(Block() for _ in range(3)), nn.Linear(32, 5))
    # Buckets and what is gathered ahead are smaller than the model.
    config = {"train_micro_batch_size_per_gpu": 4, "zero_force_ds_cpu_optimizer": False,
              "zero_optimization": {"stage": stage, "reduce_bucket_size": 5000,
                                    "stage3_param_persistence_threshold": 100,
                                    "stage3_prefetch_bucket_size": 3000}}
    engine, *_ = deepspeed.initialize(
        model=model, optimizer=torch.optim.Adam(model.parameters(), 1e-2), config=config)
    for _ in range(steps):
        engine.backward(engine(torch.randn(4, 8)).pow(2).mean())
        engine.step()
    deepspeed.comm.destroy_process_group()


main(int(sys.argv[1]), int(sys.argv[2]))
