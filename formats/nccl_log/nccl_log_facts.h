// The lines of a log around its tables: devices, program, version, NCCL's environment.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "formats/nccl_log/nccl_log_parts.h"
#include "formats/nccl_log/nccl_log_words.h"

namespace syncline::calibrate {

// Reads a line about the run around a table; nullopt: it states no such fact.
std::optional<LogContext> fact_of(const Tokens& tokens, const std::string& line);

// Stores the facts about the run that the next tables belong to.
class RunFacts {
 public:
  // Forgets the previous run, unless its last table was followed by new facts.
  void begin_run();
  void take(const LogContext& fact);
  void take_settings(const StatedSettings& stated);
  // Takes a line "...", which says that a list of devices is cut off.
  void take_cut();
  void end_list() { listing_ = false; }

  // Sets a table's context.
  void begin_table(RawTable& raw);
  // Adds the settings after the last table, if it is the only one, else a note. Requires a table.
  void end_log(std::vector<RawTable>& tables) const;

 private:
  LogContext context_;
  bool fresh_ = true;                            // a new fact came since the last table began
  bool listing_ = false;                         // a list of devices has begun
  std::map<std::string, std::string> exported_;  // NCCL's environment, for all later runs
  std::map<std::string, std::string> behind_;    // settings stated since the last table began
};

}  // namespace syncline::calibrate
