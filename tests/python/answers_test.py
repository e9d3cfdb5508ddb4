"""The functions of the package against the program: the same answers from a path, a dict and
keywords, and the same words where something is wrong."""

import ast
import html.parser
import inspect
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import syncline

PROGRAM = os.environ["SYNCLINE"]
FIRST = "scenarios/first.json"
RESNET = "scenarios/resnet50_ddp.json"
STEPS = "scenarios/record/mlp.json"
LOG = "scenarios/measured/nccl-tests/2080ti-10gbe-tcp_allreduce_ring_n008x4.txt"
TREE = "scenarios/measured/nccl-tests/2080ti-10gbe-tcp_allreduce_tree_n016x1.txt:tree"
TRACE = "tests/data/kineto/resnet50_ddp_2xA100_rank0.json.gz"
CLUSTER = "scenarios/clusters/v100_4x8_100g.json"
TRAINING = "scenarios/published/training/mlp_2x50mbit.json"
CURVES = "scenarios/published/training/mlp_2.curves.csv"
KERNELS = {"format": "syncline gpu-check 1", "rehearsal": False, "machine": {"name": "a GPU"},
           "launch": {"submit_us": 3, "gap_us": 1},
           "timings": [{"case": "pack fp32", "kind": "pack", "elements": 100000000,
                        "counted_bytes": 800000000, "us": 400}]}


def program(*words):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False)


def loaded(path):
    return json.loads(pathlib.Path(path).read_text())


class Answers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def written(self, name, content):
        path = self.folder / name
        path.write_text(json.dumps(content))
        return str(path)

    def expect_program(self, answer, *words):
        """In each form that an answer has."""
        page = str(self.folder / "page.html")
        as_json = program(*words, "--format", "json", "--html", page)
        self.assertEqual(as_json.returncode, 0, as_json.stderr)
        self.assertEqual(answer.json, json.loads(as_json.stdout))
        whole = ["--verbose"] if words[0] in ("run", "tune") else []
        self.assertEqual(answer.text, program(*words, *whole).stdout)
        self.assertEqual(answer.html, pathlib.Path(page).read_text())

    def test_run(self):
        answer = syncline.run(FIRST)
        self.expect_program(answer, "run", FIRST)
        self.assertEqual(answer.rows, json.loads(
            program("run", FIRST, "--format", "json").stdout)["rows"])
        self.assertIsNone(answer.made)
        self.assertEqual(str(answer), answer.text)
        self.assertEqual(repr(answer), f"<syncline.Answer of run, {len(answer.rows)} rows>")

    def test_run_takes_keywords(self):
        self.expect_program(
            syncline.run(FIRST, strategy=["sparse", "one by one"], executor="sim", grain="step",
                         jobs=2, set={"cluster.nodes": 2, "workload.batch": 16}),
            "run", FIRST, "--strategy", "sparse", "--strategy", "one by one", "--executor", "sim",
            "--grain", "step", "--set", "cluster.nodes=2", "--set", "workload.batch=16")

    def test_tune_to_a_utilisation(self):
        far = "scenarios/far_apart.json"
        answer = syncline.tune(far, utilisation=0.9)
        self.assertGreater(len(answer.rows), 1)
        self.expect_program(answer, "tune", far, "--utilisation", "0.9")
        with self.assertRaises(syncline.InputError) as caught:
            syncline.tune(far, utilisation=0.9, top=3)
        self.assertIn("top", str(caught.exception))

    def test_run_to_a_target(self):
        self.expect_program(
            syncline.run(TRAINING, objective="time_to_accuracy", target=0.96,
                         curves=pathlib.Path(CURVES)),
            "run", TRAINING, "--objective", "time_to_accuracy", "--target", "0.96", "--curves",
            CURVES)

    def test_tune(self):
        answer = syncline.tune(RESNET, emit="pytorch", top=3)
        self.expect_program(answer, "tune", RESNET, "--emit", "pytorch", "--top", "3")
        self.assertEqual(answer.rows, answer.json["ranking"])
        self.assertIn("emitted", answer.json)

    def test_tune_takes_keywords(self):
        self.expect_program(
            syncline.tune(FIRST, strategy="one by one", executor="sim", budget=40,
                          set={"cluster.nodes": 2}),
            "tune", FIRST, "--strategy", "one by one", "--executor", "sim", "--budget", "40",
            "--set", "cluster.nodes=2")
        self.expect_program(syncline.tune(FIRST, exhaustive=True, jobs=2),
                            "tune", FIRST, "--exhaustive")
        self.expect_program(syncline.tune(TRAINING, curves=CURVES),
                            "tune", TRAINING, "--curves", CURVES)

    def test_tune_to_a_target(self):
        answer = syncline.tune(TRAINING, objective="time_to_accuracy", target=0.96, curves=CURVES)
        self.expect_program(answer, "tune", TRAINING, "--objective", "time_to_accuracy",
                            "--target", "0.96", "--curves", CURVES)
        self.assertEqual(answer.rows, answer.json["rows"])

    def test_what_tune_makes_is_the_table_of_the_file_that_applies_it(self):
        for take in (None, "sparse"):
            answer = syncline.tune(FIRST, emit="pytorch", take=take)
            file = self.folder / "apply.py"
            row = ["--take", take] if take else []
            said = program("tune", FIRST, "--emit", "pytorch", "--python", str(file), *row)
            self.assertEqual(said.returncode, 0, said.stderr)
            tables = [statement.value for statement in ast.parse(file.read_text()).body
                      if isinstance(statement, ast.Assign)
                      and getattr(statement.targets[0], "id", "") == "STRATEGY"]
            self.assertEqual(answer.made, ast.literal_eval(tables[-1]))

    def test_explain(self):
        answer = syncline.explain(FIRST)
        self.expect_program(answer, "explain", FIRST)
        self.assertEqual([row["name"] for row in answer.rows],
                         ["all at the end", "one by one", "sparse"])
        self.expect_program(syncline.explain(FIRST, strategy="sparse", set={"cluster.nodes": 4}),
                            "explain", FIRST, "--strategy", "sparse", "--set", "cluster.nodes=4")

    def test_tune_layouts(self):
        job = "scenarios/llama3_70b_layouts.json"
        answer = syncline.tune(job, layouts=True, top=3, micro_batch_sizes=[1, 2])
        self.expect_program(answer, "tune", job, "--layouts", "--top", "3",
                            "--micro-batch-sizes", "1,2")
        self.assertEqual(len(answer.rows), 3)
        changed = {"cluster.nodes": 4}
        self.expect_program(syncline.tune(job, micro_batches=True, checkpointing=True, set=changed),
                            "tune", job, "--micro-batches", "--checkpointing",
                            "--set", "cluster.nodes=4")

    def test_plan(self):
        answer = syncline.plan(FIRST, strategy="sparse", set={"cluster.nodes": 2})
        words = ["plan", FIRST, "--strategy", "sparse", "--set", "cluster.nodes=2"]
        self.assertEqual(answer.json, json.loads(program(*words, "--format", "json").stdout))
        self.assertEqual(answer.text, program(*words).stdout)
        self.assertEqual(answer.rows, answer.json["plans"][0]["operations"])

    def test_calibrate_from_logs(self):
        out = str(self.folder / "cluster.json")
        answer = syncline.calibrate([LOG, TREE], against=TREE, name="mine", line_rate=10)
        self.expect_program(answer, "calibrate", "logs", LOG, TREE, "--against", TREE, "--name", "mine",
                            "--line-rate", "10")
        program("calibrate", "logs", LOG, TREE, "--name", "mine", "--line-rate", "10", "-o", out)
        self.assertEqual(answer.made, loaded(out))
        sizes = [len(table["rows"]) for table in answer.json["fitted"]]
        self.assertEqual(len(answer.rows), sum(sizes))
        self.assertEqual(answer.rows[0]["file"], LOG)
        self.assertEqual(answer.rows[0]["bytes"], answer.json["fitted"][0]["rows"][0]["bytes"])

    def test_calibrate_with_another_networks_tree(self):
        other = syncline.calibrate([LOG.replace("_ring_n008x4", "_ring_n016x1") + ":ring", TREE])
        path = self.written("other.json", other.made)
        words = ["calibrate", "logs", LOG + ":ring", "--factor-from", path]
        self.expect_program(syncline.calibrate(LOG + ":ring", factor_from=path), *words)

    def test_calibrate_a_device(self):
        workload = "scenarios/workloads/resnet50_v100.json"
        trace = "scenarios/measured/traces/v100_bs32_backward_resnet50.csv"
        self.expect_program(syncline.calibrate(LOG, workload=workload, trace=trace),
                            "calibrate", "logs", LOG, "--workload", workload, "--trace", trace)

    def test_calibrate_from_steps(self):
        out = str(self.folder / "fitted.json")
        answer = syncline.calibrate(steps=STEPS, rows=1)
        self.expect_program(answer, "calibrate", "steps", STEPS, "--rows", "1")
        program("calibrate", "steps", STEPS, "--rows", "1", "-o", out)
        self.assertEqual(answer.made, loaded(out))
        self.assertEqual(answer.rows, answer.json["rows"])

    def test_calibrate_from_kernels(self):
        kernels = self.written("gpu.json", KERNELS)
        out = str(self.folder / "cluster.json")
        answer = syncline.calibrate(kernels=kernels, cluster=CLUSTER)
        self.expect_program(answer, "calibrate", "kernels", kernels, "--cluster", CLUSTER)
        program("calibrate", "kernels", kernels, "--cluster", CLUSTER, "-o", out)
        self.assertEqual(answer.made, loaded(out))
        given = syncline.calibrate(kernels=KERNELS, cluster=loaded(CLUSTER))
        self.assertEqual((given.rows, given.made), (answer.rows, answer.made))

    def test_import_job(self):
        out = str(self.folder / "job.json")
        answer = syncline.import_job(TRACE, batch=64)
        self.expect_program(answer, "import", TRACE, "--batch", "64")
        program("import", TRACE, "--batch", "64", "-o", out)
        self.assertEqual(answer.made, loaded(out))
        self.assertEqual(answer.rows, answer.json["rows"])
        # What was made goes on.
        self.assertEqual(syncline.run(answer.made).rows, syncline.run(out).rows)

    def test_a_dict_is_as_good_as_a_file(self):
        for function in (syncline.run, syncline.tune, syncline.explain):
            with self.subTest(function.__name__):
                by_path, by_dict = function(FIRST), function(loaded(FIRST))
                self.assertEqual(by_path.json, by_dict.json)
                self.assertEqual(function(pathlib.Path(FIRST)).json, by_path.json)
        whole = loaded(STEPS)
        self.assertEqual(syncline.calibrate(steps=whole).rows,
                         syncline.calibrate(steps=STEPS).rows)
        self.assertEqual(whole, loaded(STEPS))
        cluster = loaded(CLUSTER)
        self.assertEqual(syncline.import_job([TRACE], cluster=cluster).json,
                         syncline.import_job(TRACE, cluster=CLUSTER).json)

    def test_numbers_of_numpy_are_numbers(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("no NumPy")
        scenario = loaded(FIRST)
        scenario["cluster"]["nodes"] = numpy.int64(4)
        scenario["sweep"] = {"cluster.inter.bandwidth_gbps": numpy.linspace(10, 20, 3)}
        answer = syncline.run(scenario)
        self.assertEqual(answer.rows[0]["sweep"], {"cluster.inter.bandwidth_gbps": 10})


class Mistakes(unittest.TestCase):
    def refused(self, *arguments, **keywords):
        function, *arguments = arguments
        with self.assertRaises(syncline.InputError) as caught:
            function(*arguments, **keywords)
        self.assertIsInstance(caught.exception, ValueError)
        return caught.exception

    def expect_program(self, error, *words):
        said = program(*words)
        self.assertEqual(said.returncode, 2)
        self.assertEqual("syncline: " + str(error) + "\n", said.stderr)

    def test_say_what_the_program_says(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "a: b.json")
            scenario = loaded(FIRST)
            scenario["cluster"]["nodes"] = 0
            scenario["strategies"][1]["fusion"] = {"rule": "size", "size_mb": "1MB"}
            file.write_text(json.dumps(scenario))
            error = self.refused(syncline.run, file)
            self.expect_program(error, "run", str(file))
            self.assertEqual((error.path, error.place), (str(file), "cluster.nodes"))
            self.assertIn("strategies[1].fusion.size_mb", str(error))
            for text, place in (('{"name": }', None), ("", None), ("[]", None), ("{}", "name")):
                file.write_text(text)
                for function in (syncline.run, syncline.tune, syncline.explain):
                    error = self.refused(function, file)
                    self.expect_program(error, function.__name__, str(file))
                    self.assertEqual((error.path, error.place), (str(file), place))

    def test_name_the_file(self):
        for function, verb in ((syncline.run, "run"), (syncline.tune, "tune"),
                               (syncline.explain, "explain"), (syncline.calibrate, "calibrate"),
                               (syncline.import_job, "import")):
            with self.subTest(verb):
                error = self.refused(function, "no/such: file.json")
                self.expect_program(error, verb, "no/such: file.json")
                self.assertEqual((error.path, error.place), ("no/such: file.json", None))
        scenario = loaded(FIRST)
        scenario["workload"] = "missing.json"
        error = self.refused(syncline.run, scenario)
        self.assertEqual((error.path, error.place), (None, "workload"))
        self.assertIn("missing.json: no such file", str(error))

    def test_name_the_place_in_a_dict(self):
        scenario = loaded(FIRST)
        scenario["strategies"][0]["algoritm"] = "ring"
        error = self.refused(syncline.tune, scenario)
        self.assertEqual((error.path, error.place), (None, "strategies[0].algoritm"))
        self.assertIn("did you mean 'algorithm'?", str(error))

    def test_name_the_argument(self):
        for place, call in {
                "executor": lambda: syncline.run(FIRST, executor="simm"),
                "scenario": lambda: syncline.run(3),
                "strategy": lambda: syncline.explain(FIRST, strategy="nobody"),
                "jobs": lambda: syncline.run(FIRST, jobs=0),
                "top": lambda: syncline.tune(FIRST, top="five"),
                "exhaustive": lambda: syncline.tune(FIRST, exhaustive=1),
                "emit": lambda: syncline.tune(FIRST, emit="pytorhc"),
                "take": lambda: syncline.tune(FIRST, emit="pytorch", take="nothing"),
                "grain": lambda: syncline.run(FIRST, grain="step"),
                "set": lambda: syncline.run(FIRST, set="cluster.nodes=3"),
                "objective": lambda: syncline.run(FIRST, target=3),
                "curves": lambda: syncline.run(FIRST, curves="curves.csv"),
                "logs": syncline.calibrate,
                "cluster": lambda: syncline.calibrate(kernels=KERNELS),
                "workload": lambda: syncline.calibrate(LOG, throughput=3),
                "line_rate": lambda: syncline.calibrate(LOG, line_rate=-1),
                "rows": lambda: syncline.calibrate(steps=STEPS, rows="nobody"),
                "steps": lambda: syncline.calibrate(steps=[1]),
                "batch": lambda: syncline.import_job(TRACE, batch=0),
                "files": lambda: syncline.import_job(None)}.items():
            with self.subTest(place):
                error = self.refused(call)
                self.assertEqual((error.path, error.place), (None, place), str(error))
                self.assertIn(f"(): {place}: ", str(error))

    def test_what_does_not_go_together_is_refused(self):
        for place, call in {
                "cluster": lambda: syncline.calibrate(LOG, cluster=CLUSTER),
                "logs": lambda: syncline.calibrate(LOG, steps=STEPS),
                "rows": lambda: syncline.calibrate(LOG, rows=2),
                "name": lambda: syncline.calibrate(kernels=KERNELS, cluster=CLUSTER, name="x"),
                "emit": lambda: syncline.tune(TRAINING, objective="time_to_accuracy", target=0.96,
                                              curves=CURVES, emit="pytorch"),
                "strategy": lambda: syncline.tune(FIRST, strategy=["sparse", "one by one"]),
                "take": lambda: syncline.tune(FIRST, take="sparse")}.items():
            with self.subTest(place):
                error = self.refused(call)
                self.assertEqual((error.path, error.place), (None, place), str(error))

    def test_what_json_has_no_form_for_is_refused(self):
        self.assertIn("found set", str(self.refused(syncline.run, {"name": {1}})))
        self.assertIn("run(): ", str(self.refused(syncline.run, {"seed": float("nan")})))

    def test_unknown_keywords_are_pythons_to_refuse(self):
        with self.assertRaisesRegex(TypeError, "unexpected keyword argument 'exectuor'"):
            syncline.run(FIRST, exectuor="sim")


class Init(unittest.TestCase):
    """init() answers as the program writes."""

    def test_makes_what_the_program_writes(self):
        own = syncline.init("gpt2_small", "--micro-batch-size 2 --bf16", node="dgx-h100", nodes=2,
                            tp=2, step={2: 0.5})
        said = program("init", "gpt2_small", "--node", "dgx-h100", "--nodes", "2", "--tp", "2",
                       "--step", "2=0.5", "--", "--micro-batch-size 2 --bf16")
        self.assertEqual(own.made, json.loads(said.stdout))
        words = " ".join(said.stderr.split())
        for line in own.json["assumed"]:
            self.assertIn(line, words)
        self.assertEqual([row["name"] for row in own.rows],
                         [row["strategy"] for row in syncline.run(own.made).rows])

    def test_refuses_with_keywords(self):
        for place, call in {
                "step": lambda: syncline.init("gpt2_small", node="dgx-h100", step="4"),
                "gpus": lambda: syncline.init("gpt2_small", node="dgx-h100", gpus=4),
                "tp": lambda: syncline.init("gpt2_small", node="dgx-h100", tp=0)}.items():
            with self.subTest(place):
                with self.assertRaises(syncline.InputError) as raised:
                    call()
                self.assertEqual(raised.exception.place, place, str(raised.exception))


class Validate(unittest.TestCase):
    """validate() starts ranks as the program does."""

    def test_measures_on_the_clusters_ranks(self):
        answer = syncline.validate(loaded(FIRST), strategy=["sparse"], repeats=1, calibrate=True,
                                   set={"cluster.nodes": 2})
        self.assertEqual(answer.json["ranks"], 2)
        row = next(row for row in answer.rows if row["strategy"] == "sparse")
        self.assertGreater(row["measured_median_s"], 0)
        self.assertTrue(row["values_match"])
        self.assertIn("sparse", answer.text)
        self.assertIn("<svg", answer.html)
        predicted = syncline.run(FIRST, set={"cluster": answer.made, "sweep": {}},
                                 strategy="sparse").rows
        self.assertTrue(predicted)

    def test_refuses_as_elsewhere(self):
        with self.assertRaises(syncline.InputError) as raised:
            syncline.validate(loaded(FIRST), backend="glo", ranks=2)
        self.assertIn("gloo", str(raised.exception))
        with self.assertRaises(syncline.InputError) as raised:
            syncline.validate(FIRST, ranks=3)
        self.assertEqual(raised.exception.path, FIRST)


class Arguments(unittest.TestCase):
    """What the command line takes, Python takes: both read one table."""

    # Files beside the answer, its form, and ranks: no part of the question.
    OF_THE_PROGRAM = {
        "run": "format color verbose html out trace trace-of svg part",
        "tune": "format color verbose html svg csv python live noise steps seed journal wrong pace "
                "calibrate no-check ranks timeout meet",
        "explain": "format color html",
        "plan": "format color",
        "init": "out",
        "validate": "format color verbose html trace out cluster-out meet only ranks timeout"}
    OF_BOTH = {"scenario", "set", "model", "words", "ranks", "timeout"}  # which differ in form
    ASKED = {"init": (("gpt2_small",), {"node": "dgx-a100"})}  # other verbs are asked of FIRST

    def options(self, verb):
        """{option: its line} as the help lists them."""
        found = {}
        for line in re.split(r"\n  (?=-)", program(verb, "--help-all").stdout):
            name = re.match(r"(?:-\w,)?--([a-z-]+)", line)
            if name:
                found[name[1]] = " ".join(line.split())
        return found

    def test_are_those_of_the_command_line(self):
        tables = json.loads(syncline._core.arguments())
        self.assertEqual(set(tables), set(self.OF_THE_PROGRAM))
        for verb, table in tables.items():
            with self.subTest(verb):
                options = self.options(verb)
                own = set(self.OF_THE_PROGRAM[verb].split()) | {"set", "help", "help-all"}
                named = {argument["option"][2:]: argument for argument in table}
                self.assertEqual(set(options) - own, set(named))
                keywords = set(inspect.signature(getattr(syncline, verb)).parameters)
                self.assertEqual(keywords - self.OF_BOTH,
                                 {argument["name"] for argument in table})
                for name, argument in named.items():
                    said = re.search(r"\(default ([\w.-]+)\)", options[name])
                    default = argument["default"]
                    if said and default is not None:
                        self.assertEqual(said[1], str(default), name)
                    self.assertIn(argument["help"].split(" (default")[0], options[name])

    def test_have_one_default(self):
        """What the table calls the default answers as nothing does."""
        for verb, table in json.loads(syncline._core.arguments()).items():
            function = getattr(syncline, verb)
            given = {argument["name"]: argument["default"] for argument in table
                     if argument["default"] is not None
                     and argument["name"] not in ("grain", "jobs")}
            words, options = self.ASKED.get(verb, ((FIRST,), {}))
            if verb == "validate":  # what it measures differs
                given["repeats"] = 1
                self.assertEqual(function(FIRST, strategy="sparse", **given).json["backend"],
                                 given["backend"])
                continue
            self.assertEqual(function(*words, **(options | given)).json,
                             function(*words, **options).json, verb)


class WellFormed(html.parser.HTMLParser):
    """Every element is closed, in order."""

    EMPTY = {"meta", "br", "hr", "img", "link", "input"}

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.seen, self.frames = [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        if tag == "iframe":
            self.frames.append(dict(attrs)["srcdoc"])
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> inside {self.open}"
        self.open.pop()


class Notebooks(unittest.TestCase):
    def test_show_the_page_with_tables_and_figures(self):
        scenario = loaded(FIRST)
        scenario["name"] = 'less < more & "quotes"'
        for answer in (syncline.run(scenario), syncline.tune(scenario), syncline.explain(scenario),
                       syncline.calibrate(LOG), syncline.import_job(TRACE)):
            with self.subTest(answer.json["verb"]):
                outside = WellFormed()
                outside.feed(answer._repr_html_())
                outside.close()
                self.assertEqual((outside.open, outside.seen), ([], ["iframe"]))
                self.assertEqual(outside.frames, [answer.html])
                page = WellFormed()
                page.feed(outside.frames[0])
                page.close()
                self.assertEqual(page.open, [])
                self.assertIn("svg", page.seen)
                if answer.json["verb"] != "explain":  # which answers in words
                    self.assertIn("table", page.seen)

    def test_help_is_useful(self):
        for function in (syncline.run, syncline.tune, syncline.explain, syncline.plan,
                         syncline.calibrate, syncline.import_job):
            told = inspect.getdoc(function)
            for name in inspect.signature(function).parameters:
                self.assertRegex(told, rf"\b{name}\b", function.__name__)


class Jobs(unittest.TestCase):
    def test_the_modules_for_pytorch_are_those_of_the_program(self):
        for name in ("record", "apply"):
            installed = pathlib.Path(syncline.__file__).parent / f"{name}.py"
            source = pathlib.Path(f"pytorch/syncline_{name}.py")
            self.assertEqual(installed.read_text(), source.read_text())

    def test_the_modules_for_pytorch_are_imported_when_they_are_used(self):
        try:
            import torch  # pylint: disable=unused-import
        except ImportError:
            if "SYNCLINE_NEEDS_TORCH" in os.environ:
                raise
            self.skipTest("no torch")
        self.assertTrue(callable(syncline.record.record))
        self.assertTrue(callable(syncline.apply.apply))

    def test_other_names_are_not_there(self):
        with self.assertRaisesRegex(AttributeError, "has no attribute 'tuna'"):
            syncline.tuna  # pylint: disable=pointless-statement


if __name__ == "__main__":
    unittest.main()
