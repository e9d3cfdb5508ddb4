#include "core/dialect/dialect.h"

#include <array>

#include "core/dialect/pytorch_ddp.h"

namespace syncline {

std::span<const Dialect> dialects() {
  static const std::array table{pytorch_ddp_dialect()};
  return table;
}

const Dialect* find_dialect(std::string_view name) {
  for (const auto& dialect : dialects()) {
    if (dialect.name == name) return &dialect;
  }
  return nullptr;
}

std::vector<std::string> dialect_names() {
  std::vector<std::string> names;
  for (const auto& dialect : dialects()) names.emplace_back(dialect.name);
  return names;
}

}  // namespace syncline
