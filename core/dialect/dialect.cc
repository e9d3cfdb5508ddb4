#include "core/dialect/dialect.h"

#include <array>
#include <nlohmann/json.hpp>

#include "core/dialect/horovod.h"
#include "core/dialect/mindspore.h"
#include "core/dialect/paddle.h"
#include "core/dialect/pytorch_ddp.h"

namespace syncline::dialect {

std::span<const Dialect> dialects() {
  static const std::array table{paddle_dialect(), paddle_dygraph_dialect(), mindspore_dialect(),
                                pytorch_ddp_dialect(), horovod_dialect()};
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

std::vector<std::string> written_dialect_names() {
  std::vector<std::string> names;
  for (const auto& dialect : dialects()) {
    if (dialect.suggest != nullptr) names.emplace_back(dialect.name);
  }
  return names;
}

Json least_config(const Dialect& dialect) {
  return dialect.least != nullptr ? dialect.least() : Json::object();
}

Reading reading_of(const Dialect& dialect, const Json& config, const Workload& workload,
                   const Cluster& cluster) {
  return dialect.read(Reader(config, std::string(dialect.name), ""), workload, cluster, false);
}

}  // namespace syncline::dialect
