#!/usr/bin/env python3
"""Two training jobs of PyTorch record themselves in the lab, and are measured by hand beside it.

    scenarios/record/record.py [--jobs mlp convnet] [--stages record compare predict]
                               [--folder build/record]

record   two ranks behind links of 1 Gbit/s: the job records itself, and timers in its own lines
         measure the same steps
compare  prints what was recorded beside what was measured by hand, and what recording costs
predict  prints the steps that are predicted from the recordings

Needs root, python3-torch, and about four minutes; it asks for priority on a busy machine.
"""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from experiment import in_lab, parser_of, read, syncline  # noqa: E402


def compare(scenario, hand):
    workload = scenario["workload"]
    tensors = workload["tensors"]
    order = [tensor["name"] for tensor in tensors]
    print(f"{workload['name']}: {len(order)} gradients, in DDP's own order: "
          f"{'yes' if order == hand['order'] else 'NO'}")
    backward = sum(tensor["backward_us"] for tensor in tensors) / 1e3
    recorded = {"forward": workload["forward_ms"], "backward": backward,
                "update": workload["update_ms"],
                "step": workload["forward_ms"] + backward + workload["update_ms"]
                + workload["host_gap_ms"]}
    print("ms, without communication   recorded    by hand on the same steps (half of them within)")
    rows = [(part, value, hand["alone_ms"][part]) for part, value in recorded.items()]
    step = 1e3 * scenario["published"][0]["step_time_s"]
    rows.append(("step as it runs", step, hand["plain_ms"]))
    for part, value, (low, middle, high) in rows:
        print(f"{part:24} {value:11.2f} {middle:10.2f}  ({low:.2f} to {high:.2f})")
    at, worst = 0.0, 0.0
    for tensor in tensors:
        at += tensor["backward_us"] / 1e3
        worst = max(worst, abs(at - hand["ready_ms"][tensor["name"]]))
    print(f"gradients are ready within {worst:.3f} ms of when their own hooks say")
    cost = hand["cost_of_recording"]
    low, high = cost["interval_95_percent"]
    print(f"cost of recording: {cost['median_percent']:+.2f} % of a step, 95 % interval "
          f"{low:+.2f} to {high:+.2f} %")
    low, middle, high = cost["plain_ms"]
    print(f"  ({cost['pairs']} pairs of steps; without hooks {middle:.2f} ms, half of them within "
          f"{low:.2f} to {high:.2f})")


def main():
    options = parser_of(__doc__, "record", ["mlp", "convnet"],
                        ["record", "compare", "predict"]).parse_args()
    folder = options.folder
    if "record" in options.stages:
        (folder / "by_hand").mkdir(parents=True, exist_ok=True)
        for job in options.jobs:
            print(f"== {job}", file=sys.stderr)
            in_lab(options, 2, "1gbit", HERE / "rank.py", "record", job, folder)
    if "compare" in options.stages:
        for i, job in enumerate(options.jobs):
            print(end="\n" if i else "")
            compare(read(folder / f"{job}.json"), read(folder / f"by_hand/{job}.json"))
    if "predict" in options.stages:
        for job in options.jobs:
            lines = syncline("run", folder / f"{job}.json").splitlines()
            first = next(i for i, line in enumerate(lines) if line.startswith("strategy"))
            print(*lines[first:first + 4], sep="\n")


if __name__ == "__main__":
    main()
