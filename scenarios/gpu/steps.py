"""Steps of known models on the GPU at hand, and what its kernels reach: products by size and number
format, attention by length, memory. One JSON, written again after each of them.

    python3 steps.py OUT [--seconds 150] [--only kernels|steps]

Models have random weights and random data. Times are CUDA events', the median of at least five
steps behind two. Needs torch; GPT-2, BERT and Llama need transformers, ResNet and VGG torchvision.
"""

import argparse
import collections
import gc
import json
import pathlib
import statistics
import sys
import time

import torch

import models

BF16, FP32 = torch.bfloat16, torch.float32


def event():
    mark = torch.cuda.Event(enable_timing=True)
    mark.record()
    return mark


def times_of(once, least=5, seconds=1.0):
    """Medians of the parts of `once`, which gives the events between which they lie."""
    for _ in range(2):
        once()
    torch.cuda.synchronize()
    begin, rows = time.monotonic(), []
    while len(rows) < least or (time.monotonic() - begin < seconds and len(rows) < 30):
        marks = once()
        torch.cuda.synchronize()
        rows.append([a.elapsed_time(b) / 1e3 for a, b in zip(marks, marks[1:])])
    parts = [statistics.median(column) for column in zip(*rows)]
    totals = sorted(sum(row) for row in rows)
    return parts, statistics.median(totals), totals[len(totals) // 10], totals[-1 - len(totals) // 10]


def kernel_time(run, repeats=10):
    """Seconds of one `run`, back to back behind a wait that lets the host run ahead."""
    for _ in range(3):
        run()
    found = []
    for _ in range(3):
        torch.cuda.synchronize()
        torch.cuda._sleep(2_000_000)
        begin = event()
        for _ in range(repeats):
            run()
        end = event()
        torch.cuda.synchronize()
        found.append(begin.elapsed_time(end) / 1e3 / repeats)
    return statistics.median(found)


# ---- models: name -> (parameters and inputs of one step)

def transformer(name, batch, sequence):
    import transformers as hf
    if name.startswith("gpt2"):
        shape = {"gpt2_small": (12, 768, 12), "gpt2_medium": (24, 1024, 16),
                 "gpt2_large": (36, 1280, 20), "gpt2_xl": (48, 1600, 25)}[name]
        config = hf.GPT2Config(n_layer=shape[0], n_embd=shape[1], n_head=shape[2],
                               n_positions=max(1024, sequence), use_cache=False)
        return hf.GPT2LMHeadModel(config), config.vocab_size
    if name.startswith("bert"):
        shape = {"bert_base": (12, 768, 12), "bert_large": (24, 1024, 16)}[name]
        config = hf.BertConfig(num_hidden_layers=shape[0], hidden_size=shape[1],
                               num_attention_heads=shape[2], intermediate_size=4 * shape[1])
        return hf.BertForMaskedLM(config), config.vocab_size
    if name == "qwen3_0.6b":
        config = hf.Qwen3Config(hidden_size=1024, intermediate_size=3072, num_hidden_layers=28,
                                num_attention_heads=16, num_key_value_heads=8, head_dim=128,
                                vocab_size=151936, tie_word_embeddings=True, use_cache=False)
        return hf.Qwen3ForCausalLM(config), config.vocab_size
    config = hf.LlamaConfig(hidden_size=2048, intermediate_size=8192, num_hidden_layers=16,
                            num_attention_heads=32, num_key_value_heads=8, head_dim=64,
                            vocab_size=128256, tie_word_embeddings=True, use_cache=False,
                            max_position_embeddings=131072)
    return hf.LlamaForCausalLM(config), config.vocab_size


def job_of(row):
    """forward() -> loss, and the model."""
    batch, device = row["batch"], "cuda"
    with torch.device(device):
        if "sequence" in row:
            model, words = transformer(row["model"], batch, row["sequence"])
            tokens = torch.randint(words, (batch, row["sequence"]))
        else:
            import torchvision
            model = getattr(torchvision.models, row["model"])()
            images, labels = torch.randn(batch, 3, 224, 224), torch.randint(1000, (batch,))
    if row["precision"] == "bf16":
        model = model.to(BF16)
    model.train()
    if row.get("channels_last"):
        model = model.to(memory_format=torch.channels_last)
        images = images.to(memory_format=torch.channels_last)
    called = torch.compile(model) if row.get("compiled") else model
    amp = torch.autocast("cuda", dtype=BF16, enabled=row["precision"] == "amp")

    def forward():
        with amp:
            if "sequence" in row:
                return called(input_ids=tokens, labels=tokens).loss
            return torch.nn.functional.cross_entropy(called(images), labels)
    return model, forward


def measure_step(row):
    torch.backends.cuda.matmul.allow_tf32 = row["precision"] == "tf32"
    torch.backends.cudnn.allow_tf32 = row["precision"] != "fp32"
    model, forward = job_of(row)
    images = "sequence" not in row
    optimizer = (torch.optim.SGD(model.parameters(), lr=1e-6, momentum=0.9) if images else
                 torch.optim.AdamW(model.parameters(), lr=1e-6, fused=row.get("fused")))

    def once():
        marks = [event()]
        loss = forward()
        marks.append(event())
        loss.backward()
        marks.append(event())
        optimizer.step()
        optimizer.zero_grad()
        return marks + [event()]
    parts, median, low, high = times_of(once)
    kernels, busy, longest = kernels_of(once)
    return {"step_s": median, "low_s": low, "high_s": high, "forward_s": parts[0],
            "backward_s": parts[1], "update_s": parts[2], "kernels": kernels, "busy_s": busy,
            "longest": longest,
            "parameters": sum(p.numel() for p in model.parameters()),
            "memory_bytes": torch.cuda.max_memory_allocated()}


def kernels_of(once):
    """How many kernels a step has, how long the GPU is busy with them, and the longest by name:
    {name: [how many, microseconds]}."""
    try:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            once()
            torch.cuda.synchronize()
        kernels = [e for e in profile.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    except Exception as error:
        print("no profile:", error)
        return 0, 0, {}
    names = collections.defaultdict(lambda: [0, 0.0])
    for kernel in kernels:
        names[kernel.name[:200]][0] += 1
        names[kernel.name[:200]][1] += kernel.time_range.elapsed_us()
    longest = dict(sorted(names.items(), key=lambda one: -one[1][1])[:40])
    return len(kernels), sum(us for _, us in names.values()) / 1e6, longest


# ---- kernels

def products():
    shapes = [(n, n, n) for n in (256, 512, 1024, 2048, 4096, 8192)]
    shapes += [(tokens, 4 * hidden, hidden) for tokens in (512, 4096, 16384)
               for hidden in (768, 1024, 2048, 4096, 8192)]
    shapes += [(8192, hidden, hidden) for hidden in (768, 1024, 2048, 4096, 8192)]
    shapes += [(8192, 50304, 768), (4096, 128256, 2048)]
    for m, n, k in shapes:
        for form in ("bf16", "fp16", "fp8", "tf32", "fp32"):
            if form == "fp32" and m * n * k > 2 ** 37:
                continue
            torch.backends.cuda.matmul.allow_tf32 = form == "tf32"
            dtype = {"bf16": BF16, "fp16": torch.float16, "fp8": BF16}.get(form, FP32)
            a = torch.randn(m, k, device="cuda", dtype=dtype)
            b = torch.randn(n, k, device="cuda", dtype=dtype)
            if form == "fp8":
                a, b = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
                one = torch.ones((), device="cuda")

                def run():
                    torch._scaled_mm(a, b.t(), one, one, out_dtype=BF16, use_fast_accum=True)
            else:
                def run():
                    torch.mm(a, b.t())
            seconds = kernel_time(run)
            yield {"kind": "product", "form": form, "m": m, "n": n, "k": k, "seconds": seconds,
                   "tflops": 2e-12 * m * n * k / seconds}


def attentions():
    for heads, width in ((16, 64), (16, 128)):
        for sequence in (512, 1024, 2048, 4096, 8192, 16384):
            for causal in (True, False):
                batch = max(1, 16384 // sequence)
                q, k, v = (torch.randn(batch, heads, sequence, width, device="cuda", dtype=BF16,
                                       requires_grad=True) for _ in range(3))
                def forward():
                    return torch.nn.functional.scaled_dot_product_attention(
                        q, k, v, is_causal=causal)
                out = forward()
                grad = torch.randn_like(out)
                there = kernel_time(forward, 5)
                back = kernel_time(lambda: torch.autograd.grad(out, (q, k, v), grad,
                                                               retain_graph=True), 5)
                work = 4e-12 * batch * heads * sequence * sequence * width * (0.5 if causal else 1)
                yield {"kind": "attention", "heads": heads, "width": width, "sequence": sequence,
                       "causal": causal, "batch": batch, "forward_s": there, "backward_s": back,
                       "forward_tflops": work / there, "backward_tflops": 2.5 * work / back}


def moved():
    def row(name, run, size, elements):
        """`size`: bytes of each element."""
        seconds = kernel_time(run)
        return {"kind": "moved", "name": name, "elements": elements, "seconds": seconds,
                "gbytes_per_s": 1e-9 * size * elements / seconds}
    for count in (1 << 20, 1 << 24, 1 << 28):
        a, b = (torch.randn(count, device="cuda", dtype=BF16) for _ in range(2))
        for name, run, size in (("copy", lambda: a.copy_(b), 4), ("gelu", lambda: torch.nn.
                                functional.gelu(a), 4), ("add", lambda: torch.add(a, b), 6),
                                ("cast", a.float, 6)):
            yield row(name, run, size, count)
    for tokens, hidden in ((8192, 768), (8192, 2048), (8192, 8192)):
        x = torch.randn(tokens, hidden, device="cuda", dtype=BF16, requires_grad=True)
        norm = torch.nn.LayerNorm(hidden, device="cuda", dtype=BF16)
        out, grad = norm(x), torch.randn(tokens, hidden, device="cuda", dtype=BF16)
        for name, run, size in (
                ("layer_norm", lambda: norm(x), 4),
                ("layer_norm_back", lambda: torch.autograd.grad(out, x, grad, retain_graph=True), 6),
                ("softmax", lambda: torch.softmax(x, -1), 4)):
            yield row(name, run, size, tokens * hidden)


def launches():
    x = torch.randn(1024, device="cuda")

    def burst(n=1000):
        torch.cuda.synchronize()
        begin = time.monotonic()
        for _ in range(n):
            x.add_(1)
        issued = time.monotonic() - begin
        torch.cuda.synchronize()
        return issued / n
    burst()
    yield {"kind": "launch", "host_s": statistics.median(burst() for _ in range(5)),
           "gpu_s": kernel_time(lambda: x.add_(1), 200)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=150)
    parser.add_argument("--only", choices=["kernels", "steps"])
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    properties = torch.cuda.get_device_properties(0)
    found = {"gpu": properties.name, "torch": torch.__version__, "cuda": torch.version.cuda,
             "kernels": [], "steps": [], "left_out": []}

    def write():
        options.out.write_text(json.dumps(found, indent=1) + "\n")

    def one(row):
        torch.cuda.reset_peak_memory_stats()
        begin = time.monotonic()
        try:
            row.update(name=models.name_of(row), **measure_step(row))
        except Exception as error:  # the next one may be fine
            row["failed"] = f"{type(error).__name__}: {error}"[:300]
        row["took_s"] = time.monotonic() - begin
        found["steps"].append(row)
        print(row["model"], row["precision"], row["batch"], row.get("sequence", ""),
              row.get("failed") or f"{1e3 * row['step_s']:.2f} ms, {row['kernels']} kernels busy "
              f"{1e3 * row['busy_s']:.2f} ms, took {row['took_s']:.1f} s", flush=True)
        gc.collect()
        torch.cuda.empty_cache()
        torch._dynamo.reset()
        write()

    for make in (launches, moved, attentions, products) if options.only != "steps" else ():
        try:
            found["kernels"].extend(make())
        except Exception as error:
            found["left_out"].append(f"{make.__name__}: {type(error).__name__}: {error}"[:300])
            print(found["left_out"][-1], flush=True)
        gc.collect()
        torch.cuda.empty_cache()
        write()
    for row in map(dict, models.ROWS if options.only != "kernels" else ()):
        if time.monotonic() > end:
            found["left_out"].append(row)
            continue
        one(row)
    write()


if __name__ == "__main__":
    sys.exit(main())
