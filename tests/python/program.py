"""A program of somebody else, on an installed package: which strategy is best as the network of a
scenario gets faster? program.py SCENARIO"""

import sys

import syncline

try:
    scenario = sys.argv[1]
    for speed in (1, 10, 100):
        answer = syncline.run(scenario, set={"sweep": {"cluster.inter.bandwidth_gbps": [speed]}})
        best = min(answer.rows, key=lambda row: row["step_time_s"])
        print(f'{speed} Gbit/s: {best["strategy"]}, {best["step_time_s"]!r}')
    tuned = syncline.tune(scenario, emit="pytorch")
    print(tuned.rows[0]["strategy"]["name"])
    print(len(tuned.made["buckets"]), "buckets")
    if "<svg" not in tuned.html:
        sys.exit("no figures")
except syncline.InputError as error:
    sys.exit(f"{error.path} {error.place}: {error}")
