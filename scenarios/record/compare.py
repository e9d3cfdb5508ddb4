"""What a job recorded of itself, beside what was measured by hand: compare.py FOLDER/MODEL"""

import json
import sys


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def main():
    scenario, hand = read(sys.argv[1] + ".json"), read(sys.argv[1] + ".by_hand.json")
    workload = scenario["workload"]
    tensors = workload["tensors"]
    order = [tensor["name"] for tensor in tensors]
    print(f"\n{workload['name']}: {len(order)} gradients, in DDP's own order: "
          f"{'yes' if order == hand['order'] else 'NO'}")
    backward = sum(tensor["backward_us"] for tensor in tensors) / 1e3
    recorded = {"forward": workload["forward_ms"], "backward": backward,
                "update": workload["update_ms"],
                "step": workload["forward_ms"] + backward + workload["update_ms"]
                + workload["host_gap_ms"]}
    print("without communication, ms  recorded  by hand before  and after (median, half within)")
    for part, value in recorded.items():
        cells = "  ".join(f"{low:7.2f} < {middle:7.2f} < {high:7.2f}" for low, middle, high in
                          (hand["parts_before_ms"][part], hand["parts_after_ms"][part]))
        print(f"{part:24} {value:10.2f}  {cells}")
    # Readiness as a share of the whole pass: what each way of timing took longer is not in it.
    whole = max(hand["ready_ms"].values())
    at, worst = 0.0, 0.0
    for tensor in tensors:
        at += tensor["backward_us"] / 1e3
        worst = max(worst, abs(at / backward - hand["ready_ms"][tensor["name"]] / whole))
    print(f"gradients ready at the same share of the backward pass within {100 * worst:.1f} %")
    cost = hand["cost_of_recording"]
    low, high = cost["interval_95_percent"]
    print(f"cost of recording: {cost['median_percent']:+.2f} % of a step of "
          f"{cost['plain_ms'][1]:.2f} ms, 95 % interval {low:+.2f} to {high:+.2f} %, "
          f"{cost['pairs']} pairs (half of the steps within {cost['plain_ms'][0]:.2f} to "
          f"{cost['plain_ms'][2]:.2f} ms)")


if __name__ == "__main__":
    main()
