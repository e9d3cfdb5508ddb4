#include "formats/input/read_search.h"

#include <algorithm>

#include "core/collective/nccl.h"
#include "formats/input/knobs.h"
#include "formats/input/spellings.h"
#include "formats/json/reader.h"

namespace syncline::input {
namespace {

// Reads a list of values; `least` names in the message the missing items of an empty one.
template <typename V>
void read_axis(Reader& reader, const char* key, const Spelling<V>& spelling, const Setting& setting,
               std::vector<V>& values, const std::string& least = "at least one value") {
  const Json* list = reader.find(key);
  if (list == nullptr) return;
  values = list_of(spelling, least).read({*list, reader.file(), reader.place_of(key), setting});
}

// Returns the spelling of an object, or of `none` for the absence of the knob.
template <typename T>
Spelling<T> choice(const KnobTable<T>& table, const std::string& none) {
  Spelling<T> spelling = object_of(table);
  spelling.read = [read = spelling.read, none](const Entry& entry) {
    if (entry.value == none) return T{};
    if (entry.value.is_object()) return read(entry);
    entry.fail("found " + describe(entry.value) + ", expected an object or '" + none + "'");
  };
  return spelling;
}

// Returns the spelling of a hierarchy's groups. A framework's rules for them are not varied.
Spelling<Hierarchy> hierarchies() {
  const auto strategy = choice(hierarchy_knobs(), "flat");
  return {strategy.schema,
          [read = strategy.read](const Entry& entry) {
            const Strategy found = read(entry);
            if (found.traits == FrameworkTraits{}) return found.hierarchy;
            entry.fail(
                "across_stream and across_last are a framework's own: a search varies form, "
                "group_size, first, inside and across");
          },
          {}};
}

// Reads "breakpoints", or a list. Returns true for "breakpoints".
template <typename V>
bool read_breakpoints(Reader& reader, const char* key, const Spelling<V>& spelling,
                      const Setting& setting, std::vector<V>& values, const std::string& least) {
  const Json* value = reader.find(key);
  if (value == nullptr) return false;
  if (*value == "breakpoints") return true;
  if (!value->is_array()) {
    reader.fail(key, "found " + describe(*value) + ", expected 'breakpoints' or a list");
  }
  read_axis(reader, key, spelling, setting, values, least);
  return false;
}

Spelling<Fusion::Rule> rules_without_a_number() {
  std::vector<std::pair<std::string, Fusion::Rule>> spelt;
  for (const auto rule : {Fusion::Rule::kNone, Fusion::Rule::kLayer, Fusion::Rule::kOne}) {
    spelt.emplace_back(rules().write(rule), rule);
  }
  return words(spelt);
}

void read_fusion_axis(Reader reader, const Setting& setting, Search& search) {
  // An unknown key is reported before errors that its absence causes.
  for (const char* key :
       {"optimum", "size_mb", "close", "first_size_mb", "cycle_ms", "count", "rules"}) {
    reader.has(key);
  }
  reader.finish();
  search.optimum = reader.boolean_or("optimum", false);
  search.breakpoints = read_breakpoints(reader, "size_mb", mebibytes(false), setting, search.sizes,
                                        "at least one size in MiB");
  const bool by_size = search.breakpoints || !search.sizes.empty();
  for (const char* key : {"close", "first_size_mb", "cycle_ms"}) {
    if (reader.has(key) && !by_size) reader.fail(key, "has no meaning without size_mb");
  }
  read_axis(reader, "close", closes(), setting, search.closes, "at least one word");
  read_axis(reader, "first_size_mb", mebibytes(true), setting, search.first_sizes,
            "at least one size in MiB");
  read_axis(reader, "cycle_ms", milliseconds(), setting, search.cycles, "at least one time");
  const bool before = std::find(search.closes.begin(), search.closes.end(),
                                Fusion::Close::kBefore) != search.closes.end();
  if (reader.has("cycle_ms") && !before) {
    reader.fail("cycle_ms",
                "needs \"close\": [\"before\"], as what is packed at a tick never exceeds "
                "size_mb");
  }
  search.all_counts =
      read_breakpoints(reader, "count", counts(), setting, search.counts, "at least one value");
  read_axis(reader, "rules", rules_without_a_number(), setting, search.rules, "at least one word");
  if (!search.varies_fusion()) {
    reader.fail("optimum", "found false and no other rule: nothing to choose from");
  }
}

}  // namespace

Search read_search(Reader reader, const Scenario& scenario) {
  Search search;
  std::vector<std::string> names;
  for (const auto& strategy : scenario.strategies) names.push_back(strategy.name);
  search.base = reader.word_or("base", scenario.baseline, names);
  const Cluster cluster = exchanging(scenario);
  const Setting setting{scenario.workload, cluster};
  if (reader.has("fusion")) read_fusion_axis(reader.object("fusion"), setting, search);
  read_axis(reader, "streams", streams(), setting, search.streams);
  read_axis(reader, "algorithm", one_of(collective::algorithm_choices()), setting,
            search.algorithms, "at least one word");
  read_axis(reader, "hierarchy", hierarchies(), setting, search.hierarchies, "at least one choice");
  read_axis(reader, "compression", choice(compression_knobs(), "none"), setting,
            search.compressions, "at least one choice");
  read_axis(reader, "local_sgd", choice(local_sgd_knobs(), "none"), setting, search.local_sgds,
            "at least one choice");
  for (const auto& local : search.local_sgds) {
    if (local.adaptive && (!scenario.training.steps || scenario.training.loss.empty())) {
      reader.fail("local_sgd",
                  "adaptive needs training.steps, training.loss and training.learning_rate");
    }
  }
  read_axis(reader, "exchange", exchanges(), setting, search.exchanges, "at least one word");
  read_axis(reader, "cross_step", yes_or_no(), setting, search.cross_steps, "true, false or both");
  read_axis(reader, "bucket_copies", yes_or_no(), setting, search.bucket_copies,
            "true, false or both");
  read_axis(reader, "priority", priorities(), setting, search.priorities, "at least one word");
  read_axis(reader, "compute_fusion", choice(compute_fusion_knobs(), "none"), setting,
            search.compute_fusions, "at least one choice");
  if (reader.has("compute_fusion") && scenario.workload.operators->empty()) {
    reader.fail("compute_fusion", "changes nothing here: the workload has no operators");
  }
  search.confirm = static_cast<std::size_t>(reader.integer_or("confirm", 3, 0, 1000));
  reader.finish();
  return search;
}

}  // namespace syncline::input
