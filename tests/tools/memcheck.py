#!/usr/bin/env python3
"""Scenarios under valgrind's memcheck, some in each process: memcheck.py PROGRAM [--scenarios N].

PROGRAM is syncline_memcheck. Simulations run in processes of their own, each with a log. Prints how
many scenarios were answered and how many errors memcheck found, and shows the first of these. Exit 1
where there is one, or where an answer fails.
"""

import argparse
import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile

VALGRIND = ["valgrind", "--error-exitcode=9", "--leak-check=no", "--child-silent-after-fork=no"]


def batch(program, first, count, folder):
    """(scenarios answered, what failed, logs with errors) of `count` scenarios from `first` on."""
    logs = pathlib.Path(folder) / str(first)
    logs.mkdir()
    run = subprocess.run(
        [*VALGRIND, f"--log-file={logs}/%p", program, str(first), str(count)],
        capture_output=True, text=True, check=False)
    found = []
    for log in sorted(logs.iterdir()):
        text = log.read_text(errors="replace")
        errors = sum(int(number) for number in re.findall(r"ERROR SUMMARY: (\d+) errors", text))
        if errors > 0:
            found.append((errors, text))
    said = re.search(r"(\d+) scenarios, (\d+) failures", run.stdout)
    ended = said and run.returncode in (0, 1, 9)
    failed = run.stdout if not ended or said[2] != "0" else ""
    if not ended:
        failed += f"\nfrom scenario {first} on: exit code {run.returncode} {run.stderr[-2000:]}"
    return count if ended else 0, failed, found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--scenarios", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--batch", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    firsts = range(options.first, options.first + options.scenarios, options.batch)
    answered = errors = failures = 0
    shown = ""
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        end = options.first + options.scenarios
        batches = [pool.submit(batch, options.program, first, min(options.batch, end - first), folder)
                   for first in firsts]
        for done in concurrent.futures.as_completed(batches):
            count, failed, found = done.result()
            answered += count
            errors += sum(number for number, _ in found)
            if failed:
                failures += 1
                print(failed)
            if found and not shown:
                shown = found[0][1]
            print(f"\r{answered} of {options.scenarios} scenarios, {errors} errors", end="",
                  file=sys.stderr, flush=True)
    print(file=sys.stderr)
    if shown:
        print(shown[:6000])
    print(f"{answered} scenarios by run, explain, tune and both simulations: {errors} errors of "
          f"memory, {failures} batches that failed")
    return 1 if errors or failures or answered < options.scenarios else 0


if __name__ == "__main__":
    sys.exit(main())
