"""What jobs recorded of themselves, beside what was measured by hand: compare.py FOLDER MODEL..."""

import json
import sys


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


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
    for part, value in recorded.items():
        low, middle, high = hand["alone_ms"][part]
        print(f"{part:24} {value:11.2f} {middle:10.2f}  ({low:.2f} to {high:.2f})")
    low, middle, high = hand["plain_ms"]
    step = 1e3 * scenario["published"][0]["step_time_s"]
    print(f"{'step as it runs':24} {step:11.2f} {middle:10.2f}  ({low:.2f} to {high:.2f})")
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
    folder = sys.argv[1]
    for i, model in enumerate(sys.argv[2:]):
        print(end="\n" if i else "")
        compare(read(f"{folder}/{model}.json"), read(f"{folder}/by_hand/{model}.json"))


if __name__ == "__main__":
    main()
