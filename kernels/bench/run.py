#!/usr/bin/env python3
"""Checks the kernels on the GPU at hand and times them against their strongest peers.

    make gpu-check                     from the root: builds, checks, times, writes one JSON
    python3 kernels/bench/run.py --help

Stages: machine, build, argument checks, check programs, ceilings, checks against fp64, timings,
compute-sanitizer. The JSON is written anew after each; the table comes last. Without a GPU the first
stages run and a sentence says what did not. --rehearse needs no GPU: small sizes on the CPU, and
times that are made up and marked so.

Exit codes: 0 all passed (or a rehearsal did), 1 something failed, 3 no GPU: nothing was measured.
"""
import argparse
import ctypes
import gc
import os
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

try:
    import numpy as np
except ImportError:
    print("gpu-check: numpy is not installed; nothing was run", file=sys.stderr)
    sys.exit(3)

import library
import machine
import model_tensors
import summary
import truth

FORMAT = "syncline gpu-check 1"


# What the NCCL backend's check takes once it is built: correctness with 2 and 4 ranks, steps of 2
# ranks at 1 Gbit/s.
NCCL_SECONDS = 150


class Clock:
    def __init__(self, budget):
        self._begin, self.budget = time.monotonic(), budget

    def left(self):
        return self.budget - (time.monotonic() - self._begin)


def say(text):
    print(text, file=sys.stderr, flush=True)


def options():
    parser = argparse.ArgumentParser(description="Checks and times the kernels on this GPU.")
    parser.add_argument("--out", help="JSON file; default scenarios/measured/gpu/GPU.json")
    parser.add_argument("--budget", type=float, default=540, help="seconds in all (540)")
    parser.add_argument("--arch", help="sm_90, say; default: the GPU's, else sm_90")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--build", default=os.path.join(machine.ROOT, "build-gpu-check"))
    parser.add_argument("--no-build", action="store_true", help="leave out what needs nvcc")
    parser.add_argument("--rehearse", action="store_true",
                        help="without a GPU: small sizes, made-up times")
    parser.add_argument("--nccl", action="store_true",
                        help="the NCCL backend too: backend_nccl's check, last")
    return parser.parse_args()


def run_checks(kernels, full, clock, reserve):
    answers = []
    for number, (name, check) in enumerate(truth.all_checks(full)):
        if clock.left() < reserve:
            answers.append({"name": "the rest", "passed": False,
                            "detail": "no time left after %d checks" % number})
            break
        try:
            wrong = check(kernels, np.random.default_rng(number))
        except Exception as error:
            wrong = ["%s: %s" % (type(error).__name__, error)]
        answers.append({"name": name, "passed": not wrong, "detail": "; ".join(wrong[:3])})
    return answers


def spoiled_checks():
    """Kernels that are wrong on purpose must be found out, or the checks check nothing."""
    answers = []
    for rule, words in (("ties", "DGC"), ("mask", "DGC"), ("order", "sparse apply")):
        found = False
        for number, (name, check) in enumerate(truth.all_checks(False)):
            if name.startswith(words):
                found = found or bool(check(truth.NumpyKernels(rule), np.random.default_rng(number)))
        answers.append({"name": "a kernel with wrong %s is found out" % rule, "passed": found,
                        "detail": "" if found else "all checks passed it"})
    return answers


def ceilings_of(path, l2, rehearsal):
    """[{"mix", "gbytes_per_s"}] and what a launch costs."""
    if rehearsal:
        return ([{"mix": mix, "gbytes_per_s": 4000.0} for mix in
                 ("R1W0", "R1W1", "R2W1", "R3W2", "R4W3")],
                {"submit_us": 3.0, "gap_us": 1.0, "event_us": 5.0})
    import torch
    from device import stream
    from timing import seconds_of
    streams = ctypes.CDLL(path)
    p = ctypes.c_void_p
    streams.ceiling_stream.argtypes = [ctypes.c_int, p, p, p, p, ctypes.c_int64, p, ctypes.c_int, p]
    streams.ceiling_nothing.argtypes = [p]
    elements = 1 << 28  # 1 GiB an array
    arrays = [torch.rand(elements, device="cuda") for _ in range(4)]
    sink = torch.zeros(1, device="cuda")
    multiprocessors = torch.cuda.get_device_properties(0).multi_processor_count
    answers = []
    for mix in ("R1W0", "R1W1", "R2W1", "R3W2", "R4W3"):
        number = 10 * int(mix[1]) + int(mix[3])
        best = None
        for blocks in (8 * multiprocessors, 32 * multiprocessors, elements // 4 // 256):
            def call(_):
                code = streams.ceiling_stream(number, *(a.data_ptr() for a in arrays), elements,
                                              sink.data_ptr(), blocks, stream())
                if code != 0:
                    raise library.KernelError("ceiling_stream: CUDA error %d" % code)
            seconds = seconds_of(call, 1)
            best = seconds if best is None else min(best, seconds)
        moved = 4 * elements * (int(mix[1]) + int(mix[3]))
        answers.append({"mix": mix, "bytes": moved, "us": 1e6 * best,
                        "gbytes_per_s": moved / best / 1e9})

    # A launch from C through ctypes, kernels back to back in a graph, an event.
    for _ in range(1000):
        streams.ceiling_nothing(stream())
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(5000):
        streams.ceiling_nothing(stream())
    submit = (time.perf_counter() - begin) / 5000
    torch.cuda.synchronize()
    gap = seconds_of(lambda _: streams.ceiling_nothing(stream()), 1)
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    last.record()
    torch.cuda.synchronize()
    return answers, {"note": "submit_us is a launch from Python by ctypes, gap_us a node of a graph",
                     "submit_us": 1e6 * submit, "gap_us": 1e6 * gap,
                     "event_us": 1e3 * first.elapsed_time(last)}


def regressed(case, name, times, note):
    """torch.topk of some versions is quadratic in a long row; a ratio to that is no claim."""
    if times is None or "topk" not in name or np.median(times) < 1e-10 * case["elements"]:
        return name, times, note
    return (name, None, "%.0f us: torch.topk's regressed kernel (100 ms for 1 G elements or more), "
            "no ratio is claimed" % (1e6 * np.median(times)))


def timed(kernels, results, l2, clock, reserve, save):
    import torch
    import cases
    from timing import first_line, in_turns
    rates = {c["mix"]: 1e9 * c["gbytes_per_s"] for c in results["ceilings"]}
    torch.rand(1 << 26, device="cuda")
    warm = time.monotonic()  # an idle GPU runs at a fraction of its clock
    while time.monotonic() - warm < 0.5:
        torch.mm(torch.rand(2048, 2048, device="cuda"), torch.rand(2048, 2048, device="cuda"))
        torch.cuda.synchronize()
    for case, make in cases.all_cases(kernels, model_tensors.MODELS, l2):
        if clock.left() < reserve:
            results["timings"].append(dict(case, failed="no time left of the budget"))
            continue
        say("gpu-check: " + case["case"])
        try:
            ours, peers, sets = make()
            first, second, answers, eager = in_turns(ours, peers, sets)
            answers = [regressed(case, *answer) for answer in answers]
            row = summary.row_of(case, first, second, answers, rates.get(case["mix"]), False)
            row.update({"eager_us": 1e6 * eager, "data_sets": sets})
            if ours.note:
                row["note"] = ours.note
        except Exception as error:
            row = dict(case, failed=first_line(error))
        results["timings"].append(row)
        ours = peers = make = None
        gc.collect()
        torch.cuda.empty_cache()
        save()


def rehearsed_timings(results):
    """Times drawn around the predictions: they exercise everything behind the measurement."""
    random = np.random.default_rng(7)
    rows = (("dgc_step, rehearsal", "dgc_step", 20, "R3W2", 7, 1.3),
            ("sparse_apply of 8 ranks, rehearsal", "sparse_apply", 0.576, None, 2, 30.0),
            ("pack fp32, rehearsal", "pack", 8, "R1W1", 1, 1.0),
            ("AdamW, rehearsal", "update", 28, "R4W3", 1, 1.005),
            ("batch norm + relu, rehearsal", "elementwise", 6, "R2W1", 2, 0.9))
    for name, kind, size, mix, launches, factor in rows:
        n = 25_500_000
        case = {"case": name, "kind": kind, "elements": n, "counted_bytes": int(size * n),
                "mix": mix, "launches": launches}
        base = case["counted_bytes"] / (0.9 * 4e12)
        ours, again, peer = (b * (1 + 0.01 * random.standard_normal(50)) for b in
                             (base, base, factor * base))
        row = summary.row_of(case, ours, again,
                             [("made up", peer, ""),
                              ("absent", None, "did not run: this is a rehearsal")], 4e12, True)
        row["eager_us"] = 1e6 * base + 3
        results["timings"].append(row)


def import_torch():
    try:
        import torch
        return torch, ""
    except Exception as error:  # a torch that is there and does not load is no torch
        return None, "torch cannot be imported (%s)" % type(error).__name__


class Run:
    """One run of the program, stage after stage; what is known is written after each."""

    def __init__(self, chosen):
        self.chosen = chosen
        self.clock = Clock(chosen.budget)
        torch, self.no_torch = import_torch() if not chosen.rehearse else (None, "")
        self.gpu = torch is not None and torch.cuda.is_available()
        self.facts = machine.describe(torch)
        if chosen.rehearse:
            self.facts["name"] = "no GPU: a rehearsal"
        capability = "sm_%d%d" % torch.cuda.get_device_capability() if self.gpu else "sm_90"
        self.arch = chosen.arch or capability
        name = self.facts.get("name") or "no-gpu"
        unmeasured = chosen.rehearse or not self.gpu
        self.out = chosen.out or os.path.join(
            machine.ROOT, "build-gpu-check" if unmeasured else "scenarios/measured/gpu",
            "".join(c if c.isalnum() else "_" for c in name.lower()) + ".json")
        self.results = {"format": FORMAT, "rehearsal": chosen.rehearse, "machine": self.facts,
                        "clocks": [machine.clocks()], "build": None, "arguments": [],
                        "programs": [], "launch": None, "ceilings": [], "checks": [],
                        "timings": [],
                        "sanitizer": {"status": "SKIPPED", "detail": ": not reached"}}
        self.library_path = self.ceilings = self.kernels = None
        self.problem = "left out (--no-build)"
        self.programs = []

    def save(self):
        summary.write_json(self.out, self.results)

    def build(self):
        say("gpu-check: build")
        if not self.chosen.no_build:
            self.library_path, self.ceilings, self.problem = machine.build(
                self.chosen.build, self.arch, self.chosen.jobs,
                max(30, min(240, self.clock.left())))
        self.results["build"] = self.problem or "built for " + self.arch
        if self.library_path is None:
            return
        try:
            self.kernels = library.Library(self.library_path)
            self.check_arguments()
        except OSError as error:
            self.problem = "the kernels' library does not load: %s" % error
            self.results["build"] = self.problem

    def check_arguments(self):
        checks = self.results["checks"]
        for missing in self.kernels.missing:
            checks.append({"name": missing, "passed": False,
                           "detail": "not in this build of the kernels"})
        for what, text in library.argument_checks(self.kernels):
            self.results["arguments"].append({"name": what, "passed": text is not None,
                                              "detail": text or "accepted"})
            checks.append({"name": "refused: " + what, "passed": text is not None,
                           "detail": "" if text else "was accepted"})

    def nccl(self, run):
        """Builds the NCCL backend's check, or runs it."""
        say("gpu-check: " + ("NCCL backend" if run else "build of the NCCL backend's check"))
        self.results["nccl"] = machine.nccl_check(self.chosen.build, self.arch, self.chosen.jobs,
                                                  max(120 if run else 60, self.clock.left()), run)

    def run_programs(self):
        say("gpu-check: check programs")
        self.programs, sentence = machine.check_programs(
            self.chosen.build, self.arch, self.chosen.jobs, max(30, min(240, self.clock.left())))
        answers = self.results["programs"]
        if sentence:
            answers.append({"name": "kernels/check", "status": "not run",
                            "detail": ": " + sentence})
        for program in self.programs:
            if self.gpu:
                answers.append(machine.run_program(program, max(10, min(120, self.clock.left()))))
            else:
                answers.append({"name": os.path.basename(program), "status": "built",
                                "detail": ", not run: no GPU"})

    def rehearse(self):
        self.results["ceilings"], self.results["launch"] = ceilings_of(None, 0, True)
        self.results["checks"] += (run_checks(truth.NumpyKernels(), False, self.clock, 0) +
                                   spoiled_checks())
        rehearsed_timings(self.results)
        self.results["sanitizer"]["detail"] = ": a rehearsal"
        self.save()

    def measure(self):
        from device import DeviceKernels
        results, clock = self.results, self.clock
        nccl_seconds = NCCL_SECONDS if self.chosen.nccl else 0
        l2 = self.facts.get("l2_bytes") or 60 << 20
        say("gpu-check: ceilings")
        try:
            results["ceilings"], results["launch"] = ceilings_of(self.ceilings, l2, False)
        except Exception as error:
            results["checks"].append({"name": "ceilings", "passed": False, "detail": str(error)})
        self.save()
        say("gpu-check: checks against fp64")
        results["checks"] += run_checks(DeviceKernels(self.kernels), True, clock,
                                        0.5 * self.chosen.budget)
        self.save()
        timed(self.kernels, results, l2, clock, 60 + nccl_seconds, self.save)
        results["clocks"].append(machine.clocks())
        say("gpu-check: compute-sanitizer")
        left = clock.left() - nccl_seconds
        if left > 20:
            share = max(10, left / max(1, len(self.programs)) - 2)
            results["sanitizer"] = machine.sanitize(self.programs, share)
        else:
            results["sanitizer"]["detail"] = ": no time left of the budget"
        self.save()

    def failed(self):
        results = self.results
        return (any(not check["passed"] for check in results["checks"]) or
                any(p["status"] in ("failed", "cut off") for p in results["programs"]) or
                results["sanitizer"]["status"] == "FAILED" or
                results.get("nccl", {}).get("status") in ("failed", "cut off") or
                any("failed" in row and "no time" not in row["failed"]
                    for row in results["timings"]))

    def report(self):
        """Prints the tables; returns the exit code."""
        print(summary.table(self.results))
        nccl = self.results.get("nccl")
        if nccl is not None:
            print(nccl.get("tables", ""))
            print("NCCL backend: %s%s." % (nccl["status"], nccl["detail"]))
        print("Build: %s." % self.results["build"])
        print("Written to %s." % self.out)
        if self.chosen.rehearse:
            return 1 if self.failed() else 0
        if not self.gpu:
            print("No GPU was used, nothing was measured: %s." %
                  (self.no_torch or "torch sees no CUDA device"))
            return 1 if self.failed() else 3
        if self.kernels is None:
            print("Nothing was measured: %s." % self.problem)
            return 1
        return 1 if self.failed() else 0


def main():
    run = Run(options())
    with_nccl = run.chosen.nccl and not run.chosen.rehearse
    run.save()
    run.build()
    run.save()
    if with_nccl:
        run.nccl(False)
        run.save()
    if run.library_path is not None:
        run.run_programs()
        run.save()
    if run.chosen.rehearse:
        run.rehearse()
    elif run.gpu and run.kernels is not None:
        run.measure()
    if with_nccl and run.results["nccl"]["status"] == "built" and run.gpu:
        run.nccl(True)
        run.save()
    return run.report()


if __name__ == "__main__":
    sys.exit(main())
