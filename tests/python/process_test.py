"""What goes on around the work: other threads run, several work at once, Ctrl-C ends it."""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest

import syncline

FIRST = "scenarios/first.json"
PATIENCE = 120  # seconds for what has to happen some time

# A search that takes hours: each candidate is simulated message by message.
LONG = """
import syncline
scenario = {"name": "long", "baseline": "plain", "simulation": {"grain": "step", "fold": False},
            "workload": {"name": "deep", "batch": 8, "forward_ms": 50, "tensors": [
                {"name": f"layer{i}", "shape": [4096], "backward_us": 300} for i in range(300)]},
            "cluster": {"name": "wide", "nodes": 32, "gpus_per_node": 8,
                        "inter": {"latency_us": 20, "bandwidth_gbps": 10},
                        "intra": {"latency_us": 5, "bandwidth_gbps": 300}},
            "strategies": [{"name": "plain", "fusion": {"rule": "none"}}]}
try:
    syncline.tune(scenario, executor="sim", exhaustive=True, jobs=JOBS)
except KeyboardInterrupt:
    print("stopped", flush=True)
    raise
"""


def running():
    """{process: its parent}, without those that have ended and wait to be waited for."""
    parents = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
            if state not in "ZX":
                parents[int(path.parent.name)] = int(parent)
    return parents


def children(process):
    """Its children, theirs, and so on."""
    parents, found = running(), {process}
    while True:
        more = found | {child for child, parent in parents.items() if parent in found}
        if more == found:
            return found - {process}
        found = more


def comes_true(condition):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.01)
    return False


class Interrupts(unittest.TestCase):
    def expect_stopped(self, jobs, fewest):
        program = subprocess.Popen([sys.executable, "-c", LONG.replace("JOBS", str(jobs))],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True)
        workers = set()
        try:
            self.assertTrue(comes_true(lambda: len(children(program.pid)) >= fewest))
            workers = children(program.pid)
            os.kill(program.pid, signal.SIGINT)
            out, err = program.communicate(timeout=PATIENCE)
        finally:
            program.kill()
        self.assertEqual(out, "stopped\n")
        self.assertIn("KeyboardInterrupt", err)
        self.assertEqual(program.returncode, -signal.SIGINT)
        self.assertTrue(comes_true(lambda: not workers & running().keys()), workers)

    def test_end_a_search_and_its_simulation(self):
        self.expect_stopped(1, 2)

    def test_end_its_workers(self):
        self.expect_stopped(2, 3)

    def test_are_the_interpreters_again_afterwards(self):
        syncline.run(FIRST)
        with self.assertRaises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(PATIENCE)

    def test_a_handler_of_ones_own_is_called_meanwhile(self):
        called = threading.Event()
        before = signal.signal(signal.SIGUSR1, lambda *_: called.set())
        self.addCleanup(signal.signal, signal.SIGUSR1, before)
        with tempfile.TemporaryDirectory() as folder:
            pipe = pathlib.Path(folder, "scenario.json")
            os.mkfifo(pipe)

            def feed():
                os.kill(os.getpid(), signal.SIGUSR1)
                if called.wait(PATIENCE):
                    pipe.write_text(pathlib.Path(FIRST).read_text())

            feeder = threading.Thread(target=feed)
            feeder.start()
            answer = syncline.run(pipe)
            feeder.join()
        self.assertEqual(answer.rows, syncline.run(FIRST).rows)


class Threads(unittest.TestCase):
    def test_count_during_a_run(self):
        # The run cannot end before the other thread has counted: it reads what that one writes.
        with tempfile.TemporaryDirectory() as folder:
            pipe = pathlib.Path(folder, "scenario.json")
            os.mkfifo(pipe)
            counted = []

            def count():
                for number in range(100_000):
                    counted.append(number)
                pipe.write_text(pathlib.Path(FIRST).read_text())

            counter = threading.Thread(target=count)
            counter.start()
            answer = syncline.run(pipe)
            counter.join()
        self.assertEqual(len(counted), 100_000)
        self.assertEqual(answer.rows, syncline.run(FIRST).rows)

    def test_work_at_once(self):
        # Each reads its scenario from a pipe that is filled when all of them are under way.
        scenario = json.loads(pathlib.Path(FIRST).read_text())
        with tempfile.TemporaryDirectory() as folder:
            pipes = [pathlib.Path(folder, f"{i}.json") for i in range(3)]
            for pipe in pipes:
                os.mkfifo(pipe)
            calls = [lambda: syncline.run(pipes[0], executor="sim"),
                     lambda: syncline.tune(pipes[1]), lambda: syncline.explain(pipes[2])]
            with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
                under_way = [pool.submit(call) for call in calls]
                for nodes, pipe in enumerate(pipes, start=2):
                    scenario["cluster"]["nodes"] = nodes
                    pipe.write_text(json.dumps(scenario))
                answers = [future.result() for future in under_way]
        alone = [syncline.run(FIRST, executor="sim", set={"cluster.nodes": 2}),
                 syncline.tune(FIRST, set={"cluster.nodes": 3}),
                 syncline.explain(FIRST, set={"cluster.nodes": 4})]
        self.assertEqual([answer.json for answer in answers], [answer.json for answer in alone])


class Output(unittest.TestCase):
    def test_of_others_that_is_still_buffered_is_written_once(self):
        script = textwrap.dedent(f"""
            import ctypes, syncline
            ctypes.CDLL(None).printf(b"once")
            syncline.run("{FIRST}", executor="sim")
            """)
        buffered = {name: value for name, value in os.environ.items()
                    if name != "PYTHONUNBUFFERED"}
        ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                             check=True, env=buffered)
        self.assertEqual((ran.stdout, ran.stderr), ("once", ""))


class Crashes(unittest.TestCase):
    def test_are_errors_of_the_machine(self):
        self.assertTrue(issubclass(syncline.MachineError, RuntimeError))
        with tempfile.TemporaryDirectory() as folder:
            pipe = pathlib.Path(folder, "scenario.json")
            os.mkfifo(pipe)

            def kill():
                comes_true(lambda: children(os.getpid()))
                os.kill(min(children(os.getpid())), signal.SIGKILL)

            killer = threading.Thread(target=kill)
            killer.start()
            with self.assertRaisesRegex(syncline.MachineError, "ended by signal 9"):
                syncline.run(pipe)
            killer.join()

    def test_so_are_processes_that_cannot_begin(self):
        script = textwrap.dedent(f"""
            import resource, syncline
            resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
            try:
                syncline.run("{FIRST}")
            except syncline.MachineError as error:
                print(error)
            """)
        ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                             check=False)
        self.assertEqual((ran.stdout, ran.stderr), ("pipe: Too many open files\n", ""))


if __name__ == "__main__":
    unittest.main()
