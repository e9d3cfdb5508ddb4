"""Jobs of torchtitan on a processor, by the names of their functions:

    torchrun ... -m torchtitan.train --module titan_job --config llama

torchtitan asks for a GPU. Replaced here: its device and that one's memory; FlexAttention, which has
no backward pass on a processor; the factor before a sum, which Gloo does not know (it is 1). The
tokens are drawn.
"""

import dataclasses
import sys
import types

import torch
from torch.distributed.fsdp import FSDPModule
from torch.utils.data import IterableDataset
from torchtitan.components import loss, metrics, optimizer
from torchtitan.components.dataloader import ParallelAwareDataloader
from torchtitan.components.tokenizer import BaseTokenizer
from torchtitan.config import TrainingConfig
from torchtitan.distributed import fsdp
from torchtitan.models import llama3
from torchtitan.models.common.attention import ScaledDotProductAttention
from torchtitan.models.common.config_utils import decoder_vocab_size
from torchtitan.trainer import Trainer


def _processor():
    """Takes the place of torch.cuda in every module of torchtitan that has bound it."""
    device = types.SimpleNamespace(
        set_device=lambda _: None, current_device=lambda: 0, synchronize=lambda: None,
        get_device_name=lambda _: "processor", memory_stats=lambda _: {},
        get_device_properties=lambda _: types.SimpleNamespace(total_memory=1),
        reset_peak_memory_stats=lambda: None, empty_cache=lambda: None, device_count=lambda: 1)
    for name, module in list(sys.modules.items()):
        if name.startswith("torchtitan") and hasattr(module, "device_module"):
            module.device_type, module.device_module = "cpu", device
        elif name.startswith("torchtitan") and hasattr(module, "device_type"):
            module.device_type = "cpu"


def _plain_sums(divides=fsdp.disable_fsdp_gradient_division):
    def divides_nothing(model):
        divides(model)
        for module in model.modules():
            if isinstance(module, FSDPModule):
                module.set_force_sum_reduction_for_comms(True)
    fsdp.disable_fsdp_gradient_division = divides_nothing


_processor()
_plain_sums()


class Tokens(IterableDataset):
    def __init__(self, length):
        self.length = length

    def __iter__(self):
        dice = torch.Generator().manual_seed(1)
        while True:
            drawn = torch.randint(0, 2048, (self.length + 1,), generator=dice)
            yield {"input": drawn[:-1], "positions": torch.arange(self.length)}, drawn[1:]


class Loader(ParallelAwareDataloader):
    @dataclasses.dataclass(kw_only=True, slots=True)
    class Config(ParallelAwareDataloader.Config):
        pass

    def __init__(self, config, *, dp_world_size, dp_rank, seq_len, local_batch_size, **_):
        super().__init__(Tokens(seq_len), dp_rank=dp_rank, dp_world_size=dp_world_size,
                         batch_size=local_batch_size)


class NoTokenizer(BaseTokenizer):
    @dataclasses.dataclass(kw_only=True, slots=True)
    class Config(BaseTokenizer.Config):
        pass

    def __init__(self, config, **_):
        super().__init__()

    def encode(self, *_, **__):
        return []

    def decode(self, *_, **__):
        return ""

    def get_vocab_size(self):
        return 2048


def _job(chunked):
    model = llama3.model_registry("debugmodel")
    model.model.layers = model.model.layers[:2]
    for layer in model.model.layers:
        layer.attention.inner_attention = ScaledDotProductAttention.Config()
    whole = loss.CrossEntropyLoss.Config(global_vocab_size=decoder_vocab_size(model))
    return Trainer.Config(
        model_spec=model, tokenizer=NoTokenizer.Config(), dataloader=Loader.Config(),
        loss=loss.ChunkedLossWrapper.Config(loss_fn=whole) if chunked else whole,
        optimizer=optimizer.default_adamw(lr=8e-4),
        training=TrainingConfig(local_batch_size=1, seq_len=16, steps=100),
        metrics=metrics.MetricsProcessor.Config(log_freq=10))


def llama():
    return _job(chunked=False)


def llama_in_chunks():
    """As torchtitan's own jobs are: backward() for each chunk of the tokens."""
    return _job(chunked=True)
