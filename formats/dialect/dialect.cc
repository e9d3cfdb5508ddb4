#include "formats/dialect/dialect.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/collective/library.h"
#include "core/plan/pipeline.h"
#include "formats/dialect/framework_keys.h"

namespace syncline::dialect {

void refuse_unmodelled(
    Reader& config,
    std::initializer_list<std::pair<std::string_view, std::string_view>> unmodelled) {
  for (const auto& [key, what] : unmodelled) {
    const Json* value = config.find(key);
    if (value == nullptr || says_off(*value)) continue;
    config.fail(key, std::string(what) + " is not modelled yet");
  }
}

void skip_keys(Reader& config, std::initializer_list<const char*> keys) {
  for (const char* key : keys) config.find(key);
}

std::string list_given(Reader& config, std::initializer_list<const char*> keys) {
  std::string given;
  for (const char* key : keys) {
    if (config.has(key)) given += (given.empty() ? "" : ", ") + std::string(key);
  }
  return given;
}

Reader object_or_empty(Reader& config, const char* key) {
  static const Json none = Json::object();
  if (config.has(key)) return config.object(key);
  return Reader(none, config.file(), config.place_of(key));
}

void note(std::vector<std::string>& notes,
          std::initializer_list<std::pair<bool, std::string>> texts) {
  for (const auto& [holds, text] : texts) {
    if (holds) notes.push_back(text);
  }
}

namespace {

std::vector<Dialect>& table() {
  static std::vector<Dialect> rows;
  return rows;
}

}  // namespace

void hand_in(std::vector<Dialect> rows) { table() = std::move(rows); }

std::span<const Dialect> dialects() { return table(); }

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

namespace {

// Reads the configuration for each group of tensors that a framework wraps apart (parts of a model,
// experts), and puts their buckets side by side. Other settings of the first group hold for all.
Reading read_apart(const Dialect& dialect, const Reader& config, const Workload& workload,
                   const Cluster& cluster, bool as_documents) {
  Reading all;
  bool first = true;
  const auto mistakes = [&] { return config.mistakes() ? config.mistakes()->count() : 0; };
  const std::size_t before = mistakes();
  Workload own = plan::without_lists(workload);
  own.buffers = workload.buffers;
  // Readers only ask if there are operators.
  if (!workload.operators->empty()) own.operators.edit().operators.resize(1);
  for (const std::vector<int>& tensors : separate_tensors(workload)) {
    if (mistakes() > before) break;  // each part would say the same
    own.tensors.clear();
    for (const int t : tensors)
      own.tensors.push_back(workload.tensors[static_cast<std::size_t>(t)]);
    Reading part = dialect.read(config, own, cluster, as_documents);
    for (auto* groups : {&part.strategy.fusion.groups, &part.strategy.gather_groups}) {
      for (auto& group : *groups) {
        for (int& tensor : group) tensor = tensors[static_cast<std::size_t>(tensor)];
      }
    }
    if (std::exchange(first, false)) {
      all = std::move(part);
      continue;
    }
    std::ranges::move(part.strategy.fusion.groups, std::back_inserter(all.strategy.fusion.groups));
    // Groups that stay gathered come first.
    auto& groups = all.strategy.gather_groups;
    auto& own_groups = part.strategy.gather_groups;
    groups.insert(groups.begin() + all.strategy.traits.kept_groups, own_groups.begin(),
                  own_groups.begin() + part.strategy.traits.kept_groups);
    groups.insert(groups.end(), own_groups.begin() + part.strategy.traits.kept_groups,
                  own_groups.end());
    all.strategy.traits.kept_groups += part.strategy.traits.kept_groups;
    std::erase_if(all.unheld, [&](const auto& entry) { return !part.unheld.contains(entry); });
  }
  return all;
}

// Fails at the configuration's own key for groups of ranks.
[[noreturn]] void fail_at_groups(const Dialect& dialect, Reader& config, const std::string& why) {
  const auto own =
      std::ranges::find_if(dialect.group_keys, [&](const char* key) { return config.has(key); });
  config.fail(own == dialect.group_keys.end() ? "groups" : *own, why);
}

}  // namespace

void refuse_unheld(Reader& config, const Reading& reading) {
  for (const auto& [key, entry] : reading.unheld) {
    config.fail(key.c_str(),
                "names no module that has a gradient in entry " + std::to_string(entry));
  }
}

Reading reading_of(const Dialect& dialect, Reader config, const Workload& workload,
                   const Cluster& cluster, const ReadAs& as) {
  Reading reading = workload.parallel.whole_job()
                        ? read_apart(dialect, config, workload,
                                     exchanging(cluster, workload.parallel), as.as_documents)
                        : dialect.read(config, workload, cluster, as.as_documents);
  refuse_unheld(config, reading);
  Strategy& strategy = reading.strategy;
  if (const auto uneven = plan::uneven_groups(strategy, workload)) {
    fail_at_groups(dialect, config, uneven->why);
  }
  strategy.dialect = dialect.name;
  strategy.algorithm =
      as.algorithm.empty() ? std::string(collective::library_algorithm(cluster)) : as.algorithm;
  if (as.algorithm.empty() && cluster.ranks() > 1) {
    reading.notes.push_back(collective::library_words(cluster) +
                            "; \"algorithm\" next to the dialect selects another");
  }
  return reading;
}

Reading reading_of(const Dialect& dialect, const Json& config, const Workload& workload,
                   const Cluster& cluster, const ReadAs& as) {
  return reading_of(dialect, Reader(config, std::string(dialect.name), ""), workload, cluster, as);
}

}  // namespace syncline::dialect
