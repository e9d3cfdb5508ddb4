// What a line says about the run around a table: devices, program, version, comments.
#pragma once

#include <optional>
#include <string>

#include "core/calibrate/nccl_log_parts.h"
#include "core/calibrate/nccl_log_words.h"

namespace syncline::calibrate {

struct LogFact {
  bool begins_run = false;   // the line with which a test begins
  bool begins_list = false;  // "Using devices"
  std::optional<LogDevice> device;
  std::string program;  // "all_reduce"
  std::string version;
  std::string said_test;  // of comments above a published table, as in the four below
  int said_nodes = 0;
  int said_gpus = 0;
  std::string said_version;
};

// The line's fact, or nothing.
std::optional<LogFact> fact_of(const Tokens& tokens, const std::string& line);

}  // namespace syncline::calibrate
