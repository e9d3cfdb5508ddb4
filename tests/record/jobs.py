"""Training jobs that record themselves, checked against what is known of them by other ways.

    jobs.py ddp RANK FOLDER      two ranks, found through a file in FOLDER
    jobs.py alone FOLDER         one process: no communication, stand-ins for later torch and GPUs
    jobs.py fails FOLDER         one that cannot be recorded

Exit code 0: every check held. The scenarios stay in FOLDER.
"""

import contextlib
import io
import json
import math
import mmap
import os
import re
import signal
import subprocess
import sys
import time
import types
import unittest.mock

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel

import syncline_apply as applied
import syncline_record as recorder

recorder._SWEEP = 0.02


class Net(nn.Module):
    """A frozen layer, a shared weight, batch norm and a layer that nobody calls."""

    def __init__(self, sparse=False):
        super().__init__()
        self.words = nn.Embedding(50, 64, sparse=sparse)
        self.unused = nn.Linear(64, 300)
        self.first = nn.Linear(64, 64)
        self.norm = nn.BatchNorm1d(64)
        self.frozen = nn.Linear(64, 64)
        self.last = nn.Linear(64, 64, bias=False)
        self.last.weight = self.first.weight
        self.wide = nn.Linear(64, 5000)
        for parameter in self.frozen.parameters():
            parameter.requires_grad = False

    def forward(self, words):
        x = torch.relu(self.norm(self.first(self.words(words))))
        return self.wide(torch.dropout(self.last(self.frozen(x)), 0.1, True))


def make(**arguments):
    """A job: its model, its optimiser and what trains it once."""
    torch.manual_seed(3)
    sparse = arguments.pop("sparse", False)
    model = DistributedDataParallel(Net(sparse), find_unused_parameters=True, **arguments)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0 if sparse else 0.9)

    def step():
        optimizer.zero_grad(set_to_none=True)
        words = torch.randint(50, (8,))
        model(words).pow(2).mean().backward()
        optimizer.step()
    return types.SimpleNamespace(model=model, optimizer=optimizer, step=step)


def states(job):
    """All that training changes."""
    kept = [t.detach().clone() for t in [*job.model.parameters(), *job.model.buffers()]]
    kept += [value.clone() for state in job.optimizer.state.values() for value in state.values()
             if torch.is_tensor(value)]
    kept += [p.grad.to_dense().clone() for p in job.model.parameters() if p.grad is not None]
    return kept + [torch.get_rng_state()]


def check_same(one, other):
    assert len(one) == len(other), (len(one), len(other))
    for a, b in zip(one, other):
        assert torch.equal(a, b), (a.shape, (a - b).abs().max())


def refusal(work, kinds=(RuntimeError, KeyError)):
    """Why it goes wrong."""
    try:
        work()
    except kinds as error:
        return str(error)
    raise AssertionError("it went well")


def recorded(job, folder, name, step=None, **more):
    """(what is said, the scenario)."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        scenario = recorder.record(job.model, step or job.step, steps=4,
                                   out=f"{folder}/{name}.json", **more)
    return said.getvalue(), scenario


def check_untouched(job):
    """No hook is left."""
    assert torch.autograd.backward.__module__ == "torch.autograd"
    assert "step" not in vars(job.optimizer)
    assert not job.model._forward_pre_hooks
    for parameter in job.model.parameters():
        assert not parameter._backward_hooks
        if parameter.requires_grad:
            accumulator = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
            seen = []
            accumulator.register_hook(lambda *_: seen.append(1)).remove()


def trained_gradients(module):
    return {name: p for name, p in module.named_parameters() if p.requires_grad}


def check_workload(job, scenario):
    """Names, shapes, formats and buffers as the module has them; times that can be."""
    workload = scenario["workload"]
    known = trained_gradients(job.model.module)
    tensors = {tensor["name"]: tensor for tensor in workload["tensors"]}
    assert len(tensors) == len(workload["tensors"])
    assert set(tensors) == set(known), (set(tensors), set(known))
    for name, tensor in tensors.items():
        assert tensor["shape"] == list(known[name].shape) and tensor["dtype"] == "fp32"
        assert tensor["backward_us"] >= 0
        assert tensor["registered"] == list(known).index(name)
    assert [b["name"] for b in workload["buffers"]] == ["norm.running_mean", "norm.running_var"]
    for key in ("forward_ms", "update_ms", "host_gap_ms"):
        assert workload[key] >= 0, key
    assert workload["forward_ms"] > 0
    backward = sum(tensor["backward_us"] for tensor in workload["tensors"])
    assert backward > 0
    assert scenario["published"][0]["step_time_s"] > 0
    return tensors


def ready_order(job):
    """As DDP itself logged it, those without a gradient left out."""
    names = list(trained_gradients(job.model.module))
    logged = job.model._get_ddp_logging_data()["prev_iteration_grad_ready_order_indices"]
    order = [names[int(i)] for i in logged.split(",")]
    return [name for name in order if not name.startswith("unused.")]


def write_facts(folder, name, job):
    """What DDP says of its buckets, for whoever reads the scenario."""
    logged = job.model._get_ddp_logging_data()
    sizes = logged.get("rebuilt_bucket_sizes") or logged["bucket_sizes"]
    with open(f"{folder}/{name}.facts.json", "w", encoding="utf-8") as file:
        json.dump({"bucket_bytes": [int(size) for size in sizes.split(",")]}, file)


def record_job(job, folder, name, steps=4):
    """Records it twice in its life, checks that it does not notice, and gives the scenario."""
    for _ in range(2):
        job.step()
    before = states(job)
    trained = []

    def step():
        trained.append(job.step())
    scenario = recorder.record(job.model, step, steps=steps, out=f"{folder}/{name}.json")
    assert len(trained) == recorder._needed(recorder._Job(job.model, None), steps), len(trained)
    check_same(before, states(job))
    check_untouched(job)
    if dist.get_rank() != 0:
        assert scenario is None
        return None
    write_facts(folder, name, job)
    with open(f"{folder}/{name}.json", encoding="utf-8") as file:
        assert json.load(file) == scenario
    return scenario


def plain_job_records_its_order_and_buckets(folder):
    job = make(bucket_cap_mb=0.1)
    scenario = record_job(job, folder, "ddp")
    if scenario is None:
        return
    tensors = check_workload(job, scenario)
    order = [name for name in tensors if not name.startswith("unused.")]
    assert order == ready_order(job), (order, ready_order(job))
    for name in tensors:
        assert ("copy_in_us" in tensors[name]) and ("copy_out_us" in tensors[name])
        assert tensors[name]["backward_us"] == 0 or not name.startswith("unused.")
    assert tensors["wide.weight"]["copy_in_us"] > 0
    config = scenario["strategies"][0]["config"]
    assert config == {"bucket_cap_mb": 0.1, "find_unused_parameters": True}, config
    assert scenario["workload"]["torch"] == "1.13"
    assert scenario["workload"]["optimizer"] == "momentum"
    cluster = scenario["cluster"]
    assert (cluster["nodes"], cluster["gpus_per_node"], cluster["library"]) == (1, 2, "gloo")
    curve = cluster["intra"]["measured_steps_us"]
    assert curve[0][0] == 2048 and curve == sorted(curve), curve
    device = cluster["device"]
    assert device["memory_gbytes_per_s"] > 0 and device["rounding_gbytes_per_s"] > 0, device
    # Gloo adds 16 bits up in software: far slower than memory, and no faster than an addition each.
    assert 0 < device["sums_gbytes_per_s"] < 100, device
    assert device["select_gelements_per_s"] > 0 and device["selection_us"] >= 0, device
    sent = scenario["published"][0]["collectives"]
    assert sent == len(job.model._get_ddp_logging_data()["bucket_sizes"].split(",")), sent


def hooks_and_views_are_named(folder):
    job = make(gradient_as_bucket_view=True)
    job.model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    scenario = record_job(job, folder, "views")
    if scenario is None:
        return
    config = scenario["strategies"][0]["config"]
    assert config["gradient_as_bucket_view"] and config["comm_hook"] == "fp16_compress_hook"
    assert all("copy_in_us" not in tensor for tensor in check_workload(job, scenario).values())


def sparse_gradients_are_sparse(folder):
    job = make(sparse=True)
    scenario = record_job(job, folder, "sparse")
    if scenario is None:
        return
    rows = {name: tensor["sparse_rows"] for name, tensor in check_workload(job, scenario).items()
            if "sparse_rows" in tensor}
    assert rows == {"words.weight": 8}, rows
    assert scenario["workload"]["optimizer"] == "sgd"


def buckets_that_are_rebuilt(folder):
    """Without unused parameters DDP sorts its buckets anew, by readiness."""
    torch.manual_seed(3)
    module = nn.Sequential(nn.Linear(64, 600), nn.ReLU(), nn.Linear(600, 600), nn.ReLU(),
                           nn.Linear(600, 64))
    model = DistributedDataParallel(module, bucket_cap_mb=1)
    optimizer = torch.optim.Adam(model.parameters(), 1e-4)

    def step():
        model(torch.randn(8, 64)).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    job = types.SimpleNamespace(model=model, optimizer=optimizer, step=step)
    scenario = record_job(job, folder, "rebuilt")
    if scenario is None:
        return
    assert scenario["workload"]["optimizer"] == "adam"
    order = [tensor["name"] for tensor in scenario["workload"]["tensors"]]
    assert order == ready_order(job), (order, ready_order(job))


def jobs_that_go_wrong_are_left_as_they_were(folder):
    job = make()
    job.step()
    before = states(job)

    def twice():
        job.step()
        job.step()

    def breaks():
        job.step()
        breaks.steps += 1
        if breaks.steps > 5:  # the second one with hooks
            raise KeyError("the data is at its end")
    breaks.steps = 0
    for step, message in ((twice, "a step has 2 updates"), (lambda: None, "no forward pass"),
                          (breaks, "data is at its end")):
        error = refusal(lambda: recorded(job, folder, "never", step))
        assert message in error, error
        check_same(before, states(job))
        check_untouched(job)
    job.step()


def batches(begin, end):
    """What a loader gives: another one to each rank, whatever was trained before."""
    for at in range(begin, end):
        dice = torch.Generator().manual_seed(2 * at + dist.get_rank())
        yield torch.randint(50, (8,), generator=dice)


def train(job, words):
    job.optimizer.zero_grad(set_to_none=True)
    job.model(words).pow(2).mean().backward()
    job.optimizer.step()


def needed(job, steps=4):
    return recorder._needed(recorder._Job(job.model, None), steps)


def a_loop_goes_on_as_if_nobody_had_looked(folder):
    """To the bit, from where it was; the recorded steps have used up their batches."""
    job, other = make(bucket_cap_mb=0.1), make(bucket_cap_mb=0.1)
    for one in (job, other):
        torch.manual_seed(4)
        for words in batches(0, 3):
            train(one, words)
    last = 3 + needed(job)
    before = states(job)
    torch.manual_seed(5)
    with recorder.record(job.model, steps=4, out=f"{folder}/loop.json") as recording:
        for at, words in enumerate(batches(3, last + 1), 3):
            assert recording.done == (at >= last), at
            if at == last:
                check_same(before[:-1], states(job)[:-1])
                check_untouched(job)
            train(job, words)
    torch.manual_seed(5)
    for words in batches(last, last + 1):
        train(other, words)
    check_same(states(other), states(job))
    if dist.get_rank() != 0:
        assert recording.scenario is None
        return
    scenario = recording.scenario
    assert [name for name in check_workload(job, scenario)
            if not name.startswith("unused.")] == ready_order(job)
    assert scenario["workload"]["update_ms"] > 0
    write_facts(folder, "loop", job)
    with open(f"{folder}/loop.json", encoding="utf-8") as file:
        assert json.load(file) == scenario


def a_loop_that_ends_too_early_is_told(folder):
    """And its model is as it was, though some of its steps did without communication."""
    job = make()
    for words in batches(0, 2):
        train(job, words)
    before = states(job)
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        with recorder.record(job.model, steps=4, out=f"{folder}/never.json") as recording:
            for words in batches(2, 22):
                train(job, words)
    assert not recording.done
    check_same(before, states(job))
    check_untouched(job)
    line = (f"syncline_record: the loop ended after 20 of the {needed(job)} steps that a recording "
            f"needs: {folder}/never.json was not written, and the model is as it was before\n")
    assert said.getvalue() == (line if dist.get_rank() == 0 else ""), said.getvalue()


def loops_that_cannot_be_recorded(folder):
    job = make()
    train(job, next(batches(0, 1)))
    before = states(job)

    def uneven_passes():
        with recorder.record(job.model, steps=4, out=f"{folder}/never.json"):
            for at, words in enumerate(batches(0, 90)):
                if at % 2:
                    job.model(words).mean().backward()
                train(job, words)
    error = refusal(uneven_passes)
    assert "steps run 1 to 2 backward passes" in error, error
    check_same(before, states(job))
    check_untouched(job)
    error = refusal(recorder.record(nn.Linear(2, 2)).__enter__)
    assert "no optimizer of torch.optim trains the model" in error, error


def gradients_that_accumulate(folder):
    """Each pass is a micro-batch, whether the last one alone exchanges or all do; the job goes on
    as if nobody had looked."""
    for inside in (True, False):
        name = "last" if inside else "each"
        job, other = make(bucket_cap_mb=0.1), make(bucket_cap_mb=0.1)

        def step(one, words):
            one.optimizer.zero_grad(set_to_none=True)
            for at in range(3):
                waits = one.model.no_sync() if inside and at < 2 else contextlib.nullcontext()
                with waits:
                    one.model(words).pow(2).mean().backward()
            one.optimizer.step()
        for one in (job, other):
            torch.manual_seed(4)
            step(one, next(batches(0, 1)))
        said, scenario = recorded(job, folder, name, lambda: step(job, next(batches(1, 2))))
        after = []
        for one in (job, other):
            torch.manual_seed(6)
            step(one, next(batches(2, 3)))
            after.append(states(one))
        check_same(*after)
        if dist.get_rank() != 0:
            continue
        assert scenario["workload"]["micro_batches"] == 3, said
        config, measured = scenario["strategies"][0]["config"], scenario["published"][0]
        assert config.get("no_sync", False) == inside, config
        buckets = len(recorder._Job(job.model, None).bucket_bytes())
        assert measured["collectives"] == buckets * (1 if inside else 3), measured


class Experts(nn.Module):
    """Of which each step uses another."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(16, 16)
        self.experts = nn.ModuleList(nn.Linear(16, 16) for _ in range(3))

    def forward(self, x, at):
        return self.experts[at % 3](torch.relu(self.first(x)))


def unused_parameters_that_change(folder):
    """From step to step, and from rank to rank, without gradients in between: DDP keeps what passes
    in no_sync have used."""
    for views in (False, True):
        torch.manual_seed(5)
        model = DistributedDataParallel(Experts(), find_unused_parameters=True,
                                        gradient_as_bucket_view=views)
        optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
        place = [dist.get_rank() if views else 0]

        def step():
            optimizer.zero_grad(set_to_none=True)
            model(torch.ones(4, 16), place[0]).pow(2).mean().backward()
            optimizer.step()
            place[0] += 1
        job = types.SimpleNamespace(model=model, optimizer=optimizer, step=step)
        for _ in range(3):
            step()
        before = states(job)
        said, scenario = recorded(job, folder, "experts")
        check_same(before, states(job))
        for _ in range(3):
            step()
        if dist.get_rank() == 0:
            assert len(scenario["workload"]["tensors"]) == 8, said


def loops_of_all_kinds(folder):
    """The last of several optimizers ends a step; so does a scaler, which leaves out updates of a
    rank. A schedule is made meanwhile, and no_sync undone by the loop in each step."""
    job = make()
    parameters = list(job.model.parameters())
    one, last = (torch.optim.SGD(some, 0.01) for some in (parameters[:2], parameters[2:]))
    job.optimizer = last
    all_steps = needed(job)
    leaves_out = [False]

    def scaled(_, optimizer):
        if not leaves_out[0]:
            optimizer.step()
    GradScaler = torch.cuda.amp.GradScaler
    with unittest.mock.patch.object(GradScaler, "step", scaled):
        scaler = GradScaler(enabled=False)
        with recorder.record(job.model, steps=4, out=f"{folder}/kinds.json") as recording:
            communicated = job.model.num_iterations
            for at, words in enumerate(batches(0, all_steps + 1)):
                assert recording.done == (at == all_steps), at
                if recording.done:
                    break
                leaves_out[0] = at % 2 == 1 + dist.get_rank() and at > 0
                job.model.require_backward_grad_sync = True
                job.model(words).pow(2).mean().backward()
                for optimizer in (one, last):
                    scaler.step(optimizer)
                if at == 1:
                    schedule = torch.optim.lr_scheduler.ExponentialLR(last, 0.9)
        assert GradScaler.step is scaled
    # Those before, as usual and with hooks, and the last one.
    communicated = job.model.num_iterations - communicated
    assert communicated == recorder._WARM + 2 * (1 + recorder._BLOCK) + 1, communicated
    check_untouched(job)
    assert schedule.get_last_lr() == [0.01]


def waiting_for_a_late_rank_is_no_time_of_an_exchange(folder):
    """The steps before leave the ranks apart; 4 KiB would take as long as that."""
    job = recorder._Job(make().model, None)
    sweep = recorder._Sweep(job, job.group)
    late = 0.5  # seconds
    time.sleep(late * job.rank)
    assert sweep._round()[0] < late / 4
    beside = recorder._Beside(job, torch.zeros(256), {"a", "b"})
    for name in ("a", "b"):
        time.sleep(late * job.rank)
        beside.start(name)
        beside.wait()
    time.sleep(0.05)
    step = types.SimpleNamespace(marks={"backward_end": job.now()})
    times = beside.times(step)
    assert len(times["took"]) == 2 and not times["cut"] and max(times["took"]) < late / 4, times


def exchanges_that_wait_are_told(folder):
    """But not to a job that has taken the advice."""
    job = make()
    told = []
    with unittest.mock.patch.object(recorder._Sweep, "waiting", lambda _: (0.29, 3.8e-3)):
        for policy in (os.SCHED_OTHER, os.SCHED_BATCH):
            os.sched_setscheduler(0, policy, os.sched_param(0))
            said, _ = recorded(job, folder, "waiting")
            told.append("29 % of the smallest collectives take 3.8 ms longer" in said
                        and "chrt --batch 0" in said)
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    assert told == ([True, False] if dist.get_rank() == 0 else [False, False]), told


@contextlib.contextmanager
def spinning(processors, starts):
    """On these alone runs this process, and where it starts them as many others, nobody's children,
    for a minute at the most."""
    there = os.sched_getaffinity(0)
    os.sched_setaffinity(0, processors)
    one = "timeout 60 sh -c 'while :; do :; done' >/dev/null 2>&1 & echo $!; "
    script = one * len(processors) if starts else ""
    started = subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE, check=True, text=True)
    try:
        yield
    finally:
        for process in started.stdout.split():
            os.kill(int(process), signal.SIGTERM)
        os.sched_setaffinity(0, there)


def a_busy_machine_is_told(folder):
    """Ahead of the figures and in the scenario, whose times are as much less sure."""
    job = make()
    two = set(sorted(os.sched_getaffinity(0))[:2])
    with spinning(two, dist.get_rank() == 0):
        dist.barrier()
        said, scenario = recorded(job, folder, "busy")
    if dist.get_rank() != 0:
        return
    told = re.fullmatch("syncline_record: (recorded on a busy machine: other processes took "
                        "([0-9]+) % of the processors that the ranks need; .*)",
                        said.splitlines()[0])
    assert told, said
    assert scenario["notes"][0] == told.group(1)
    share = (int(told.group(2)) - 0.5) / 100
    # The key is at most 1, reached where others take 87 % of the processors.
    least = min(1, -math.log(1 - min(share, 0.9)) / 2)
    assert scenario["workload"]["time_spread"] >= least - 0.001


def in_two_ranks(rank, folder):
    dist.init_process_group("gloo", f"file://{folder}/meeting", rank=rank, world_size=2)
    for case in (plain_job_records_its_order_and_buckets, hooks_and_views_are_named,
                 sparse_gradients_are_sparse, buckets_that_are_rebuilt,
                 jobs_that_go_wrong_are_left_as_they_were,
                 a_loop_goes_on_as_if_nobody_had_looked, a_loop_that_ends_too_early_is_told,
                 loops_that_cannot_be_recorded, gradients_that_accumulate,
                 unused_parameters_that_change, loops_of_all_kinds,
                 waiting_for_a_late_rank_is_no_time_of_an_exchange,
                 exchanges_that_wait_are_told, a_busy_machine_is_told):
        case(folder)
        dist.barrier()
    dist.destroy_process_group()


def written(path, text):
    """What _write says of it; nothing where it is written."""
    try:
        recorder._write(path, text)
        return ""
    except RuntimeError as error:
        return str(error)


def what_is_written_takes_no_other_files_place(folder):
    """Links stay, devices and pipes are written into, modes are kept; an old guess of the name
    beside is nobody's way in."""
    victim, out, link = (f"{folder}/{name}" for name in ("victim", "out.json", "link.json"))
    for path in (victim, out):
        with open(path, "w", encoding="utf-8") as file:
            file.write("old")
    os.chmod(out, 0o640)
    os.symlink("victim", out + ".part")
    assert written(out, "new") == ""
    assert open(victim, encoding="utf-8").read() == "old"
    assert open(out, encoding="utf-8").read() == "new" and not os.path.islink(out)
    assert os.stat(out).st_mode & 0o777 == 0o640
    os.symlink("out.json", link)
    assert written(link, "newer") == "" and os.path.islink(link)
    assert open(out, encoding="utf-8").read() == "newer"
    os.mkfifo(f"{folder}/pipe")
    assert "pipe: No such device" in written(f"{folder}/pipe", "text")
    reader = os.open(f"{folder}/pipe", os.O_RDONLY | os.O_NONBLOCK)
    assert written(f"{folder}/pipe", "text") == "" and os.read(reader, 9) == b"text"
    os.close(reader)
    assert "/dev/full: No space left" in written("/dev/full", "text")
    ends = os.pipe()
    assert written(f"/dev/fd/{ends[1]}", "text") == "" and os.read(ends[0], 9) == b"text"
    assert not [name for name in os.listdir(folder) if name.startswith(".partial-")]


def what_cannot_be_written_is_known_before_the_work(folder):
    job = small_job()
    steps = []
    if not os.path.exists(f"{folder}/unread"):
        os.mkfifo(f"{folder}/unread")
    for out in (f"{folder}/nowhere/out.json", folder, "/dev/fd/99", "/dev/full",
                f"{folder}/unread"):
        error = refusal(lambda: recorder.record(job.model, lambda: steps.append(1), out=out))
        assert error.startswith(f"syncline_record: {out}: "), error
    assert not steps
    # Where rank 0 fails all do.
    others = types.SimpleNamespace(rank=1, gathered=lambda mine: ["out.json: No space left", mine])
    assert refusal(lambda: recorder._on_first(others, steps.append)) == "out.json: No space left"
    assert not steps


def a_thread_that_encodes_is_over_with_its_block(folder):
    """Also where a step failed and nobody waited for it: Python may end at once."""
    weight = torch.zeros(100, requires_grad=True)
    weight.grad = torch.ones(100)
    job = types.SimpleNamespace(gradients={"a": weight}, ranks=2, sparse_rows={}, on_gpu=False,
                                narrows=True)
    with contextlib.closing(recorder._Coding(job, ["a"])) as coding:
        coding.tasks.put(lambda: time.sleep(0.2))
    assert not coding.thread.is_alive()


def small_job():
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)

    def step():
        optimizer.zero_grad()
        model(torch.randn(2, 8)).sum().backward()
        optimizer.step()
    return types.SimpleNamespace(model=model, optimizer=optimizer, step=step)


def one_rank_alone(folder):
    _, scenario = recorded(small_job(), folder, "alone", batch=2)
    assert scenario["workload"]["batch"] == 2
    assert [t["name"] for t in scenario["workload"]["tensors"]] == [
        "2.bias", "2.weight", "0.bias", "0.weight"]
    assert "copy_in_us" not in scenario["workload"]["tensors"][0]
    assert (scenario["cluster"]["nodes"], scenario["cluster"]["gpus_per_node"]) == (1, 1)


def one_rank_in_a_loop(folder):
    job = small_job()
    steps = recorder._needed(recorder._Job(job.model, None), 4)
    with recorder.record(job.model, steps=4, out=f"{folder}/alone_loop.json") as recording:
        for _ in range(steps - 1):
            job.step()
        assert not recording.done
        job.step()
        assert recording.done and recording.scenario["workload"]["update_ms"] > 0


def threads_that_share_processors(folder):
    """Is told with the recording, and by all verbs that read it."""
    assert recorder._crowded(["a 1 1", "a 1 2", "b 1 1", "b 1 2"]) == ""
    assert recorder._crowded(["a 1 3", "a 1 3"]) == ""
    assert "2 threads of 2 ranks compute on 1 processor of" in recorder._crowded(
        ["a 1 3", "a 1 3", "b 1 1", "b 1 1"])
    assert "8 threads of 4 ranks compute on 7 processors of" in recorder._crowded(
        ["a 2 3", "a 2 c", "a 2 30", "a 2 40"])
    before = torch.get_num_threads()
    torch.set_num_threads(len(os.sched_getaffinity(0)) + 1)
    try:
        said, scenario = recorded(small_job(), folder, "crowded")
    finally:
        torch.set_num_threads(before)
    assert "threads of 1 rank compute" in said, said
    assert any("threads of 1 rank compute" in note for note in scenario["notes"])


def what_others_take_of_processors(folder):
    """Is what the ranks need and do not have: neither their own use nor that of processors which
    nobody needs."""
    def share(ranks, used):
        return round(recorder._share_of_others(ranks, used), 6)
    two = ["a 1 1", "a 1 2"]
    assert share(two, [(1.9, 0.95), (1.9, 0.95)]) == 0
    assert share(two, [(2.0, 0.7), (2.0, 0.7)]) == 0.3
    assert share(two, [(0.0, 0.7), (0.0, 0.7)]) == 0  # a system that says nothing
    assert share(["a 1 ff", "a 1 ff"], [(7.5, 1), (7.5, 1)]) == 0
    assert share(["a 1 ff", "a 1 ff"], [(8.0, 0.5), (8.0, 0.75)]) == 0.375
    assert share(["a 4 3", "a 4 3"], [(2.0, 0.75), (2.0, 0.75)]) == 0.25
    assert share([*two, "b 1 1"], [(2.0, 1.0), (2.0, 0.9), (1.0, 0.6)]) == 0.4
    seen = object.__new__(recorder._Seen)
    seen.others = 0.09
    assert seen.busy() == ""
    assert recorder._used(0) == 0 < recorder._used(1)


def processes_of_the_job_are_not_others(folder):
    """Such as those that load data, while they are there and afterwards."""
    before = recorder._used_by_this()
    spin = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", spin], stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        there = recorder._used_by_this() - before
        child.kill()
    assert there > 0.25, there
    assert recorder._used_by_this() - before > 0.25


def memory_that_a_step_takes_anew(folder):
    """Is counted, told, and the times are as much less sure. In its own mapping: what the C library
    keeps is its own affair."""
    job = small_job()
    size = 16 << 20

    def hungry():
        with mmap.mmap(-1, size) as fresh:
            for at in range(0, size, mmap.PAGESIZE):
                fresh[at] = 1
        job.step()

    recorded(job, folder, "pages")  # libraries that are loaded with the first step
    said, _ = recorded(job, folder, "pages")
    assert "again from the system" not in said, said
    said, scenario = recorded(job, folder, "pages", hungry)
    pages = int(said.split("a step takes ")[1].split(" pages of memory again")[0])
    assert 1 <= pages / (size / mmap.PAGESIZE) < 1.1, said
    assert "MALLOC_MMAP_MAX_=0" in said and scenario["workload"]["time_spread"] > 0.1, said


class Calls(list):
    """Stand-ins for what later versions of torch have: they do the same on this one, and say so."""

    def handle(self, what, remove):
        return types.SimpleNamespace(remove=lambda: (self.append("remove " + what), remove()))

    def gradient_hook(self, parameter, hook):
        self.append("post_accumulate")
        accumulator = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
        handle = accumulator.register_hook(lambda *_: hook(parameter))
        return self.handle("post_accumulate", lambda kept=accumulator: handle.remove())

    def step_hook(self, which):
        def register(optimizer, hook):
            self.append(which)
            inner = optimizer.step
            def step(*args, **kwargs):
                if which == "pre":
                    hook(optimizer, args, kwargs)
                result = inner(*args, **kwargs)
                if which == "post":
                    hook(optimizer, args, kwargs)
                return result
            optimizer.step = step
            return self.handle(which, lambda: vars(optimizer).pop("step", None))
        return register


def loop_of_later_torch(folder):
    """Its scaler has moved, and may leave out an update."""
    class Scaler:
        def step(self, optimizer, update=True):
            if update:
                optimizer.step()

    class OfCuda(Scaler):
        pass
    job = small_job()
    steps = recorder._needed(recorder._Job(job.model, None), 4)
    scaler = OfCuda()
    with unittest.mock.patch.object(torch.amp, "GradScaler", Scaler, create=True), \
            unittest.mock.patch.object(torch.cuda.amp, "GradScaler", OfCuda), \
            recorder.record(job.model, steps=4, out=f"{folder}/later_loop.json") as recording:
        for at in range(steps):
            assert not recording.done
            job.model(torch.randn(2, 8)).sum().backward()
            scaler.step(job.optimizer, update=at % 3 > 0)
        assert recording.done


def later_torch(folder):
    calls = Calls()

    def gradient_hook(parameter, hook):
        return calls.gradient_hook(parameter, hook)
    with unittest.mock.patch.object(torch.Tensor, "register_post_accumulate_grad_hook",
                                    gradient_hook, create=True), \
            unittest.mock.patch.multiple(torch.optim.Optimizer, create=True,
                                         register_step_pre_hook=calls.step_hook("pre"),
                                         register_step_post_hook=calls.step_hook("post")):
        _, scenario = recorded(small_job(), folder, "later")
        loop_of_later_torch(folder)
    # One block with hooks: each gradient once, the update once, and all of them gone. Another in the
    # loop, which sees the updates itself.
    assert sorted(calls) == sorted(["post_accumulate", "remove post_accumulate"] * 8
                                   + ["pre", "remove pre", "post", "remove post"]), calls
    assert [t["name"] for t in scenario["workload"]["tensors"]] == [
        "2.bias", "2.weight", "0.bias", "0.weight"]
    assert scenario["workload"]["update_ms"] > 0
    # Without an explicit cap, DDP says so since 2.3; from then on an explicit one counts at once.
    model = types.SimpleNamespace(bucket_bytes_cap_default=True)
    fake = types.SimpleNamespace(model=model, logged=lambda key, default=None: default)
    with unittest.mock.patch.object(torch, "__version__", "2.7.1+cu126"):
        assert recorder._config(fake) == {}


class FakeGpu:
    """CUDA's events on a clock that counts what is asked of it: 1 ms a mark."""

    def __init__(self):
        self.time = 0.0
        self.waited = 0

    def Event(self, enable_timing):
        assert enable_timing
        gpu = self

        class Event:
            def record(self, stream):
                gpu.time += 1.0
                self.at = gpu.time
                assert stream == "the current stream"

            def elapsed_time(self, other):
                assert gpu.waited > 0, "the device was not waited for"
                return other.at - self.at
        return Event()

    def synchronize(self, device):
        self.waited += 1


def times_of_a_gpu(folder):
    gpu = FakeGpu()
    fakes = {"Event": gpu.Event, "synchronize": gpu.synchronize,
             "current_stream": lambda device: "the current stream",
             "get_rng_state": lambda device: "dice", "get_device_name": lambda device: "H100",
             "get_device_properties": lambda device: types.SimpleNamespace(total_memory=80e9),
             "set_rng_state": lambda state, device: None}
    made = recorder._Job

    def on_gpu(*args):
        job = made(*args)
        job.on_gpu = True
        return job
    with unittest.mock.patch.multiple(torch.cuda, **fakes), \
            unittest.mock.patch.object(recorder, "_Job", on_gpu):
        _, scenario = recorded(small_job(), folder, "gpu")
    # begin, forward, backward, 4 gradients, its end, update, its end, end: a millisecond each.
    workload = scenario["workload"]
    assert [t["backward_us"] for t in workload["tensors"]] == [1000.0] * 4, workload
    assert (workload["forward_ms"], workload["update_ms"]) == (1, 1), workload
    assert scenario["published"][0]["step_time_s"] == 0.001
    assert workload["host_gap_ms"] == 10 - 1 - 4 - 1, workload
    assert scenario["cluster"]["device"] == {"name": "H100", "memory_gbytes": 80}


def clusters(folder):
    assert recorder._shape(["a", "a", "b", "b"]) == (2, 2)
    assert recorder._shape(["a"]) == (1, 1)
    assert recorder._shape(["a", "b", "a", "b"]) == (4, 1)  # not in order
    assert recorder._shape(["a", "a", "a", "b"]) == (4, 1)  # uneven
    # What NCCL took on 2 nodes of 2 GPUs, the same rows priced where they were measured.
    job = types.SimpleNamespace(on_gpu=False, backend="nccl", ranks=4, device=None, is_ddp=True)
    world = [(4096 << i, 1e-5 * (3 + 1.9 ** i)) for i in range(12)]
    node = [(size, seconds / 4) for size, seconds in world]
    cluster = recorder._cluster(job, ["a", "a", "b", "b"], {"world": world, "node": node})
    with open(f"{folder}/alone.json", encoding="utf-8") as file:
        scenario = json.load(file)
    size = world[7][0] // 4
    tensor = {"name": "all", "shape": [size], "dtype": "fp32", "backward_us": 1}
    scenario["workload"] = {"name": "one", "forward_ms": 0, "update_ms": 0, "tensors": [tensor]}
    scenario["published"] = [{"strategy": "as recorded", "step_time_s": world[7][1] + 1e-6}]
    uneven = recorder._cluster(job, ["a", "b", "a", "b"], {"world": world})
    for name, own in (("nccl", cluster), ("uneven", uneven)):
        with open(f"{folder}/{name}.json", "w", encoding="utf-8") as file:
            json.dump({**scenario, "cluster": own}, file)


def what_exchanges_take(folder):
    # Values that fall share their mean, over as many as it takes; nothing is lost of the sum.
    assert recorder._rising([1, 3, 2, 4]) == [1, 2.5, 2.5, 4]
    assert recorder._rising([5, 4, 3]) == [4, 4, 4]
    assert recorder._rising([1, 2, 9, 3, 3]) == [1, 2, 5, 5, 5]
    assert recorder._rising([1, 1, 2]) == [1, 1, 2]
    # Collectives of steps count where steps had as many bytes.
    def step(seconds):
        sent = [recorder._Sent("all_gather", count, 4, 2) for count in (3000, 3000, 1)]
        for at, one in enumerate(sent[:2]):  # both asked for at once
            one.begin, one.end = 5.0, 5.0 + (at + 1) * seconds
        return {"sent": sent}
    job = types.SimpleNamespace(is_ddp=False, on_gpu=False, ranks=2, mean=list)
    points = [(8000, 0.1), (16000, 0.2), (64000, 0.6)]
    assert math.isclose(recorder._time_of(points, 12000), 0.15)
    assert math.isclose(recorder._time_of(points, 128000), 1.2)
    seen = types.SimpleNamespace(runs={"exchanged": [step(0.18), step(0.24)]})
    sweeps = {"world": points, ("all_gather", 1, 2): points}
    (key, (times, apart, largest)), = recorder._in_steps(job, seen, sweeps).items()
    assert (key, largest) == (("all_gather", 2), 12000) and math.isclose(times, 1.4)
    assert math.isclose(apart, 0.2 / 1.4)
    table = recorder._table(points, 1, 2, "all_gather", (times, apart, largest))
    assert [line["latency_us"] for line in table["lines"]] == [140000, 200000, 0]
    assert table["spreads"][-1]["percent"] > 100 * apart
    # A third that waits counts; one in fifty does not.
    assert recorder._mean([1.0]) == 1
    assert recorder._mean([1.0] * 49 + [1000]) == 1
    assert abs(recorder._mean([0.3] * 20 + [4.0] * 10) - (0.3 * 20 + 4.0 * 10) / 30) < 1e-12


def exchanges_that_take_either_of_two_times(folder):
    sweep = object.__new__(recorder._Sweep)

    def waiting(smallest):
        sweep.taken = [[seconds, 1.0] for seconds in smallest]
        return sweep.waiting()
    share, longer = waiting([0.3e-3, 0.3e-3, 4.0e-3, 0.3e-3, 0.3e-3, 3.8e-3, 0.3e-3, 0.3e-3] * 5)
    assert share == 0.25 and abs(longer - 3.6e-3) < 1e-9, (share, longer)
    assert waiting([0.2e-3, 0.3e-3, 0.5e-3, 0.8e-3]) == (0, 0)  # a machine that others use as well
    assert waiting([30e-3, 31e-3, 35e-3, 45e-3]) == (0, 0)  # a slow network
    assert waiting([0.3e-3]) == (0, 0)


def what_exchanges_lose(folder):
    def turns(large, small):
        return [([{"took": [t], "cut": []}], [{"took": [s], "cut": []}], [])
                for t, s in zip(large, small)]
    # 4 and 1 ms alone; beside the pass half as long again and a wait of 0.5 ms.
    delay, slope = recorder._delays(turns([6.5e-3] * 9, [2e-3] * 9), 4e-3, 1e-3)
    assert abs(slope - 0.5) < 1e-9 and abs(delay - 0.5e-3) < 1e-9, (delay, slope)
    # Sizes that take the same alone say nothing of the share, whatever they took.
    noisy = turns([0.9e-3, 5e-3, 4e-3, 1e-3] * 9, [0.9e-3, 2e-3, 0.8e-3, 4e-3] * 9)
    delay, slope = recorder._delays(noisy, 2.02e-3, 2e-3)
    assert slope < 0.2 and delay < 1.5e-3, (delay, slope)
    assert recorder._delays(turns([6e-3], [2e-3]), 4e-3, 1e-3)[1] == 0  # one of each tells nothing
    assert recorder._delays([], 4e-3, 1e-3) == (0, 0)


def values_of_gradients(folder):
    weights = {name: torch.zeros(2, requires_grad=True) for name in ("a", "b", "c")}
    job = types.SimpleNamespace(gradients=weights, device=None)
    assert recorder._gradient_values(job, 3).tolist() == torch.full((3,), 0.01).tolist()
    weights["a"].grad = torch.tensor([1.0, 2.0])
    weights["b"].grad = torch.sparse_coo_tensor([[0]], [5.0], (2,))
    assert recorder._gradient_values(job, 5).tolist() == [1, 2, 1, 2, 1]
    weights["c"].grad = torch.tensor([3.0, 4.0])
    assert recorder._gradient_values(job, 3).tolist() == [1, 2, 3]


def encoding_is_that_of_the_applied_file(folder):
    """To the bit, step by step: what is timed is what the file does."""
    dice = torch.Generator().manual_seed(3)
    group = {"weight_decay": 0, "nesterov": False, "momentum": 0.9}
    room, lane = {}, types.SimpleNamespace(ranks=2, room=applied._Room(),
                                           gather=lambda sent: [sent, sent])
    for elements in (1, 99, 1000, 40_000):
        gradient = torch.randn(elements, generator=dice)
        timed = recorder._Selection(gradient, 2, room)
        ramp = {"rampup_begin_step": 0, "rampup_step": 1, "sparsity": [0.99]}
        known = applied._Dgc(gradient, ramp)
        known.kept = lambda step: timed.kept
        for step in range(4):
            gradient = torch.randn(elements, generator=dice)
            buffer = gradient.clone()
            known.exchange(buffer, lane, step, None, group)
            timed.go(gradient)
            for one, other in ((timed.velocity, known.velocity), (timed.residual, known.residual),
                               (timed.buffer, buffer)):
                assert torch.equal(one, other), (elements, step)


def what_encoding_takes(folder):
    gradients = {"large": torch.zeros(1_000_000), "small": torch.zeros(1000)}
    job = types.SimpleNamespace(gradients=gradients, ranks=2, narrows=True,
                                mean=lambda values: values)
    alone = {1024: 1e-4, 1_000_000: 1e-2}
    with unittest.mock.patch.object(recorder, "_selection_time", lambda _, n: alone[n]):
        per_element = (1e-2 - 1e-4) / (1_000_000 - 1024)
        rate, besides = recorder._selection(job, {})
        assert math.isclose(1 / rate, per_element)
        assert math.isclose(besides, 1e-4 - 1024 * per_element)
        # A step that gets longer by more than that: it is the step that says what an element costs.
        rate, _ = recorder._selection(job, {"coded": (2e-2 + 2e-4, 2, 1_001_000)})
        assert math.isclose(1 / rate, 2e-2 / 1_001_000)
        # One that hides it behind its computation, or by chance: no less than alone.
        for hidden in (1e-3, -1e-3):
            rate, _ = recorder._selection(job, {"coded": (hidden, 2, 1_001_000)})
            assert math.isclose(1 / rate, per_element)
    job.ranks = 1
    assert recorder._selection(job, {}) == (0, 0)


def what_is_encoded_beside_a_step(folder):
    gradients = {"first": torch.zeros(600), "half": torch.zeros(10, dtype=torch.float16),
                 "too many": torch.zeros(500), "rows": torch.zeros(20), "last": torch.zeros(400)}
    for name, one in gradients.items():
        one.grad = torch.ones_like(one)
    job = types.SimpleNamespace(gradients=gradients, ranks=2, sparse_rows={"rows": 1}, on_gpu=False,
                                narrows=True)
    with unittest.mock.patch.object(recorder, "_CODED", 1000), \
            contextlib.closing(recorder._Coding(job, list(gradients))) as coding:
        assert list(coding.selections) == ["first", "last"] and coding.elements == 1000
        for name in gradients:
            coding.start(name)
        coding.wait()
        assert coding.selections["first"].buffer.count_nonzero() == 6
        assert gradients["first"].grad.equal(torch.ones(600))
        coding.selections["last"].velocity = None  # whatever goes wrong is not lost in a thread
        coding.start("last")
        assert refusal(coding.wait, TypeError)
    job.on_gpu = True
    assert not recorder._Coding(job, list(gradients)).selections


def main():
    torch.set_num_threads(1)
    if sys.argv[1] == "ddp":
        in_two_ranks(int(sys.argv[2]), sys.argv[3])
        return
    if sys.argv[1] == "fails":
        recorder.record(small_job().model, lambda: None, out=f"{sys.argv[2]}/never.json")
    for case in (what_is_written_takes_no_other_files_place,
                 what_cannot_be_written_is_known_before_the_work,
                 a_thread_that_encodes_is_over_with_its_block, one_rank_alone, one_rank_in_a_loop,
                 threads_that_share_processors, what_others_take_of_processors,
                 processes_of_the_job_are_not_others, memory_that_a_step_takes_anew,
                 later_torch, times_of_a_gpu, clusters, what_exchanges_take,
                 exchanges_that_take_either_of_two_times, what_exchanges_lose,
                 values_of_gradients, encoding_is_that_of_the_applied_file, what_encoding_takes,
                 what_is_encoded_beside_a_step):
        case(sys.argv[2])


if __name__ == "__main__":
    main()
