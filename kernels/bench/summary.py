"""From repeated times to a row: medians, the bootstrap of a ratio, the verdict, the table, the file."""
import json
import os

import numpy as np

ASSUMED_RATE = 4.3e12  # bytes a second of device memory on an H200: what predictions are made with
WIN = 1.02


def row_of(case, ours, again, peers, ceiling, rehearsal):
    """`ours`, `again`: times of one call in seconds, two series of the same kernel; `peers`: a list
    of (name, times or None, sentence). The ratio is that of the best peer to ours."""
    us = 1e6 * np.asarray(ours)
    median = float(np.median(us))
    rate = case["counted_bytes"] / (median * 1e-6)
    row = dict(case)
    row.update({
        "us": median,
        "iqr_us": float(np.percentile(us, 75) - np.percentile(us, 25)),
        "min_us": float(us.min()),
        "gbytes_per_s": rate / 1e9,
        "percent_of_ceiling": 100 * rate / ceiling if ceiling else None,
        "noise_percent": 100 * abs(float(np.median(again)) / float(np.median(ours)) - 1),
        "predicted_us": 1e6 * case["counted_bytes"] / ASSUMED_RATE,
        "peers": [{"name": name, "us": None if times is None else 1e6 * float(np.median(times)),
                   "note": note} for name, times, note in peers],
        "rehearsal": rehearsal,
    })
    timed = [(name, times) for name, times, _ in peers if times is not None]
    if timed:
        name, times = min(timed, key=lambda peer: np.median(peer[1]))
        low, high = bootstrap_ratio(times, np.concatenate([ours, again]))
        row.update({"peer": name, "peer_us": 1e6 * float(np.median(times)),
                    "ratio": float(np.median(times) / np.median(np.concatenate([ours, again]))),
                    "ratio_low": low, "ratio_high": high, "verdict": verdict(low, high)})
    else:
        row.update({"peer": None, "peer_us": None, "ratio": None, "ratio_low": None,
                    "ratio_high": None, "verdict": "no peer ran"})
    return row


def bootstrap_ratio(peer, ours, draws=2000, seed=1):
    """The 95 % interval of median(peer) / median(ours)."""
    random = np.random.default_rng(seed)
    peer, ours = np.asarray(peer), np.asarray(ours)
    ratios = (np.median(random.choice(peer, (draws, peer.size)), axis=1) /
              np.median(random.choice(ours, (draws, ours.size)), axis=1))
    return float(np.percentile(ratios, 2.5)), float(np.percentile(ratios, 97.5))


def verdict(low, high):
    if low > WIN:
        return "faster"
    return "slower" if high < 1 / WIN else "tie"


def write_json(path, results):
    """Whole or not at all."""
    folder = os.path.dirname(os.path.abspath(path))
    os.makedirs(folder, exist_ok=True)
    part = path + ".part"
    with open(part, "w") as out:
        json.dump(results, out, indent=1, allow_nan=False)
        out.write("\n")
    os.replace(part, path)


def _cell(value, form="%.1f"):
    return "" if value is None else form % value


def table(results):
    heads = ["kernel", "us", "GB/s", "% of ceiling", "peer", "peer us", "ratio", "95 %", "verdict",
             "noise %", "launches", "eager us", "predicted us"]
    lines = [heads]
    sentences = []
    for row in results["timings"]:
        if row.get("failed"):
            lines.append([row["case"], "failed"] + [""] * 11)
            sentences.append("%s: %s" % (row["case"], row["failed"]))
            continue
        interval = "" if row["ratio"] is None else "%.2f to %.2f" % (row["ratio_low"], row["ratio_high"])
        lines.append([row["case"], _cell(row["us"]), _cell(row["gbytes_per_s"], "%.0f"),
                      _cell(row["percent_of_ceiling"]), row["peer"] or "", _cell(row["peer_us"]),
                      _cell(row["ratio"], "%.2f"), interval, row["verdict"],
                      _cell(row["noise_percent"]), str(row["launches"]), _cell(row.get("eager_us")),
                      _cell(row["predicted_us"])])
        for peer in row["peers"]:
            if peer["note"]:
                sentences.append("%s, peer %s: %s" % (row["case"], peer["name"], peer["note"]))
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    text = []
    for number, line in enumerate(lines):
        cells = [cell.ljust(width) if i in (0, 4, 8) else cell.rjust(width)
                 for i, (cell, width) in enumerate(zip(line, widths))]
        text.append("  ".join(cells).rstrip())
        if number == 0:
            text.append("-" * (sum(widths) + 2 * (len(widths) - 1)))
    text += [""] + sorted(set(sentences))
    failed = [check for check in results["checks"] if not check["passed"]]
    text.append("")
    text.append("Checks: %d, %d failed." % (len(results["checks"]), len(failed)))
    text += ["  FAILED %s: %s" % (check["name"], check["detail"]) for check in failed]
    for program in results["programs"]:
        text.append("Program %(name)s: %(status)s%(detail)s" % program)
    text.append("compute-sanitizer: %(status)s%(detail)s" % results["sanitizer"])
    if results["rehearsal"]:
        text.append("REHEARSAL: every time above is made up; nothing here was measured.")
    return "\n".join(text)
