"""Predicts and tunes how a data-parallel training synchronises its gradients.

    import syncline
    answer = syncline.run("scenario.json")     # or a dict with the same keys
    answer.rows                                # a list of dicts; pandas.DataFrame(answer.rows)
    print(answer.text)                         # what the program prints; in a notebook: answer

init, run, tune, explain, plan, calibrate, validate and import_job answer as the program's verbs of these names do;
docs/ tell what they mean. syncline.record and syncline.apply are the modules for PyTorch jobs, and
syncline.autotune(model, optimizer) is for a job that tunes itself: they are imported when they are
first used, and need torch.
"""

from __future__ import annotations

import html as _html
import importlib as _importlib
import json as _json
import os as _os
import re as _re
import signal as _signal
import sys as _sys
from typing import Any, Mapping, Optional, Sequence, Union

from syncline import _core

__version__ = _core.version
__all__ = ["Answer", "InputError", "MachineError", "apply", "autotune", "calibrate", "explain", "import_job",
           "init", "plan", "record", "run", "tune", "validate"]

Path = Union[str, "_os.PathLike[str]"]
Given = Union[Mapping[str, Any], Path]  # what a file of JSON holds, or where it is
Texts = Union[str, Sequence[str]]


class InputError(ValueError):
    """The input is wrong. The message says what was found and what is allowed.

    path    the file; None where no file is at fault: a dict or an argument
    place   the key there ("cluster.nodes"), "line 7" of a log, or the argument's name; None where
            the whole is at fault
    """

    def __init__(self, message: str, path: Optional[str] = None, place: Optional[str] = None):
        super().__init__(message)
        self.path = path
        self.place = place


class MachineError(RuntimeError):
    """The machine failed: no memory, no process, a file that cannot be read."""


class Answer:
    """What a verb answers.

    json    what the program prints by --format json, as a dict
    rows    its main list, a dict each; see the functions
    text    what the program prints; also str(answer)
    html    a page with figures, for a browser; a notebook shows it by itself
    made    what can be passed on; see the functions. None where there is nothing
    """

    def __init__(self, told: Mapping[str, Any]):
        self.json: dict = told["json"]
        self.text: str = told["text"]
        self.html: str = told["html"]
        self.made: Optional[dict] = told["made"]

    @property
    def rows(self) -> list[dict]:
        for name in ("rows", "ranking", "strategies", "kernels"):
            if name in self.json:
                return self.json[name]
        if "plans" in self.json:  # one a phase of the training
            return [operation for plan in self.json["plans"] for operation in plan["operations"]]
        # Of logs: each table has its own.
        return [{**{key: value for key, value in table.items() if key != "rows"}, **row}
                for table in self.json["fitted"] for row in table["rows"]]

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<syncline.Answer of {self.json['verb']}, {len(self.rows)} rows>"

    def _repr_html_(self) -> str:
        # A frame keeps the page's style and script apart from the notebook's.
        return (f'<iframe srcdoc="{_html.escape(self.html)}" width="100%" height="560" '
                'style="border:0;resize:vertical"></iframe>')


def init(model: Optional[Path] = None, *words: Path, node: Optional[Path] = None, gpu: Optional[str] = None,
         gpus: Optional[int] = None, cluster: Optional[Path] = None, net: Optional[str] = None,
         step: Optional[Union[Texts, Mapping[int, float]]] = None, nodes: Optional[int] = None,
         tp: Optional[int] = None, pp: Optional[int] = None, vp: Optional[int] = None,
         cp: Optional[int] = None, ep: Optional[int] = None, etp: Optional[int] = None,
         sequence_parallel: Optional[bool] = None, schedule: Optional[str] = None,
         micro_batches: Optional[int] = None, batch: Optional[int] = None,
         sequence: Optional[int] = None, launch: Optional[int] = None,
         dtype: Optional[str] = None, compiled: Optional[bool] = None,
         fsdp: Optional[bool] = None, zero: Optional[Union[int, str]] = None,
         recompute: Optional[str] = None, tensors: Optional[Path] = None) -> Answer:
    """Writes a scenario to begin with: a model, its framework's settings, a kind of machine.

    model       an architecture ("gpt2_small"), config.json, .safetensors or a framework's settings
    words       files of the framework's settings, and its flags, as after -- in a shell
    node        a kind of node ("dgx-h100"), or NCCL's topology file; or gpu, gpus and net
    nodes       how many (by settings and steps, or 1)
    step        measured step times by nodes: {1: 8.1, 4: 8.68}
    tp, pp, vp, cp, ep, etp, sequence_parallel, schedule, micro_batches
                the layout: tensor, pipeline, virtual stages, context, expert
    batch       samples per GPU or micro-batch; `sequence`: tokens per sample
    launch      number of a captured launch (the one that trains)
    dtype       "bf16", "fp16", "fp8", "tf32" or "fp32"
    compiled    the model runs under torch.compile
    fsdp        trains with PyTorch's FSDP2; `zero`: with this stage of DeepSpeed's ZeRO
    recompute   activations: "none", "selective" or "full"
    cluster     a file of measured links, as calibrate makes it
    tensors     a list of parameters in place of the model: safetensors, or lines that torch prints

    rows: the strategies. made: the scenario, for run and tune; json["assumed"]: each guess.
    """
    if isinstance(step, Mapping):
        step = [f"{count}={seconds!r}" for count, seconds in step.items()]
    return _ask("init", model=model, words=list(words) or None, node=node, gpu=gpu, gpus=gpus,
                cluster=cluster, net=net, step=step, nodes=nodes, tp=tp, pp=pp, vp=vp, cp=cp, ep=ep, etp=etp,
                sequence_parallel=sequence_parallel, schedule=schedule,
                micro_batches=micro_batches, batch=batch, sequence=sequence, launch=launch,
                dtype=dtype, compiled=compiled, fsdp=fsdp,
                zero=None if zero is None else str(zero), recompute=recompute, tensors=tensors)


def run(scenario: Given, *, strategy: Optional[Texts] = None, executor: Optional[str] = None,
        grain: Optional[str] = None, jobs: Optional[int] = None,
        set: Optional[Mapping[str, Any]] = None, objective: Optional[str] = None,
        target: Optional[float] = None, curves: Optional[Path] = None,
        measured: Optional[Path] = None) -> Answer:
    """Predicts every strategy of a scenario at every point of its sweep.

    scenario    a dict, or the path of a JSON file
    strategy    only these, by name, beside the baseline and those that are calibrated on
    executor    "model": closed form, microseconds a row; "sim": SimGrid, every link and rank
    grain       of a simulation: "merged", or "step" for every message
    jobs        processes that share the rows; the answer is the same
    set         keys of the scenario to change first: {"cluster.nodes": 8}
    objective   "time_to_loss" or "time_to_accuracy", to `target`, by training `curves` (CSV), in
                place of the time of a step; `measured`: curves by the clock, to compare with

    rows: one a strategy and sweep point, in seconds, bytes and samples a second.
    """
    return _ask("run", scenario=scenario, strategy=strategy, executor=executor, grain=grain,
                jobs=jobs, set=set, objective=objective, target=target, curves=curves,
                measured=measured)


def tune(scenario: Given, *, strategy: Optional[str] = None, executor: Optional[str] = None,
         emit: Optional[str] = None, take: Optional[str] = None, top: Optional[int] = None,
         budget: Optional[int] = None, exhaustive: Optional[bool] = None,
         jobs: Optional[int] = None, set: Optional[Mapping[str, Any]] = None,
         objective: Optional[str] = None, target: Optional[float] = None,
         curves: Optional[Path] = None, measured: Optional[Path] = None,
         utilisation: Optional[float] = None, layouts: Optional[bool] = None,
         micro_batches: Optional[bool] = None, checkpointing: Optional[bool] = None,
         micro_batch_sizes: Optional[Union[int, Sequence[int]]] = None) -> Answer:
    """Finds the best strategy for a scenario, and says how good it is.

    scenario    a dict, or the path of a JSON file; its sweep is ignored
    strategy    the one whose knobs hold where nothing is searched, and to compare with
    executor    "model": closed form, the best few simulated; "sim": all of them simulated
    emit        a framework ("pytorch"): json["emitted"] is the best as its configuration
    take        with emit: the row to write, by its name, in place of the best
    top         how many of the best are told (5; of layouts 10)
    budget      candidates at most (3000; 0: all)
    exhaustive  predicts every candidate, also those that the bounds rule out
    jobs, set, objective, target, curves, measured
                as for run; curves alone tell where the rows' trainings end
    utilisation alone, or with strategy and set: the bandwidth between groups for this (0.95)
    layouts, micro_batches, checkpointing
                search layouts (tensor, pipeline, context, expert), micro-batches of the same
                step and recomputation for one strategy instead, alone or together;
                `micro_batch_sizes`: more samples per micro-batch to try

    rows: the best strategies, the best first. made: the best as a table, for
    syncline.apply.apply(model, optimizer, strategy=answer.made) in a job.
    """
    return _ask("tune", scenario=scenario, strategy=strategy, executor=executor, emit=emit,
                take=take, top=top, budget=budget, exhaustive=exhaustive, jobs=jobs, set=set,
                objective=objective, target=target, curves=curves, measured=measured,
                utilisation=utilisation, layouts=layouts, micro_batches=micro_batches,
                checkpointing=checkpointing, micro_batch_sizes=micro_batch_sizes)


def explain(scenario: Given, *, strategy: Optional[Texts] = None,
            set: Optional[Mapping[str, Any]] = None) -> Answer:
    """Says in words what each strategy does, what holds it up, and which changes would gain most.

    scenario    a dict, or the path of a JSON file; its sweep is ignored
    strategy    only these, by name
    set         keys of the scenario to change first: {"cluster.nodes": 8}

    rows: one a strategy, with its advice.
    """
    return _ask("explain", scenario=scenario, strategy=strategy, set=set)


def plan(scenario: Given, *, strategy: Optional[str] = None,
         set: Optional[Mapping[str, Any]] = None) -> Answer:
    """Lists the operations of a strategy's step, without running them.

    scenario    a dict, or the path of a JSON file; its sweep is ignored
    strategy    by its name (the first)
    set         keys of the scenario to change first: {"cluster.nodes": 8}

    rows: one an operation.
    """
    return _ask("plan", scenario=scenario, strategy=strategy, set=set)


def validate(scenario: Given, *, ranks: Optional[int] = None, backend: Optional[str] = None,
             compute: Optional[str] = None, strategy: Optional[Texts] = None,
             executor: Optional[str] = None, calibrate: Optional[bool] = None,
             warmup: Optional[int] = None, repeats: Optional[int] = None,
             no_check: Optional[bool] = None, values: Optional[str] = None,
             timeout: Optional[float] = None, set: Optional[Mapping[str, Any]] = None) -> Answer:
    """Runs each strategy of a scenario on ranks of this machine, and compares with its prediction.

    scenario    a dict, or the path of a JSON file; its sweep is ignored
    ranks       how many to start (the cluster's)
    backend     "gloo" or "nccl"
    compute     "timers" pass the computation's time, "kernels" run the workload's operators (nccl)
    strategy    only these, by name
    executor    which predicts: "model" or "sim"
    calibrate   measures the links first, and predicts with them
    warmup, repeats
                periods to run before measuring (2), and to measure (9)
    no_check    leaves the all-reduced values unchecked
    values      "integers", whose sums are exact, or "real"
    timeout     seconds of silence before a rank counts as failed
    set         keys of the scenario to change first: {"cluster.nodes": 8}

    The program does it, which a build and a package have with the module; SYNCLINE is another's
    path. rows: one a strategy, predicted and measured. made: with calibrate, the cluster with its
    measured links.
    """
    table = {one["name"]: one["option"] for one in _json.loads(_core.arguments())["validate"]}
    given = dict(backend=backend, compute=compute, strategy=strategy, executor=executor,
                 calibrate=calibrate, warmup=warmup, repeats=repeats, no_check=no_check,
                 values=values)
    words = []
    for name, value in given.items():
        if value is None or value is False:
            continue
        for one in [value] if isinstance(value, (str, int)) else value:
            words += [table[name]] + ([] if one is True else [str(one)])
    if timeout is not None:
        words += ["--timeout", str(timeout)]
    for path, value in (set or {}).items():
        words += ["--set", f"{path}={_json.dumps(value, default=_plain)}"]
    return _run_ranks(scenario, ranks, words, bool(calibrate))


def calibrate(logs: Optional[Union[Path, Sequence[Path]]] = None, *,
              against: Optional[Union[Path, Sequence[Path]]] = None, name: Optional[str] = None,
              algorithm: Optional[str] = None, line_rate: Optional[float] = None,
              factor_from: Optional[Given] = None, workload: Optional[Given] = None,
              trace: Optional[Path] = None, throughput: Optional[float] = None,
              kernels: Optional[Given] = None, cluster: Optional[Given] = None,
              steps: Optional[Given] = None, rows: Optional[Union[Texts, int]] = None,
              set: Optional[Mapping[str, Any]] = None) -> Answer:
    """Turns measurements into a cluster, and says how far to trust it.

    logs        of nccl-tests or NCCL's Inspector, all of one cluster: paths. FILE@10x2: 10 nodes of
                2 GPUs, where the log does not say; FILE:ring, FILE:tree: what NCCL was forced to
    against     logs to predict, which are not used
    name        of the cluster ("calibrated")
    algorithm   what NCCL was forced to in logs that do not say it: "nccl", "ring", "tree"
    line_rate   Gbit/s that a node's NICs are rated together
    factor_from cluster of another network, calibrated with a forced tree
    workload    with `trace`, a CSV file of its backward pass on one GPU, or `throughput`, samples a
                second on one: the device's rate
    kernels     what make gpu-check wrote; without logs it goes into `cluster`
    steps       in place of logs: a scenario whose published rows are measured steps. `rows`: those
                that are fitted, by name, or the first so many; `set`: keys to change first

    rows: one a size of the logs, a step or a kernel: measured and predicted. made: the cluster; of
    steps the scenario, with what was found in its cluster.device.
    """
    if isinstance(rows, int):
        rows = str(rows)
    of_logs = dict(against=against, name=name, algorithm=algorithm, line_rate=line_rate,
                   factor_from=factor_from, workload=workload, trace=trace, throughput=throughput)
    of_steps = dict(rows=rows, set=set)
    if steps is not None:
        _refuse("steps", logs=logs, kernels=kernels, cluster=cluster, **of_logs)
    elif logs is not None:
        _refuse("logs", cluster=cluster, **of_steps)
    elif kernels is not None:
        _refuse("kernels without logs", **of_logs, **of_steps)
    else:
        raise InputError("calibrate(): logs: missing, expected at least one, or kernels with a "
                         "cluster, or steps", place="logs")
    return _ask("calibrate", logs=logs, kernels=kernels, cluster=cluster, steps=steps, **of_logs,
                **of_steps)


def import_job(files: Union[Path, Sequence[Path]], *, cluster: Optional[Given] = None,
               batch: Optional[int] = None) -> Answer:
    """Makes a scenario of what a job left behind.

    files       a profiler's trace or a model file; of traces one a rank
    cluster     in place of what the files tell and what is assumed
    batch       samples a rank and step, which no trace tells

    rows: the scenario's strategies as predicted. made: the scenario, for run and tune.
    """
    return _ask("import_job", files=files, cluster=cluster, batch=batch)


def _refuse(beside: str, **others: Any) -> None:
    """Arguments of calibrate that belong to other measurements."""
    for name, value in others.items():
        if value is not None:
            raise InputError(f"calibrate(): {name}: does not go with {beside}", place=name)


def _own_program() -> Optional[str]:
    """The program that was built with the module: in the package of a wheel, or above a build's."""
    package = _os.path.dirname(_os.path.realpath(_core.__file__))
    for below in ("bin/syncline", "../../syncline"):
        if _runs(path := _os.path.join(package, below)):
            return path
    return None


def _runs(path: Optional[str]) -> bool:
    return bool(path) and _os.access(path, _os.X_OK) and _os.path.isfile(path)


def _main() -> None:
    """Makes this process the program's: what `syncline` starts where pip installed it."""
    program = _own_program()
    if program is None:
        _sys.exit("syncline: the package contains no program: install the wheel again")
    for ignored in (_signal.SIGPIPE, _signal.SIGXFSZ):  # by Python, and by what it starts
        _signal.signal(ignored, _signal.SIG_DFL)
    _os.execv(program, [program, *_sys.argv[1:]])


def _program() -> str:
    """The program: SYNCLINE's, that of the module, or the one on the path."""
    import shutil
    for path in (_os.environ.get("SYNCLINE"), _own_program(), shutil.which("syncline")):
        if _runs(path):
            return path
    raise MachineError("validate(): the program syncline is not on the path; it starts the ranks: "
                       "install it, or set SYNCLINE to its path")


def _run_ranks(scenario: Given, ranks: Optional[int], words: Sequence[str],
               calibrates: bool) -> Answer:
    """Asks the program, whose ranks are processes that it starts itself."""
    import subprocess
    import tempfile
    with tempfile.TemporaryDirectory(prefix="syncline-") as folder:
        path = scenario
        if isinstance(scenario, Mapping):
            path = _os.path.join(folder, "scenario.json")
            with open(path, "w", encoding="utf-8") as file:
                _json.dump(scenario, file, default=_plain)
        made = {name: _os.path.join(folder, name) for name in ("report", "page", "cluster")}
        if ranks is None:
            ranks = _ranks_of(path, words)
        command = [_program(), "validate", _os.fspath(path), "--ranks", str(ranks), *words,
                   "-o", made["report"], "--html", made["page"]]
        if calibrates:
            command += ["--cluster-out", made["cluster"]]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as running:
            try:
                text, said = running.communicate()
            except BaseException:  # Ctrl-C: what its ranks measure ends with it
                running.terminate()
                running.communicate()
                raise
        if running.returncode != 0:
            raise _failure_of(running.returncode, said, path, scenario)
        told = {"text": text, "json": _loaded(made["report"]), "made": None}
        with open(made["page"], encoding="utf-8") as page:
            told["html"] = page.read()
        if calibrates:
            told["made"] = _loaded(made["cluster"])
        return Answer(told)


def _ranks_of(path: Path, words: Sequence[str]) -> int:
    """The ranks of the scenario's cluster, with the changes among the words."""
    changed = {}
    for before, word in zip(words, words[1:]):
        if before == "--set":
            key, value = word.split("=", 1)
            changed[key] = _json.loads(value)
    return plan(path, set=changed or None).json["plans"][0]["ranks"]


def _failure_of(code: int, said: str, path: Path, scenario: Given) -> Exception:
    """What the program said last, with a dict's file called as elsewhere."""
    lines = [line[len("syncline: "):] for line in said.splitlines()
             if line.startswith("syncline: ")]
    message = lines[-1] if lines else f"the program ended with {code}"
    if isinstance(scenario, Mapping):
        message = message.replace(_os.fspath(path), "the scenario")
    if code != 2:
        return MachineError(message)
    return _input_error("validate", message, [], _json.dumps({"scenario": _os.fspath(path)}))


def _loaded(path: str) -> Any:
    with open(path, encoding="utf-8") as file:
        return _json.load(file)


_REQUIRED = ("scenario", "files")


def _ask(verb: str, **arguments: Any) -> Answer:
    given = {name: value for name, value in arguments.items()
             if value is not None or name in _REQUIRED}
    try:
        text = _json.dumps(given, default=_plain, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"{verb}(): {error}") from None
    told = _json.loads(_core.ask(verb, text))
    if told.get("failed") == "machine":
        raise MachineError(told["message"])
    if "failed" in told:
        raise _input_error(verb, told["message"], told["below"], text)
    if verb == "tune" and told["made"] is not None:
        told["made"] = _literal(told["made"])
    return Answer(told)


def _literal(text: str) -> dict:
    import ast
    return ast.literal_eval(text)


def _plain(value: Any) -> Any:
    """Of a path its name, of NumPy's numbers and arrays Python's."""
    if isinstance(value, _os.PathLike):
        return _os.fspath(value)
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"found {type(value).__name__}, which JSON has no form for")


def _input_error(verb: str, message: str, below: Sequence[str], given: str) -> InputError:
    """Messages begin with the file, or else with the argument, and then name the place in it."""
    option = _re.match(r"--([a-z-]+):? ", message)
    if option:  # the program's are keywords here
        message = f"{verb}(): --{option[1]}: {message[option.end():]}"
        message = _re.sub(r"--([a-z][a-z-]*)", lambda one: one[1].replace("-", "_"), message)
    parts = message.split(": ")
    path = None
    if not parts[0].startswith((f"{verb}()", "the ")):
        # A path may hold what parts are separated by, and need not be there.
        starts = [": ".join(parts[:count]) for count in range(1, len(parts))]
        files = [start for start in starts if _os.path.lexists(start) or _json.dumps(start) in given]
        if not files:
            return InputError("\n".join([message, *below]))
        path = files[-1]
        parts[:path.count(": ") + 1] = [path]
    place = parts[1] if len(parts) > 2 else None
    if place is not None and not _re.fullmatch(r"line \d+|[^\s'\"]+", place):
        place = None
    return InputError("\n".join([message, *below]), path, place)


def __getattr__(name: str) -> Any:
    if name in ("record", "apply"):
        return _importlib.import_module(f"syncline.{name}")
    if name == "autotune":
        return _importlib.import_module("syncline.tuner").autotune
    raise AttributeError(f"module 'syncline' has no attribute '{name}'")
