"""Four training jobs of ordinary layers, sized so that computation and exchange are of one order
between 500 Mbit/s and 1 Gbit/s on one thread of a processor."""

import torch
from torch import nn


def mlp():
    layers = [nn.Linear(512, 1024), nn.ReLU()]
    for _ in range(2):
        layers += [nn.Linear(1024, 1024), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(1024, 10)), torch.randn(64, 512)


def convnet():
    layers, channels = [], 3
    for width, stride in ((32, 1), (64, 2), (128, 2), (256, 2), (256, 1), (512, 2)):
        layers += [nn.Conv2d(channels, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width),
                   nn.ReLU()]
        channels = width
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10)]
    return nn.Sequential(*layers), torch.randn(32, 3, 32, 32)


class Encoder(nn.Module):
    """Four layers of a Transformer over token embeddings, the mean of which is classified."""

    def __init__(self, words=2000, width=256):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.1, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 4)
        self.head = nn.Linear(width, 10)

    def forward(self, words):
        return self.head(self.layers(self.embedding(words)).mean(1))


def transformer():
    return Encoder(), torch.randint(2000, (2, 32))


def resnet18():
    import torchvision  # the only job that needs it
    return torchvision.models.resnet18(num_classes=10), torch.randn(16, 3, 64, 64)


JOBS = {"mlp": mlp, "convnet": convnet, "transformer": transformer, "resnet18": resnet18}


class Job:
    """A module with its batch and what a step does besides exchanging gradients."""

    def __init__(self, name):
        torch.manual_seed(1)
        self.module, self.x = JOBS[name]()
        self.y = torch.randint(10, (len(self.x),))
        self.loss = nn.CrossEntropyLoss()

    def optimizer(self):
        # Learning next to nothing: the one batch would be learnt by heart within a recording and its
        # gradients shrink by 40 times, below what 16 bits hold whole.
        return torch.optim.SGD(self.module.parameters(), 1e-6, momentum=0.9)

    def step(self, model, optimizer):
        optimizer.zero_grad(set_to_none=True)
        self.loss(model(self.x), self.y).backward()
        optimizer.step()
