#!/usr/bin/env python3
"""How the project is built: warnings are errors in CI alone, and the README names what a build needs."""
import json
import os
import pathlib
import re
import subprocess
import unittest

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_BUILD = pathlib.Path(os.environ["SYNCLINE_BUILD"])


def configured(**variables):
    """The options that `make configure` gives CMake, in an environment of these variables alone."""
    environment = {"PATH": os.environ["PATH"], **variables}
    said = subprocess.run(["make", "-n", "configure"], cwd=_ROOT, env=environment, check=True,
                          capture_output=True, text=True).stdout
    return re.findall(r"-DSYNCLINE_WERROR=\w+", said)


class Warnings(unittest.TestCase):
    def test_a_user_asks_for_no_errors(self):
        self.assertEqual(configured(), [])
        self.assertRegex((_ROOT / "CMakeLists.txt").read_text(), r"option\(SYNCLINE_WERROR .* OFF\)")

    def test_ci_does(self):
        exported = re.findall(r"^export (\w+)=(\w+)", (_ROOT / ".ci" / "run").read_text(), re.MULTILINE)
        self.assertEqual(configured(**dict(exported)), ["-DSYNCLINE_WERROR=ON"])

    def test_the_option_decides_for_every_source(self):
        cache = (_BUILD / "CMakeCache.txt").read_text()
        strict = re.search(r"^SYNCLINE_WERROR:BOOL=(\w+)$", cache, re.MULTILINE)[1] == "ON"
        commands = json.loads((_BUILD / "compile_commands.json").read_text())
        self.assertTrue(commands)
        for command in commands:
            self.assertEqual("-Werror" in command["command"], strict, command["file"])


class Packages(unittest.TestCase):
    def test_those_to_install_by_hand_are_the_makefiles(self):
        readme = (_ROOT / "README.md").read_text()
        named = re.search(r"apt-get install ((?:[^\n]*\\\n)*[^\n]*)", readme)[1].replace("\\", " ").split()
        makefile = (_ROOT / "Makefile").read_text()
        installed = re.search(r"^PACKAGES := ((?:[^\n]*\\\n)*[^\n]*)", makefile, re.MULTILINE)[1]
        installed = installed.replace("\\", " ").split()
        for_tests = {"libgtest-dev", "googletest", "libvalijson-dev", "libbenchmark-dev", "iproute2"}
        left_out = for_tests | {"ccache", "libgloo-dev", "libopenmpi-dev", "openmpi-bin"}
        self.assertEqual(set(named), set(installed) - left_out)


if __name__ == "__main__":
    unittest.main()
