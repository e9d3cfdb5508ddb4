// What nvcc made of the kernels, for sm_80, sm_90 and sm_100: no spills, registers within a budget,
// and accesses of 16 bytes in the PTX of every kernel that streams. The build leaves the compiler's
// report and the PTX in a folder of its own for every .cu file.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/support/scratch.h"

namespace syncline::kernels {
namespace {

namespace fs = std::filesystem;

// What is asked of a kernel whose mangled name matches; the first row that matches counts.
// 64 registers let four blocks of 256 threads live on a multiprocessor. Where one side has 2-byte
// elements and the other 4-byte ones, 16 bytes of the wider face 8 of the narrower.
struct ExpectedKernel {
  const char* pattern;
  int registers;
  bool wide_loads;
  bool wide_stores;
};

const ExpectedKernel kExpected[] = {
    {"pack_kernelIff", 64, true, true},
    {"pack_kernelIfNS", 64, true, false},
    {"pack_kernelINS0_4[BF]...Ef", 64, false, true},
    {"update_kernel", 64, true, true},
    {"add_activation_kernel", 64, true, true},
    // Of batch normalisation's kernels those named Li1 go element by element.
    {"batch_[a-z_]+_kernelI.*Li1EEE", 64, false, false},
    {"batch_moments_kernel", 64, true, false},
    {"batch_normalise_kernel", 64, true, true},
    // Three blocks a multiprocessor: five parameters for each of eight channels.
    {"batch_gradient_sums_kernel", 80, true, false},
    {"batch_gradient_kernel", 80, true, true},
    {"", 64, false, false},
};

const ExpectedKernel& expected_of(const std::string& mangled) {
  for (const auto& row : kExpected) {
    if (std::regex_search(mangled, std::regex(row.pattern))) return row;
  }
  ADD_FAILURE() << "the last row matches everything";
  return kExpected[0];
}

struct CompiledKernel {
  std::string name;
  std::string architecture;
  int local = -1;  // bytes of local memory: spilled registers, and arrays that found none
  int registers = -1;
};

// ptxas -v says for each kernel and architecture: its name, its spills, its registers.
std::vector<CompiledKernel> read_report(const fs::path& path) {
  const std::regex entry("Compiling entry function '([^']+)' for '(sm_[0-9]+)'");
  const std::regex spills(
      "([0-9]+) bytes stack frame, ([0-9]+) bytes spill stores, ([0-9]+) bytes spill loads");
  const std::regex registers("Used ([0-9]+) registers");
  std::vector<CompiledKernel> kernels;
  std::ifstream in(path);
  std::smatch found;
  for (std::string line; std::getline(in, line);) {
    if (std::regex_search(line, found, entry)) {
      kernels.push_back({found[1], found[2], -1, -1});
    } else if (kernels.empty()) {
      continue;
    } else if (std::regex_search(line, found, spills)) {
      kernels.back().local = std::stoi(found[1]) + std::stoi(found[2]) + std::stoi(found[3]);
    } else if (std::regex_search(line, found, registers)) {
      kernels.back().registers = std::stoi(found[1]);
    }
  }
  return kernels;
}

// The body of each kernel in a PTX file, by its mangled name.
std::map<std::string, std::string> read_ptx(const fs::path& path) {
  std::map<std::string, std::string> bodies;
  const std::string text = test::text_of(path);
  const std::string mark = ".entry ";
  for (auto at = text.find(mark); at != std::string::npos;) {
    const auto name = at + mark.size();
    const auto next = text.find(mark, name);
    const auto end = text.find('(', name);
    bodies[text.substr(name, end - name)] = text.substr(end, next - end);
    at = next;
  }
  return bodies;
}

// Of kernels/NAME.cu and kernels/check/NAME.cu: NAME_cu and check_NAME_cu.
fs::path source_of(const fs::path& folder) {
  std::string name = folder.filename().string();
  if (name.rfind("check_", 0) == 0) name[5] = '/';
  if (name.size() > 3) name[name.size() - 3] = '.';
  return fs::path(SYNCLINE_SOURCE_DIR) / "kernels" / name;
}

std::vector<fs::path> report_folders() {
  std::vector<fs::path> folders;
  if (!fs::exists(SYNCLINE_KERNEL_REPORTS)) return folders;
  for (const auto& entry : fs::directory_iterator(SYNCLINE_KERNEL_REPORTS)) {
    // Not one that was removed since.
    if (fs::exists(source_of(entry.path()))) folders.push_back(entry.path());
  }
  return folders;
}

TEST(CompilerReport, NoSpillsAndRegistersWithinTheBudget) {
  const auto folders = report_folders();
  if (folders.empty()) GTEST_SKIP() << "nvcc was not found: no kernel was compiled";
  for (const auto& folder : folders) {
    const auto kernels = read_report(folder / "ptxas.txt");
    EXPECT_FALSE(kernels.empty()) << folder;
    std::map<std::string, std::set<std::string>> architectures;
    for (const auto& kernel : kernels) {
      architectures[kernel.name].insert(kernel.architecture);
      EXPECT_EQ(kernel.local, 0) << kernel.name << " for " << kernel.architecture;
      EXPECT_GT(kernel.registers, 0) << kernel.name;
      EXPECT_LE(kernel.registers, expected_of(kernel.name).registers)
          << kernel.name << " for " << kernel.architecture;
    }
    for (const auto& [name, built] : architectures) {
      EXPECT_EQ(built, (std::set<std::string>{"sm_100", "sm_80", "sm_90"})) << name;
      EXPECT_NE(name.find("_kernel"), std::string::npos) << name << ": kernels end in _kernel";
    }
  }
}

TEST(CompilerReport, StreamingKernelsAccessSixteenBytesAtATime) {
  const auto folders = report_folders();
  if (folders.empty()) GTEST_SKIP() << "nvcc was not found: no kernel was compiled";
  const std::regex wide_load("ld\\.global(\\.[a-z_:0-9]+)*\\.v4\\.[a-z]32");
  const std::regex wide_store("st\\.global(\\.[a-z_:0-9]+)*\\.v4\\.[a-z]32");
  int files = 0;
  std::set<std::string> rows;
  for (const auto& folder : folders) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() != ".ptx") continue;
      ++files;
      for (const auto& [name, body] : read_ptx(entry.path())) {
        const auto& expected = expected_of(name);
        rows.insert(expected.pattern);
        if (expected.wide_loads) {
          EXPECT_TRUE(std::regex_search(body, wide_load)) << name << " in " << entry.path();
        }
        if (expected.wide_stores) {
          EXPECT_TRUE(std::regex_search(body, wide_store)) << name << " in " << entry.path();
        }
      }
    }
  }
  EXPECT_GE(files, static_cast<int>(3 * folders.size()));  // one for each architecture
  // A row that nothing matches any more would check nothing.
  for (const auto& row : kExpected) {
    EXPECT_TRUE(row.pattern[0] == '\0' || rows.contains(row.pattern)) << row.pattern;
  }
}

}  // namespace
}  // namespace syncline::kernels
