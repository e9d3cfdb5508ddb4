"""DistributedDataParallel jobs of several ranks, on the GPUs at hand or sharing one: recorded, then
measured with other settings. Where ranks share a GPU they talk through sockets.

    python3 ddp.py FOLDER [--ranks 2] [--jobs gpt2 resnet50] [--stage record]

FOLDER holds syncline_record.py (`syncline record -o`); each job leaves JOB.json, what the recorder
says, and JOB.measured.json: {setting: seconds of steps}, by stage.
"""

import argparse
import gc
import json
import os
import pathlib
import socket
import subprocess
import sys
import time

SETTINGS = {"cap 25": {}, "cap 1": {"bucket_cap_mb": 1}, "cap 5": {"bucket_cap_mb": 5},
            "cap 1000": {"bucket_cap_mb": 1000}, "views": {"gradient_as_bucket_view": True},
            "fp16 hook": {"comm_hook": "fp16_compress_hook"}}
TITLES = {"gpt2": "GPT-2 small", "resnet50": "ResNet-50"}
VISITS, STEPS = 2, 5


def job_of(name):
    """The module, and what gives the loss of one batch."""
    import torch
    torch.manual_seed(1)
    amp = lambda: torch.autocast("cuda", dtype=torch.bfloat16)  # noqa: E731
    with torch.device("cuda"):
        if name == "gpt2":
            import transformers
            module = transformers.GPT2LMHeadModel(transformers.GPT2Config(use_cache=False))
            tokens = torch.randint(50257, (4, 256))

            def loss(model):
                with amp():
                    return model(input_ids=tokens, labels=tokens).loss
        else:
            import torchvision
            module = getattr(torchvision.models, name)()
            images, labels = torch.randn(32, 3, 224, 224), torch.randint(1000, (32,))

            def loss(model):
                with amp():
                    return torch.nn.functional.cross_entropy(model(images), labels)
    return module.train(), loss


def rank(folder, jobs, stage):
    import torch
    import torch.distributed as dist
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
    from torch.nn.parallel import DistributedDataParallel
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    dist.init_process_group("nccl")

    def made(name, setting):
        gc.collect()
        torch.cuda.empty_cache()
        module, loss = job_of(name)
        arguments = dict(setting)
        hook = arguments.pop("comm_hook", None)
        model = DistributedDataParallel(module, **arguments)
        if hook:
            model.register_comm_hook(None, getattr(default_hooks, hook))
        optimizer = torch.optim.SGD(module.parameters(), 1e-6, momentum=0.9)

        def step():
            optimizer.zero_grad()
            loss(model).backward()
            optimizer.step()
        return model, step

    def visit(name, setting):
        _, step = made(name, setting)
        for _ in range(3):
            step()
        torch.cuda.synchronize()
        dist.barrier()
        found = []
        for _ in range(STEPS):
            begin = time.perf_counter()
            step()
            torch.cuda.synchronize()
            found.append(time.perf_counter() - begin)
        return found

    for name in jobs:
        if stage == "record":
            sys.path.insert(0, str(folder))
            from syncline_record import record
            model, step = made(name, {})
            record(model, step, out=str(folder / f"{name}.json"), name=name)
            continue
        taken = {setting: [] for setting in SETTINGS}
        for _ in range(VISITS):
            for setting, arguments in SETTINGS.items():
                taken[setting] += visit(name, arguments)
                if dist.get_rank() == 0:
                    (folder / f"{name}.measured.json").write_text(json.dumps(taken))
    dist.barrier()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--jobs", nargs="+", default=["gpt2", "resnet50"])
    parser.add_argument("--stage", choices=["record", "measure"], default="record")
    options = parser.parse_args()
    if "LOCAL_RANK" in os.environ:
        return rank(options.folder.resolve(), options.jobs, options.stage)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks = []
    for number in range(options.ranks):
        environment = dict(
            os.environ, RANK=str(number), LOCAL_RANK=str(number), WORLD_SIZE=str(options.ranks),
            MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), NCCL_HOSTID=f"rank{number}",
            NCCL_NET="Socket", NCCL_SOCKET_IFNAME="lo", NCCL_IB_DISABLE="1", OMP_NUM_THREADS="1")
        ranks.append(subprocess.Popen([sys.executable, __file__, *sys.argv[1:]], env=environment))
    codes = [each.wait() for each in ranks]
    return max(abs(code) for code in codes)


if __name__ == "__main__":
    sys.exit(main())
