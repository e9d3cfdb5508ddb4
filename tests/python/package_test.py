"""The package as it is installed, and as python3-syncline: it needs nothing of the build, and a
program of somebody else (program.py) runs with it."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["SYNCLINE_BUILD"])
SOURCES = pathlib.Path.cwd()
FIRST = str(SOURCES / "scenarios/first.json")


def said(*words, **options):
    return subprocess.run(words, capture_output=True, text=True, check=True, **options).stdout


class Package(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def expect_works(self, site):
        files = {path.name for path in (site / "syncline").iterdir()}
        module = next(name for name in files if name.startswith("_core"))
        self.assertEqual(files, {"__init__.py", "apply.py", "record.py", "tuner.py", module})
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

    def test_installed_and_moved(self):
        prefix, moved = self.folder / "first", self.folder / "moved"
        said(os.environ["SYNCLINE_CMAKE"], "--install", str(BUILD), "--component", "python",
             "--prefix", str(prefix))
        prefix.rename(moved)
        module = self.expect_works(next(moved.glob("lib/python3*/*-packages")))
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
        self.assertRegex(said("dpkg-deb", "-f", str(package), "Depends"),
                         r"^python3 \(>= 3\.\d+\), python3 \(<< 3\.\d+\)$")
        root = self.folder / "root"
        said("dpkg-deb", "-x", str(package), str(root))
        self.expect_works(root / "usr/lib/python3/dist-packages")


if __name__ == "__main__":
    unittest.main()
