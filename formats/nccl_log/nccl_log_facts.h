// The lines of a log around its tables: devices, program, version, NCCL's environment.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "formats/nccl_log/nccl_log_parts.h"
#include "formats/nccl_log/nccl_log_words.h"

namespace syncline::calibrate {

// Reads a line as one about the run around a table; nothing: it says nothing about it.
std::optional<LogContext> fact_of(const Tokens& tokens, const std::string& line);

// Owns what has been said about the run whose tables come next.
class RunFacts {
 public:
  // Forgets the run before, unless something was said since its last table began.
  void begin_run();
  void take(const LogContext& fact);
  void take_settings(const StatedSettings& stated);
  // Takes a line "..." which, in a list of devices, says that it is cut off.
  void take_cut();
  void end_list() { listing_ = false; }

  // Gives a table its context.
  void begin_table(RawTable& raw);
  // Gives the last table what was stated behind it: a lone table is its run. Requires a table.
  void end_log(std::vector<RawTable>& tables) const;

 private:
  LogContext context_;
  bool fresh_ = true;                            // something was said since the last table began
  bool listing_ = false;                         // a list of devices has begun
  std::map<std::string, std::string> exported_;  // NCCL's environment, of all runs from here on
  std::map<std::string, std::string> behind_;    // stated since the last table began
};

}  // namespace syncline::calibrate
