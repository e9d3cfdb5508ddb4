"""The models whose steps are measured on a GPU, and each as a workload of a scenario."""

# As torchvision and transformers name them, with the architecture of `syncline list`.
ARCHITECTURES = {"resnet50": "resnet50_v1.5", "llama_1b": "llama3.2_1b"}
# Of these there is no architecture: resnet152, and BERT with the head of its task. Their times are
# kept, and predicted by nobody.
UNKNOWN = ("resnet152", "bert_base", "bert_large")


def text(model, precision, batch, sequence, **more):
    return dict(model=model, precision=precision, batch=batch, sequence=sequence, **more)


def image(model, precision, batch, **more):
    return dict(model=model, precision=precision, batch=batch, **more)


# precision: amp (torch.autocast in bf16), bf16 (all of the model), tf32, fp32, and default (fp32 as
# torch has it: convolutions in TF32, other products not).
ROWS = [
    text("gpt2_small", "amp", 8, 1024), text("gpt2_small", "amp", 1, 128),
    text("gpt2_small", "bf16", 16, 1024, fused=True), text("gpt2_small", "tf32", 8, 512),
    text("gpt2_small", "default", 8, 512), text("gpt2_medium", "amp", 8, 1024),
    text("gpt2_large", "bf16", 8, 1024), text("gpt2_large", "amp", 2, 256),
    text("gpt2_xl", "bf16", 4, 1024, fused=True),
    text("bert_base", "amp", 32, 128), text("bert_base", "tf32", 32, 128),
    text("bert_large", "amp", 16, 512), text("bert_large", "tf32", 8, 128),
    text("llama_1b", "bf16", 2, 4096, fused=True), text("llama_1b", "bf16", 1, 512),
    text("llama_1b", "amp", 2, 2048), text("qwen3_0.6b", "bf16", 4, 2048),
    image("resnet50", "default", 128), image("resnet50", "default", 16),
    image("resnet50", "amp", 256, channels_last=True), image("resnet50", "amp", 32),
    image("vgg16", "default", 64), image("vit_b_16", "amp", 64), image("vit_l_16", "tf32", 32),
    image("resnet152", "amp", 64, channels_last=True),
    text("llama_1b", "bf16", 2, 2048, compiled=True, fused=True),
    text("gpt2_small", "amp", 8, 1024, compiled=True),
    image("resnet50", "amp", 128, channels_last=True, compiled=True),
]


def name_of(row):
    words = [row["model"], row["precision"], f"batch {row['batch']}"]
    words += [f"{row['sequence']} tokens"] if "sequence" in row else []
    return ", ".join(words + [key.replace("_", " ") for key in ("channels_last", "fused", "compiled")
                              if row.get(key)])


def workload_of(row):
    """None: no architecture of that name, or products in a format that a workload cannot have."""
    if row["model"] in UNKNOWN or row["precision"] == "tf32":
        return None
    operators = {"architecture": ARCHITECTURES.get(row["model"], row["model"])}
    if "sequence" in row:
        operators["sequence"] = row["sequence"]
        if not row["model"].startswith(("llama", "qwen")):
            operators["flash_attention"] = True
    operators["optimizer"] = "adam" if "sequence" in row else "momentum"
    if row["precision"] in ("amp", "bf16"):
        operators["dtype"] = "bf16"
    if row["precision"] == "amp":
        operators["autocast"] = True
    if row.get("channels_last"):
        operators["layout"] = "NHWC"
    if not row.get("compiled"):
        operators["eager"] = True
    return {"name": name_of(row), "batch": row["batch"], "operators": operators}
