"""How many elements each parameter of the four models has, in forward order."""


def _resnet50(classes=1000):
    sizes = [64 * 3 * 49, 64, 64]
    channels = 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            sizes += [channels * width, width, width]
            sizes += [width * width * 9, width, width]
            sizes += [width * width * 4, width * 4, width * 4]
            if block == 0:
                sizes += [channels * width * 4, width * 4, width * 4]
            channels = width * 4
    return sizes + [2048 * classes, classes]


def _bert(layers, width, vocabulary=30522):
    sizes = [vocabulary * width, 512 * width, 2 * width, width, width]
    for _ in range(layers):
        sizes += [width * width, width] * 4 + [width, width]
        sizes += [4 * width * width, 4 * width, 4 * width * width, width, width, width]
    return sizes + [width * width, width]


def _gpt2(layers, width):
    sizes = [50257 * width, 1024 * width]
    for _ in range(layers):
        sizes += [width, width, 3 * width * width, 3 * width, width * width, width]
        sizes += [width, width, 4 * width * width, 4 * width, 4 * width * width, width]
    return sizes + [width, width]


MODELS = {
    "ResNet-50": _resnet50(),
    "BERT-base": _bert(12, 768),
    "BERT-large": _bert(24, 1024),
    "GPT-2 XL": _gpt2(48, 1600),
}
