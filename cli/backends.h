// Backends by name. Each runs a plan on ranks; main hands in their rows. A backend's module
// (cli/modules.h) has its name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace syncline::cli {

struct BackendRow {
  std::string_view name;
  std::string_view summary;
};

// Sets the table. main calls it once.
void hand_in(std::vector<BackendRow> rows);

// Returns the table, in the order of hand_in's rows.
const std::vector<BackendRow>& backends();
std::vector<std::string> backend_names();

}  // namespace syncline::cli
