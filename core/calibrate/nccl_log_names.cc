// The names that nccl-tests gives to tests, types and versions.
#include <string>
#include <string_view>
#include <utility>

#include "core/calibrate/nccl_log_parts.h"

namespace syncline::calibrate {
namespace {

struct TestName {
  std::string_view name;
  std::string_view squeezed;  // without underscores
};

// Longer names first, where one is part of another.
constexpr TestName kTests[] = {
    {"reduce_scatter", "reducescatter"},
    {"all_reduce", "allreduce"},
    {"all_gather", "allgather"},
    {"alltoallv", "alltoallv"},
    {"alltoall", "alltoall"},
    {"broadcast", "broadcast"},
    {"sendrecv", "sendrecv"},
    {"hypercube", "hypercube"},
    {"scatter", "scatter"},
    {"gather", "gather"},
    {"reduce", "reduce"},
};

std::string squeeze(std::string_view word) {
  std::string result;
  for (const char c : word) {
    if (c == '_' || c == '-' || c == ' ') continue;
    result += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return result;
}

}  // namespace

std::string test_name(std::string_view word) {
  const std::string squeezed = squeeze(word);
  for (const TestName& test : kTests) {
    if (squeezed.find(test.squeezed) != std::string::npos) return std::string(test.name);
  }
  return {};
}

std::string test_program_in(std::string_view line) {
  const std::size_t end = line.find("_perf");
  if (end == std::string_view::npos) return {};
  std::size_t begin = end;
  while (begin > 0 &&
         (line[begin - 1] == '_' || (line[begin - 1] >= 'a' && line[begin - 1] <= 'z'))) {
    --begin;
  }
  const std::string_view name = line.substr(begin, end - begin);
  for (const TestName& test : kTests) {
    if (name == test.name) return std::string(test.name);
  }
  return {};
}

std::string version_of_code(int code) {
  if (code <= 0) return {};
  // Up to 2.8 a version was major x 1000 + minor x 100 + patch.
  const int major = code < 10000 ? code / 1000 : code / 10000;
  const int minor = (code < 10000 ? code % 1000 : code % 10000) / 100;
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(code % 100);
}

int nccl_type_size(std::string_view word) {
  static constexpr std::pair<std::string_view, int> kTypes[] = {
      {"int8", 1},  {"uint8", 1},    {"char", 1},   {"f8e4m3", 1}, {"f8e5m2", 1},
      {"half", 2},  {"bfloat16", 2}, {"int32", 4},  {"uint32", 4}, {"int", 4},
      {"float", 4}, {"int64", 8},    {"uint64", 8}, {"double", 8},
  };
  for (const auto& [name, size] : kTypes) {
    if (name == word) return size;
  }
  return 0;
}

}  // namespace syncline::calibrate
