#include "core/dialect/dialect.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/collective/library.h"
#include "core/dialect/deepspeed.h"
#include "core/dialect/fsdp.h"
#include "core/dialect/hf_trainer.h"
#include "core/dialect/horovod.h"
#include "core/dialect/megatron.h"
#include "core/dialect/mindspore.h"
#include "core/dialect/paddle.h"
#include "core/dialect/pytorch_ddp.h"

namespace syncline::dialect {
namespace {

bool says_off(const Json& value) {
  if (value.is_structured()) return std::all_of(value.begin(), value.end(), says_off);
  if (value.is_number()) return value <= 1;
  return value.is_null() || value == false || value == "" || value == "none" || value == "auto";
}

}  // namespace

void refuse_unmodelled(
    Reader& config,
    std::initializer_list<std::pair<std::string_view, std::string_view>> unmodelled) {
  for (const auto& [key, what] : unmodelled) {
    const Json* value = config.find(key);
    if (value == nullptr || says_off(*value)) continue;
    config.fail(key, std::string(what) + " is not modelled yet");
  }
}

std::span<const Dialect> dialects() {
  static const std::array table{
      paddle_dialect(),      paddle_dygraph_dialect(), mindspore_dialect(),
      pytorch_ddp_dialect(), horovod_dialect(),        megatron_dialect(),
      deepspeed_dialect(),   hf_trainer_dialect(),     fsdp_dialect()};
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

Reading reading_of(const Dialect& dialect, Reader config, const Workload& workload,
                   const Cluster& cluster, const ReadAs& as) {
  Reading reading = dialect.read(std::move(config), workload, cluster, as.as_documents);
  Strategy& strategy = reading.strategy;
  strategy.dialect = dialect.name;
  strategy.algorithm =
      as.algorithm.empty() ? std::string(collective::library_algorithm(cluster)) : as.algorithm;
  if (as.algorithm.empty() && cluster.ranks() > 1) {
    reading.notes.push_back("collectives: " + collective::library_words(cluster) +
                            " (\"algorithm\" beside the dialect names another)");
  }
  return reading;
}

Reading reading_of(const Dialect& dialect, const Json& config, const Workload& workload,
                   const Cluster& cluster, const ReadAs& as) {
  return reading_of(dialect, Reader(config, std::string(dialect.name), ""), workload, cluster, as);
}

}  // namespace syncline::dialect
