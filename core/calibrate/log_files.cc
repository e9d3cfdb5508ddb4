#include "core/calibrate/log_files.h"

#include <charconv>
#include <filesystem>
#include <string_view>
#include <utility>

#include "core/calibrate/inspector/inspector.h"
#include "core/calibrate/nccl_log.h"
#include "core/error.h"

namespace syncline::calibrate {
namespace {

// FILE, FILE@10x2 (the counts of nodes and GPUs a node of all tables in it), FILE:ring (what NCCL
// was forced to), FILE@10x2:ring.
struct LogFile {
  std::string path;
  cost::ForcedAlgorithm forced = cost::ForcedAlgorithm::kNone;
  int nodes = 0;
  int gpus_per_node = 0;
};

bool whole_number(std::string_view text, int& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value > 0;
}

const std::vector<std::pair<std::string, cost::ForcedAlgorithm>> kAlgorithms = {
    {"nccl", cost::ForcedAlgorithm::kNone},
    {"ring", cost::ForcedAlgorithm::kRing},
    {"tree", cost::ForcedAlgorithm::kTree}};

LogFile log_file(std::string argument, const std::string& algorithm) {
  cost::ForcedAlgorithm forced = cost::ForcedAlgorithm::kNone;
  for (const auto& [name, value] : kAlgorithms) {
    if (name == algorithm) forced = value;
  }
  for (const auto& [name, value] : kAlgorithms) {
    const std::string ending = ":" + name;
    if (argument.size() <= ending.size() || !argument.ends_with(ending)) continue;
    argument.resize(argument.size() - ending.size());
    forced = value;
    break;
  }
  const auto at = argument.rfind('@');
  if (at == std::string::npos) return {argument, forced, 0, 0};
  const std::string_view shape = std::string_view(argument).substr(at + 1);
  const auto cross = shape.find('x');
  LogFile file{argument.substr(0, at), forced, 0, 0};
  if (cross == std::string_view::npos || !whole_number(shape.substr(0, cross), file.nodes) ||
      !whole_number(shape.substr(cross + 1), file.gpus_per_node)) {
    std::error_code unknown;
    if (!std::filesystem::exists(argument, unknown) &&
        std::filesystem::exists(argument.substr(0, at), unknown)) {
      throw InputError(argument + ": expected " + argument.substr(0, at) +
                       "@NODESxGPUS, e.g. @2x8");
    }
    // A name may hold the sign itself.
    return {argument, forced, 0, 0};
  }
  return file;
}

std::vector<cost::MeasuredTable> read_log(const std::string& path) {
  std::error_code error;
  const bool folder = std::filesystem::is_directory(path, error);
  return folder || is_inspector_log(path) ? read_inspector_log(path) : read_nccl_log(path);
}

}  // namespace

std::vector<cost::MeasuredTable> tables_in(const std::vector<std::string>& names,
                                           const std::string& algorithm) {
  std::vector<cost::MeasuredTable> tables;
  for (const auto& argument : names) {
    const LogFile file = log_file(argument, algorithm);
    bool any = false;
    std::string seen;
    for (cost::MeasuredTable& table : read_log(file.path)) {
      seen += (seen.empty() ? "" : ", ") + (table.test.empty() ? "unknown" : table.test);
      // What a plan never asks for is not calibrated: alltoall, sendrecv, gather.
      if (!table.kind) continue;
      if (file.nodes > 0) cost::set_shape(table, file.nodes, file.gpus_per_node);
      const std::string place = file.path + ": line " + std::to_string(table.line) + ": ";
      if (table.nodes == 0 || table.gpus_per_node == 0) {
        throw InputError(place + "the log does not say on how many nodes" +
                         (table.ranks > 0 ? " its " + std::to_string(table.ranks) + " ranks were"
                                          : " and GPUs it ran") +
                         "; append them to the name: " + file.path + "@NODESxGPUS, e.g. @2x8");
      }
      if (table.nodes * table.gpus_per_node < 2) {
        throw InputError(place + "one rank exchanges nothing");
      }
      table.forced = file.forced;
      if (file.forced == cost::ForcedAlgorithm::kTree &&
          table.kind != collective::CollectiveKind::kAllReduce) {
        throw InputError(place + "algorithm tree: NCCL has it for all_reduce only, found " +
                         table.test);
      }
      any = true;
      tables.push_back(std::move(table));
    }
    if (!any) {
      throw InputError(file.path +
                       ": expected all_reduce, all_gather, reduce_scatter, broadcast or reduce, "
                       "found " +
                       seen);
    }
  }
  return tables;
}

}  // namespace syncline::calibrate
