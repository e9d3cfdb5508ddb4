#include "cli/backends.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace syncline::cli {
namespace {

std::vector<Backend>& handed_in_backends() {
  static std::vector<Backend> rows;
  return rows;
}

}  // namespace

void hand_in(std::vector<Backend> rows) { handed_in_backends() = std::move(rows); }

const std::vector<Backend>& backends() { return handed_in_backends(); }

const Backend& backend_named(std::string_view name) {
  const auto row = std::ranges::find(backends(), name, &Backend::name);
  assert(row != backends().end() && "the option's check lets known names through alone");
  return *row;
}

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const Backend& row : backends()) names.emplace_back(row.name);
  return names;
}

}  // namespace syncline::cli
