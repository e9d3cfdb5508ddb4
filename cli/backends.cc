#include "cli/backends.h"

#include <utility>

namespace syncline::cli {
namespace {

std::vector<BackendRow>& handed_in_backends() {
  static std::vector<BackendRow> rows;
  return rows;
}

}  // namespace

void hand_in(std::vector<BackendRow> rows) { handed_in_backends() = std::move(rows); }

const std::vector<BackendRow>& backends() { return handed_in_backends(); }

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const BackendRow& row : backends()) names.emplace_back(row.name);
  return names;
}

}  // namespace syncline::cli
