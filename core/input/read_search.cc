#include "core/input/parts.h"

#include <algorithm>

#include "core/collective/algorithm.h"
#include "core/error.h"
#include "core/json/reader.h"

namespace syncline {
namespace {

constexpr double kMostMebibytes = 1e9;

std::vector<Bytes> read_sizes(Reader& reader, const char* key, bool zero_allowed) {
  std::vector<Bytes> sizes;
  const Json& list = reader.array(key);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string place = reader.place_of(key) + "[" + std::to_string(i) + "]";
    const double value =
        checked_number(list[i], {0, kMostMebibytes, !zero_allowed}, reader.file(), place);
    sizes.push_back(static_cast<Bytes>(value * static_cast<double>(kMiB)));
  }
  if (sizes.empty()) reader.fail(key, "empty, expected at least one size in MiB");
  return sizes;
}

std::vector<std::int64_t> read_integers(Reader& reader, const char* key, std::int64_t most) {
  std::vector<std::int64_t> values;
  const Json& list = reader.array(key);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string place = reader.place_of(key) + "[" + std::to_string(i) + "]";
    values.push_back(checked_integer(list[i], 1, most, reader.file(), place));
  }
  if (values.empty()) reader.fail(key, "empty, expected at least one value");
  return values;
}

[[noreturn]] void fail_at(const Reader& reader, const std::string& place, const std::string& what) {
  throw InputError(reader.file() + ": " + place + ": " + what);
}

std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::vector<std::string> read_words(Reader& reader, const char* key,
                                    const std::vector<std::string>& allowed) {
  std::vector<std::string> words;
  const Json& list = reader.array(key);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string word = list[i].is_string() ? list[i].get<std::string>() : "";
    if (std::find(allowed.begin(), allowed.end(), word) == allowed.end()) {
      fail_at(reader, reader.place_of(key) + "[" + std::to_string(i) + "]",
              "found " + describe(list[i]) + ", expected one of " + listed(allowed) +
                  did_you_mean(word, allowed));
    }
    words.push_back(word);
  }
  if (words.empty()) reader.fail(key, "empty, expected at least one word");
  return words;
}

// "breakpoints", or a list.
bool all_breakpoints(Reader& reader, const char* key) {
  const Json* value = reader.find(key);
  if (value == nullptr || value->is_array()) return false;
  if (*value == "breakpoints") return true;
  reader.fail(key, "found " + describe(*value) + ", expected 'breakpoints' or a list");
}

std::vector<Seconds> read_cycles(Reader& reader) {
  constexpr double kMostMilliseconds = 1e6;
  std::vector<Seconds> cycles;
  const Json& list = reader.array("cycle_ms");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string place = reader.place_of("cycle_ms") + "[" + std::to_string(i) + "]";
    cycles.push_back(checked_number(list[i], {0, kMostMilliseconds}, reader.file(), place) *
                     kMillisecond);
  }
  if (cycles.empty()) reader.fail("cycle_ms", "empty, expected at least one time");
  return cycles;
}

void read_fusion_axis(Reader reader, Search& search) {
  // An unknown key is told before what its absence makes of the others.
  for (const char* key :
       {"optimum", "size_mb", "close", "first_size_mb", "cycle_ms", "count", "rules"}) {
    reader.has(key);
  }
  reader.finish();
  search.optimum = reader.boolean_or("optimum", false);
  search.breakpoints = all_breakpoints(reader, "size_mb");
  if (reader.has("size_mb") && !search.breakpoints) {
    search.sizes = read_sizes(reader, "size_mb", false);
  }
  const bool by_size = search.breakpoints || !search.sizes.empty();
  for (const char* key : {"close", "first_size_mb", "cycle_ms"}) {
    if (reader.has(key) && !by_size) reader.fail(key, "has no meaning without size_mb");
  }
  if (reader.has("close")) {
    search.closes.clear();
    for (const auto& word : read_words(reader, "close", {"after", "before"})) {
      search.closes.push_back(word == "before" ? Fusion::Close::kBefore : Fusion::Close::kAfter);
    }
  }
  if (reader.has("first_size_mb")) search.first_sizes = read_sizes(reader, "first_size_mb", true);
  if (reader.has("cycle_ms")) {
    search.cycles = read_cycles(reader);
    const bool before = std::find(search.closes.begin(), search.closes.end(),
                                  Fusion::Close::kBefore) != search.closes.end();
    if (!before) {
      reader.fail("cycle_ms",
                  "needs \"close\": [\"before\"], as what is packed at a tick never exceeds "
                  "size_mb");
    }
  }
  search.all_counts = all_breakpoints(reader, "count");
  if (reader.has("count") && !search.all_counts) {
    search.counts = read_integers(reader, "count", std::int64_t{1} << 40);
  }
  if (reader.has("rules")) {
    for (const auto& word : read_words(reader, "rules", {"none", "layer", "one"})) {
      search.rules.push_back(word == "none"    ? Fusion::Rule::kNone
                             : word == "layer" ? Fusion::Rule::kLayer
                                               : Fusion::Rule::kOne);
    }
  }
  if (!search.varies_fusion()) {
    reader.fail("optimum", "found false and no other rule: nothing to choose from");
  }
}

// A list whose members are objects, or "none" for the absence of the knob.
template <typename Value, typename Read>
std::vector<Value> read_choices(Reader& reader, const char* key, const char* none, Read read) {
  std::vector<Value> values;
  const Json& list = reader.array(key);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string place = reader.place_of(key) + "[" + std::to_string(i) + "]";
    if (list[i] == none) {
      values.emplace_back();
    } else if (list[i].is_object()) {
      values.push_back(read(Reader(list[i], reader.file(), place)));
    } else {
      fail_at(reader, place,
              "found " + describe(list[i]) + ", expected an object or '" + none + "'");
    }
  }
  if (values.empty()) reader.fail(key, "empty, expected at least one choice");
  return values;
}

// Whether steps overlap, and how exchanges are split and ordered for it.
void read_schedule_axes(Reader& reader, Search& search) {
  if (reader.has("exchange")) {
    for (const auto& word :
         read_words(reader, "exchange", {"all_reduce", "decoupled", "sharded"})) {
      search.exchanges.push_back(word == "decoupled" ? Strategy::Exchange::kDecoupled
                                 : word == "sharded" ? Strategy::Exchange::kSharded
                                                     : Strategy::Exchange::kAllReduce);
    }
  }
  if (reader.has("cross_step")) {
    const Json& list = reader.array("cross_step");
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (!list[i].is_boolean()) {
        fail_at(reader, reader.place_of("cross_step") + "[" + std::to_string(i) + "]",
                "found " + describe(list[i]) + ", expected true or false");
      }
      search.cross_steps.push_back(list[i].get<bool>());
    }
    if (list.empty()) reader.fail("cross_step", "empty, expected true, false or both");
  }
  if (reader.has("priority")) {
    for (const auto& word : read_words(reader, "priority", {"ready", "layer"})) {
      search.priorities.push_back(word == "layer" ? Strategy::Priority::kLayer
                                                  : Strategy::Priority::kReady);
    }
  }
}

std::vector<std::string> algorithm_words() {
  std::vector<std::string> words;
  for (const auto& algorithm : algorithms()) words.emplace_back(algorithm.name);
  return words;
}

}  // namespace

Search read_search(Reader reader, const Scenario& scenario) {
  Search search;
  std::vector<std::string> names;
  for (const auto& strategy : scenario.strategies) names.push_back(strategy.name);
  search.base = reader.word_or("base", scenario.baseline, names);
  if (reader.has("fusion")) read_fusion_axis(reader.object("fusion"), search);
  if (reader.has("streams")) {
    for (const std::int64_t streams : read_integers(reader, "streams", 64)) {
      search.streams.push_back(static_cast<int>(streams));
    }
  }
  if (reader.has("algorithm")) {
    search.algorithms = read_words(reader, "algorithm", algorithm_words());
  }
  if (reader.has("hierarchy")) {
    search.hierarchies = read_choices<Hierarchy>(reader, "hierarchy", "flat", [&](Reader item) {
      return read_hierarchy(std::move(item), scenario.cluster);
    });
  }
  if (reader.has("compression")) {
    search.compressions = read_choices<Compression>(reader, "compression", "none", [](Reader item) {
      return read_compression(std::move(item));
    });
  }
  if (reader.has("local_sgd")) {
    search.local_sgds = read_choices<LocalSgd>(reader, "local_sgd", "none", [&](Reader item) {
      return read_local_sgd(std::move(item), scenario.cluster.ranks());
    });
  }
  for (const auto& local : search.local_sgds) {
    if (local.adaptive && (!scenario.training.steps || scenario.training.loss.empty())) {
      reader.fail("local_sgd",
                  "adaptive needs training.steps, training.loss and training.learning_rate");
    }
  }
  read_schedule_axes(reader, search);
  if (reader.has("compute_fusion")) {
    search.compute_fusions = read_choices<ComputeFusion>(
        reader, "compute_fusion", "none",
        [](Reader item) { return read_compute_fusion(std::move(item)); });
    if (scenario.workload.operators.empty()) {
      reader.fail("compute_fusion", "changes nothing here: the workload has no operators");
    }
  }
  search.confirm = static_cast<std::size_t>(reader.integer_or("confirm", 3, 0, 1000));
  reader.finish();
  return search;
}

}  // namespace syncline
