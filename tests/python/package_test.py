"""The package as it is installed, as python3-syncline, and as a wheel holds it: it needs nothing of
the build, and a program of somebody else (program.py) runs with it."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
import unittest

BUILD = pathlib.Path(os.environ["SYNCLINE_BUILD"])
SOURCES = pathlib.Path.cwd()
FIRST = str(SOURCES / "scenarios/first.json")


def said(*words, **options):
    return subprocess.run(words, capture_output=True, text=True, check=True, **options).stdout


class Installed(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def expect_works(self, site, *folders):
        files = {path.name for path in (site / "syncline").iterdir()}
        module = "_core.abi3.so"
        files_of_jobs = {"apply.py", "record.py", "tuner.py"}
        self.assertEqual(files, {"__init__.py", module, *files_of_jobs, *folders})
        ran = said(sys.executable, str(SOURCES / "tests/python/program.py"), FIRST,
                   cwd=self.folder, env={"PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"})
        lines = ran.splitlines()
        for line, speed in zip(lines, (1, 10, 100)):
            rows = json.loads(said(os.environ["SYNCLINE"], "run", FIRST, "--format", "json", "--set",
                                   f'sweep={{"cluster.inter.bandwidth_gbps": [{speed}]}}'))["rows"]
            best = min(rows, key=lambda row: row["step_time_s"])
            self.assertEqual(line, f'{speed} Gbit/s: {best["strategy"]}, {best["step_time_s"]!r}')
        self.assertEqual(len(lines), 5)
        self.assertRegex(lines[4], r"^\d+ buckets$")
        return site / "syncline" / module

    def installed(self, component):
        """A component of the build, installed and moved."""
        prefix, moved = self.folder / "first", self.folder / "moved"
        said(os.environ["SYNCLINE_CMAKE"], "--install", str(BUILD), "--component", component,
             "--prefix", str(prefix))
        prefix.rename(moved)
        return moved


class Package(Installed):
    def test_installed_and_moved(self):
        module = self.expect_works(next(self.installed("python").glob("lib/python3*/*-packages")))
        libraries = {line.split()[0].split(".so")[0] for line in said("ldd", str(module)).splitlines()
                     if "=>" in line}
        # What SimGrid itself is linked to is not ours to say, but neither MPI nor CUDA is there.
        self.assertTrue({"libsimgrid", "libstdc++"} <= libraries)
        for word in ("libmpi", "libnccl", "libcuda", "libgloo", "libpython"):
            self.assertFalse([name for name in libraries if name.startswith(word)])

    def test_as_a_package_of_debian(self):
        cpack = pathlib.Path(os.environ["SYNCLINE_CMAKE"]).with_name("cpack")
        if not cpack.exists() or shutil.which("dpkg-deb") is None:
            self.skipTest("no cpack or no dpkg-deb")
        # What it is linked to is asked of dpkg-shlibdeps, which is not everywhere.
        said(str(cpack), "-G", "DEB", "-B", str(self.folder), "-D", "CPACK_COMPONENTS_ALL=python",
             "-D", "CPACK_DEBIAN_PACKAGE_SHLIBDEPS=OFF", "--config", str(BUILD / "CPackConfig.cmake"),
             cwd=BUILD)
        package, = self.folder.glob("python3-syncline_*.deb")
        # Any later Python loads what was built by one.
        self.assertEqual(said("dpkg-deb", "-f", str(package), "Depends"), "python3 (>= 3.9)\n")
        root = self.folder / "root"
        said("dpkg-deb", "-x", str(package), str(root))
        self.expect_works(root / "usr/lib/python3/dist-packages")


class Wheel(Installed):
    """What pip installs from a wheel. Packing one takes PyPI: make wheel does, and installs it into
    empty systems; the libraries inside are auditwheel's work."""

    def setUp(self):
        super().setUp()
        self.site = self.installed("wheel")
        self.package = self.site / "syncline"
        empty = self.folder / "empty"
        empty.mkdir()
        self.alone = {"cwd": empty,
                      "env": {"PYTHONPATH": str(self.site), "PYTHONDONTWRITEBYTECODE": "1"}}

    def started(self, *words):
        """What the console script says."""
        return said(sys.executable, "-c", "import sys, syncline; sys.argv[0] = 'syncline'; "
                    "syncline._main()", *words, **self.alone)

    def test_installed_and_moved(self):
        self.expect_works(self.site, "bin", "lib", "share")

    def test_everything_that_the_program_loads_is_inside(self):
        libraries = {path.name for path in (self.package / "lib/syncline/modules").iterdir()}
        loaded = {path.name for path in BUILD.glob("libsyncline_*.so")}
        self.assertIn("libsyncline_live.so", loaded)
        self.assertEqual(libraries, loaded)
        for verb in ("import", "validate"):
            self.assertIn(f"syncline {verb}", self.started(verb, "--help"))

    def test_no_backend_is_needed(self):
        for path in (self.package / "bin/syncline", self.package / "_core.abi3.so",
                     *(self.package / f"lib/syncline/modules/libsyncline_{name}.so"
                       for name in ("imports", "live"))):
            needed = re.findall(r"\[(lib[^]]+)\]", said("readelf", "--dynamic", str(path)))
            self.assertTrue(needed, path)
            self.assertEqual([], [name for name in needed
                                  if re.match("lib(gloo|mpi|cuda|nccl)", name)], path)

    def test_the_first_question_is_answered_from_an_empty_folder(self):
        question = ("run", "scenarios/resnet50_ddp.json", "--format", "json")
        own = said(os.environ["SYNCLINE"], *question)
        self.assertEqual(json.loads(self.started(*question)), json.loads(own))
        ask = ("import json, syncline; "
               "print(json.dumps(syncline.run('scenarios/resnet50_ddp.json').rows))")
        rows = json.loads(said(sys.executable, "-c", ask, **self.alone))
        self.assertEqual(rows, json.loads(own)["rows"])

    def test_the_console_script_becomes_the_program(self):
        program = self.package / "bin/syncline"
        program.write_text("#!/bin/sh\n"
                           "printf '<%s>' \"$@\"; grep SigIgn /proc/self/status; echo $$\n")
        words = ("run", "", "two words", "--set=a=$b")
        with subprocess.Popen([sys.executable, "-c", "import syncline; syncline._main()", *words],
                              stdout=subprocess.PIPE, text=True, **self.alone) as running:
            told = running.communicate()[0]
        said_words, ignored, process = re.fullmatch(r"(.*)SigIgn:\t(\w+)\n(\d+)\n", told).groups()
        self.assertEqual(said_words, "".join(f"<{word}>" for word in words))
        self.assertEqual(int(process), running.pid)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, the program does not
            self.assertFalse(int(ignored, 16) >> (number - 1) & 1, number)

    def test_without_its_program_the_console_script_says_so(self):
        (self.package / "bin/syncline").unlink()
        with self.assertRaises(subprocess.CalledProcessError) as failed:
            self.started("--version")
        self.assertIn("install the wheel again", failed.exception.stderr)


class Project(unittest.TestCase):
    """pyproject.toml against what CMake makes."""

    def setUp(self):
        self.project = tomllib.loads((SOURCES / "pyproject.toml").read_text())
        self.packed = self.project["tool"]["scikit-build"]

    def test_the_version_is_the_programs(self):
        version = self.packed["metadata"]["version"]
        found = re.search(version["regex"], (SOURCES / version["input"]).read_text())["value"]
        printed = said(os.environ["SYNCLINE"], "--version")
        self.assertEqual(f"syncline {found}", printed.splitlines()[0])

    def test_it_builds_what_it_installs(self):
        rules = (BUILD / "build.ninja").read_text()
        for target in self.packed["build"]["targets"]:
            self.assertRegex(rules, rf"(?m)^build {target}( |:)")
        installs = (BUILD / "cmake_install.cmake").read_text()
        for component in self.packed["install"]["components"]:
            self.assertIn(f'CMAKE_INSTALL_COMPONENT STREQUAL "{component}"', installs)

    def test_the_python_that_it_names_is_the_one_that_the_module_is_built_for(self):
        commands = json.loads((BUILD / "compile_commands.json").read_text())
        module = next(one for one in commands if one["file"].endswith("python/module.cc"))
        minor = int(re.search(r"Py_LIMITED_API=0x03(\w\w)0000", module["command"])[1], 16)
        self.assertEqual(self.project["project"]["requires-python"], f">=3.{minor}")
        self.assertEqual(self.packed["wheel"]["py-api"], f"cp3{minor}")

    def test_the_console_script_is_there(self):
        import syncline
        module, function = self.project["project"]["scripts"]["syncline"].split(":")
        self.assertEqual(module, "syncline")
        self.assertTrue(callable(getattr(syncline, function)))


if __name__ == "__main__":
    unittest.main()
