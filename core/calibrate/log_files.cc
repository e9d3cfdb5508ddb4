#include "core/calibrate/log_files.h"

#include <charconv>
#include <string_view>

#include "core/calibrate/nccl_log.h"
#include "core/error.h"

namespace syncline {
namespace {

// FILE or FILE@10x2: the counts of nodes and GPUs a node of all tables in it.
struct LogFile {
  std::string path;
  int nodes = 0;
  int gpus_per_node = 0;
};

bool whole_number(std::string_view text, int& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value > 0;
}

LogFile log_file(const std::string& argument) {
  const auto at = argument.rfind('@');
  if (at == std::string::npos) return {argument, 0, 0};
  const std::string_view shape = std::string_view(argument).substr(at + 1);
  const auto cross = shape.find('x');
  LogFile file{argument.substr(0, at), 0, 0};
  if (cross == std::string_view::npos || !whole_number(shape.substr(0, cross), file.nodes) ||
      !whole_number(shape.substr(cross + 1), file.gpus_per_node)) {
    // A name may hold the sign itself.
    return {argument, 0, 0};
  }
  return file;
}

}  // namespace

std::vector<MeasuredTable> tables_in(const std::vector<std::string>& names) {
  std::vector<MeasuredTable> tables;
  for (const auto& argument : names) {
    const LogFile file = log_file(argument);
    bool any = false;
    std::string seen;
    for (MeasuredTable& table : read_nccl_log(file.path)) {
      seen += (seen.empty() ? "" : ", ") + (table.test.empty() ? "unknown" : table.test);
      // What a plan never asks for is no part of a cluster's law: alltoall, sendrecv, gather.
      if (!table.kind) continue;
      if (file.nodes > 0) set_shape(table, file.nodes, file.gpus_per_node);
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

}  // namespace syncline
