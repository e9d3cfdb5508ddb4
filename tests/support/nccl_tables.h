// Published logs of nccl-tests, and tables that are made up.
#pragma once

#include <string>
#include <vector>

#include "core/cost/measured_table.h"
#include "studies/calibrate/log_files.h"

namespace syncline::test {

inline const std::string kNcclLogs = SYNCLINE_SOURCE_DIR "/scenarios/measured/nccl-tests/";

// The tables of these files, ".txt" left out.
inline std::vector<cost::MeasuredTable> nccl_logs(const std::vector<std::string>& names) {
  std::vector<cost::MeasuredTable> tables;
  for (const auto& name : names) {
    for (auto& table : calibrate::read_nccl_log(kNcclLogs + name + ".txt")) {
      tables.push_back(std::move(table));
    }
  }
  return tables;
}

// Without rows.
inline cost::MeasuredTable nccl_table(collective::CollectiveKind kind, int nodes, int gpus) {
  cost::MeasuredTable table;
  table.source = "made up " + std::to_string(nodes) + "x" + std::to_string(gpus);
  table.test = std::string(collective::to_string(kind));
  table.kind = kind;
  table.nodes = nodes;
  table.gpus_per_node = gpus;
  table.ranks = nodes * gpus;
  return table;
}

}  // namespace syncline::test
