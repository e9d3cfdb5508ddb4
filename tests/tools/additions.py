#!/usr/bin/env python3
"""What an addition costs: a dummy of each kind added to a copy of the project.

    tests/tools/additions.py FOLDER [--build]

Clones what is committed into FOLDER (which must not exist), adds the dummies one after the other
and prints, for each, the lines of its own files and those changed in others. --build compiles the
copy, has schema.json written from the tables, and asks the program for every dummy (ten minutes).
"""

import argparse
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROOMS = "core/CMakeLists.txt"


def header(name, includes, declarations):
    """A header of a folder's namespace."""
    space = name.split("/")[1]
    return ("// A dummy.\n#pragma once\n\n" + "".join(f'#include "{i}"\n' for i in includes) +
            f"\nnamespace syncline::{space} {{\n\n{declarations}\n}}  // namespace syncline::{space}\n")


# Of each kind: files of its own, and in others (what stands there, what stands there then).
ADDITIONS = {
    "algorithm": (
        {"core/collective/dummy.cc": """#include "core/algorithm.h"

namespace syncline::collective {

Algorithm dummy_algorithm() {
  Algorithm algorithm = to_one_algorithm();
  algorithm.name = "dummy_algorithm";
  return algorithm;
}

}  // namespace syncline::collective
"""},
        {"core/algorithm.h": [
            ("Algorithm ring_algorithm", "Algorithm dummy_algorithm();\n")],
         "core/collective/algorithm.cc": [
            ("ring_algorithm(), to_one", "dummy_algorithm(), ")],
         ROOMS: [("halving_doubling.cc", "dummy.cc ")]}),
    "codec": (
        {"core/compress/dummy.cc": """#include "core/codec.h"

namespace syncline::compress {

Codec dummy_codec() {
  Codec codec = fp16_codec();
  codec.name = "dummy_codec";
  return codec;
}

}  // namespace syncline::compress
"""},
        {"core/codec.h": [("Codec dgc_codec", "Codec dummy_codec();\n")],
         "core/compress/codec.cc": [("dgc_codec(),  fp16", "dummy_codec(), ")],
         ROOMS: [("dgc.cc momentum", "dummy.cc ")]}),
    "dialect": (
        {"formats/dialect/dummy.cc": """#include "formats/dialect/dialects.h"

namespace syncline::dialect {
namespace {

Reading read_one_number(Reader config, const Workload&, const Cluster&, bool) {
  Reading reading;
  reading.strategy.fusion.rule = Fusion::Rule::kSize;
  reading.strategy.fusion.size = config.integer_or("bucket", 5000, 0, kGiB);
  config.finish();
  return reading;
}

}  // namespace

Dialect dummy_dialect() { return {"dummy_dialect", "one number", read_one_number}; }

}  // namespace syncline::dialect
"""},
        {"formats/dialect/dialects.h": [("Dialect fsdp_dialect", "Dialect dummy_dialect();\n")],
         "formats/dialect/dialects.cc": [("fsdp_dialect(), ", "dummy_dialect(), ")],
         "formats/CMakeLists.txt": [("fsdp.cc", "dummy.cc ")]}),
    "knob": (
        {},
        {"core/strategy.h": [("  // parameters are updated when", "  bool dummy = false;\n")],
         "formats/input/knobs.cc": [('      knob("pieces"', '      knob("dummy_knob", &S::dummy, '
                                  'yes_or_no(), "Does nothing. Default false."),\n')],
         "tests/scenarios/schema_cases.h": [
            ('  {"op": "add", "path": "/strategies/1/fusion/order"',
             '  {"op": "add", "path": "/strategies/1/dummy_knob", "value": true},\n')]}),
    "live backend": (
        {"backend_dummy/dummy_executor.h": """// A dummy.
#pragma once

#include <memory>

#include "live/live_executor.h"

namespace syncline::dummy_backend {

std::unique_ptr<live::LiveExecutor> make_dummy_executor(const Workload& workload,
                                                        live::ControlChannel& channel);

}  // namespace syncline::dummy_backend
""",
         "backend_dummy/dummy_executor.cc": """#include "backend_dummy/dummy_executor.h"

#include "core/base/error.h"

namespace syncline::dummy_backend {

std::unique_ptr<live::LiveExecutor> make_dummy_executor(const Workload&, live::ControlChannel&) {
  throw MachineError("--backend dummy: there is no such machine");
}

}  // namespace syncline::dummy_backend
""",
         "cli/modules/dummy.cc": """#include "backend_dummy/dummy_executor.h"
#include "cli/modules.h"

extern "C" void syncline_module_dummy(syncline::cli::ModuleRows& rows) {
  rows.backend.make = syncline::dummy_backend::make_dummy_executor;
}
"""},
        {"CMakeLists.txt": [
            ("syncline_module(gloo", "syncline_room(dummy backend_dummy SOURCES dummy_executor.cc LINKS live)\n"
                                     "syncline_module(dummy ROOMS dummy)\n")],
         "cli/modules.h": [("void syncline_module_gloo",
                            "void syncline_module_dummy(syncline::cli::ModuleRows& rows);\n")],
         "cli/handed_in.cc": [('      {"nccl", "ranks', '      {"dummy", "no machine"},\n')]}),
    "predicting executor": (
        {"core/run/dummy_executor.h": header(
            "core/run", ["core/executor.h"],
            "std::unique_ptr<Executor> make_dummy_executor(const ExecutorSettings& settings);\n"),
         "core/run/dummy_executor.cc": """#include "core/run/dummy_executor.h"

#include "core/executor.h"

namespace syncline::run {

std::unique_ptr<Executor> make_dummy_executor(const ExecutorSettings& settings) {
  return make_model_executor(settings);
}

}  // namespace syncline::run
"""},
        {"cli/handed_in.cc": [
            ('#include "core/executor.h"', '#include "core/run/dummy_executor.h"\n'),
            ('      {"sim", ', '      {"dummy_executor", "the model again", run::make_dummy_executor},\n')],
         ROOMS: [("model_executor.cc", "dummy_executor.cc ")]}),
    "verb": (
        {"cli/dummy.cc": """#include <iostream>

#include "cli/verbs.h"

namespace syncline::cli {

VerbAction add_dummy(CLI::App&) {
  return [] {
    std::cout << "nothing\\n";
    return 0;
  };
}

}  // namespace syncline::cli
"""},
        {"cli/verbs.h": [("VerbAction add_emit", "VerbAction add_dummy(CLI::App& verb);\n")],
         "cli/program.cc": [('{"list", ', '{"dummy_verb", "Say nothing of use", add_dummy},\n        ')],
         "CMakeLists.txt": [("emit.cc explain.cc\n", "dummy.cc ")],
         "tests/cli/terminal_test.cc": [('      {"lab", {}},', '      {"dummy_verb", {{}}},\n')]}),
    "output format": (
        {},
        {"reports/answer.h": [("kJson };", "kDummy, ")],
         "reports/answer.cc": [
            ('"json"};', '"dummy_format", '),
            ("    case Format::kJson:",
             '    case Format::kDummy:\n      return answer.verb + "\\n";\n')]}),
    "architecture": (
        {"catalogue/architectures/dummy.cc": """#include "catalogue/architectures/architecture.h"
#include "catalogue/architectures/transformer.h"

namespace syncline::operators {

void build_dummy(GraphBuilder& build, const ArchitectureOptions& options) {
  const int tokens = build.activation(options.batch * 64);
  build.mark_constant(tokens);
  const int y = linear(build, tokens, options.batch, 64, 10, "w", "b", true, false);
  cross_entropy(build, y, options.batch * 10);
}

}  // namespace syncline::operators
"""},
        {"catalogue/architectures/architecture.h": [
            ("void build_bert", "void build_dummy(GraphBuilder& build, "
             "const ArchitectureOptions& options);\n")],
         "catalogue/architectures/architecture.cc": [
            ('      vision("vit_b_16"', '      images("dummy_architecture", "one layer", build_dummy),\n')],
         "catalogue/CMakeLists.txt": [("layers.cc", "dummy.cc ")]}),
    "device": (
        {},
        {"catalogue/hardware/device.cc": [
            ('    {"t4", "NVIDIA', '    {"dummy_device", "Dummy", 1 * kTera, 2 * kTera, '
             '100 * kGB, kGigabyte, 75, false, "DUMMY",\n     "nobody\'s"},\n')]}),
}

# What names each of them, once the program knows it.
ASKED = {"dummy_algorithm": "list", "dummy_codec": "list", "dummy_dialect": "list",
         "dummy_knob": "schema", "dummy_backend": "validate --help", "dummy_executor": "run --help",
         "dummy_verb": "--help", "dummy_format": "run --help", "dummy_architecture": "list",
         "dummy_device": "list"}


def git(folder, *arguments):
    names = ["-c", "user.name=additions", "-c", "user.email=additions@localhost"]
    return subprocess.run(["git", "-C", folder, *names, *arguments], check=True, text=True,
                          stdout=subprocess.PIPE).stdout


def add(folder, own, edits):
    for name, text in own.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    for name, places in edits.items():
        text = (folder / name).read_text()
        for anchor, more in places:
            if text.count(anchor) < 1:
                sys.exit(f"additions: {name}: nothing reads '{anchor}' any more")
            text = text.replace(anchor, more + anchor, 1)
        (folder / name).write_text(text)


def costs(folder, kind, own):
    """Commits; lines of its own, and [(file, lines changed)] of others."""
    git(folder, "add", "--all")
    changed = [line.split("\t") for line in git(folder, "diff", "--cached", "--numstat").splitlines()]
    git(folder, "commit", "--quiet", "-m", f"A dummy: {kind}")
    lines = {name: int(added) for added, _, name in changed}
    others = [(name, count) for name, count in lines.items() if name not in own]
    return sum(lines.values()) - sum(count for _, count in others), others


def build(folder):
    run = lambda *words, **more: subprocess.run(words, cwd=folder, check=True, **more)  # noqa: E731
    run("cmake", "-B", "build", "-G", "Ninja")
    run("ninja", "-C", "build", "syncline_scenarios_tests", "syncline")
    # Fails once, says so, and writes the file.
    subprocess.run(["build/syncline_scenarios_tests", "--gtest_filter=Schema.KnobsAre*:*RowsOf*"],
                   cwd=folder, env=dict(os.environ, SYNCLINE_UPDATE_GOLDEN="1"), check=False,
                   stdout=subprocess.DEVNULL)
    changed = git(folder, "diff", "--stat", "--", "scenarios/schema.json")
    run("ninja", "-C", "build", "syncline")
    run("build/syncline_scenarios_tests")
    for name, words in ASKED.items():
        told = run("build/syncline", *words.split(), capture_output=True, text=True).stdout
        if name not in told:
            sys.exit(f"additions: `syncline {words}` does not name {name}")
    print(changed + "every dummy is known to the program")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--build", action="store_true")
    options = parser.parse_args()
    subprocess.run(["git", "clone", "--quiet", ROOT, options.folder], check=True)
    print("| addition | lines of its own | lines in other files |\n|---|--:|---|")
    for kind, (own, edits) in ADDITIONS.items():
        add(options.folder, own, edits)
        lines, others = costs(options.folder, kind, own)
        print(f"| {kind} | {lines} | " + ", ".join(f"{name} {n}" for name, n in others) + " |")
    if options.build:
        build(options.folder)


if __name__ == "__main__":
    main()
