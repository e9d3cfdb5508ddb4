#include "studies/rows/fitting.h"

#include <algorithm>
#include <array>
#include <utility>

#include <nlohmann/json.hpp>

#include "catalogue/architectures/architecture.h"
#include "core/base/error.h"
#include "formats/input/conflicts.h"

namespace syncline::measure {
namespace {

using Again = Workload::Recompute;

constexpr std::array<std::pair<Again, const char*>, 4> kRecomputes{
    {{Again::kNone, "none"},
     {Again::kSelective, "selective"},
     {Again::kProducts, "products"},
     {Again::kFull, "full"}}};

const Json& entry_of(const input::Document& document, const std::string& name) {
  const Json& entries = document.root.at("strategies");
  return *std::ranges::find_if(entries,
                               [&](const Json& entry) { return entry.value("name", "") == name; });
}

std::string count_words(std::int64_t count, const std::string& one) {
  return std::to_string(count) + " " + one + (count == 1 ? "" : "s");
}

// Returns the document's job without its search or sweep.
input::Document job_alone(input::Document document) {
  for (const char* key : {"sweep", "published", "calibration", "search"}) document.root.erase(key);
  return document;
}

void set_batches(std::int64_t batch, std::int64_t micro_batches, Json& entries) {
  for (Json& entry : entries) {
    if (!entry.contains("config")) continue;
    dialect::set_batches(entry.value("dialect", ""), batch, micro_batches, entry["config"]);
  }
}

// Tries changes one by one, and keeps the first that fits, else the one with the least memory.
class FitSearch {
 public:
  FitSearch(const input::Document& document, const Freedom& may, std::string_view dialect)
      : document_(job_alone(document)),
        may_(may),
        scenario_(input::parse_scenario(document_)),
        written_(entry_of(document_, scenario_.baseline)),
        dialect_(dialect) {
    if (!dialect_.empty() && written_.value("dialect", "") != dialect_) {
      written_ = {{"dialect", dialect_}, {"config", nullptr}};
    }
  }

  Remedy found() {
    if (try_all(scenario_, Json::object(), {}, scenario_.strategies) || try_smaller_batches() ||
        try_layouts()) {
      return std::move(best_);
    }
    if (narrow_) return std::move(*narrow_);
    best_.elsewhere = fits_elsewhere();
    return std::move(best_);
  }

 private:
  // Returns true if a strategy fits with the present recomputation, or with more.
  bool try_all(Scenario scenario, const Json& workload, const std::vector<std::string>& changes,
               const std::vector<Strategy>& own) {
    std::vector<ReadScheme> schemes;
    if (scenario.cluster.ranks() > 1) schemes = schemes_of(scenario, written_);
    const Again least = scenario.workload.recompute;
    for (const auto& [recompute, word] : kRecomputes) {
      if (recompute < least || (recompute > least && !may_.recompute)) continue;
      // Only torchtitan has it, and its settings say so.
      if (recompute == Again::kProducts && recompute != least) continue;
      scenario.workload.recompute = recompute;
      Json keys = workload;
      std::vector<std::string> all_changes = changes;
      if (recompute > least) {
        keys["activation_checkpointing"] = word;
        all_changes.insert(all_changes.begin(), std::string(word) + " recomputation");
      }
      if (take(scenario, keys, all_changes, own, schemes)) return true;
    }
    if (scenario.workload.recompute_every == 1 || !may_.recompute) return false;
    scenario.workload.recompute_every = 1;
    Json keys = workload;
    keys["checkpointing_every"] = 1;
    std::vector<std::string> all_changes = changes;
    all_changes.insert(all_changes.begin(), "recomputation of every layer");
    return take(scenario, keys, all_changes, own, schemes);
  }

  // Keeps the strategies that fit with room to spare. Otherwise keeps those that fit without it, or
  // the one with the least memory, among all so far.
  bool take(const Scenario& scenario, const Json& workload, const std::vector<std::string>& changes,
            const std::vector<Strategy>& own, const std::vector<ReadScheme>& schemes) {
    Remedy roomy, narrow;
    const auto put = [&](const dialect::Scheme& scheme, bool is_own, const Memory& memory,
                         Remedy& into) {
      if (into.schemes.empty()) into = {workload, {}, changes, is_own, memory, memory.fits()};
      into.schemes.push_back(scheme);
    };
    const auto add = [&](const dialect::Scheme& scheme, const Strategy& strategy, bool is_own) {
      const Memory memory = memory_of(scenario, strategy);
      const bool easily = memory.fits() && !memory.may_not_fit();
      if (easily) put(scheme, is_own, memory, roomy);
      if (memory.fits()) put(scheme, is_own, memory, narrow);
      const bool least = best_.schemes.empty() || memory.total() < best_.memory.total();
      if (least) best_ = {workload, {scheme}, changes, is_own, memory, memory.fits()};
    };
    for (const Strategy& strategy : own) {
      if (!asked(strategy.dialect)) continue;
      const Json& entry = entry_of(document_, strategy.name);
      add({strategy.name, entry.value("dialect", ""), entry.value("config", Json())}, strategy,
          true);
    }
    for (const ReadScheme& each : schemes) {
      if (asked(each.scheme.dialect)) add(each.scheme, each.strategy, false);
    }
    if (!narrow_ && !narrow.schemes.empty()) narrow_ = std::move(narrow);
    if (roomy.schemes.empty()) return false;
    best_ = std::move(roomy);
    return true;
  }

  // Returns the scheme that fits on the fewest of more nodes, in powers of two, with the remedy's
  // changes of the workload.
  std::string fits_elsewhere() const {
    constexpr int kMostTimes = 64;
    if (best_.schemes.empty() || scenario_.cluster.topology != nullptr) return {};
    input::Document document = document_;
    document.root["workload"].merge_patch(best_.workload);
    document.root["strategies"] = Json::array({Json{{"name", "own"}}});
    document.root.erase("baseline");
    Json& cluster = document.root["cluster"];
    // Any link between nodes will do: it changes no memory.
    if (!cluster.contains("inter") && !cluster.contains("node")) {
      cluster["inter"] = {{"latency_us", 1}, {"bandwidth_gbps", 1}};
    }
    for (int times = 2; times <= kMostTimes; times *= 2) {
      cluster["nodes"] = scenario_.cluster.nodes * times;
      try {
        const Scenario larger = input::parse_scenario(document);
        for (const ReadScheme& each : schemes_of(larger, best_.schemes.front().entry())) {
          const Memory memory = memory_of(larger, each.strategy);
          if (!asked(each.scheme.dialect) || !memory.fits() || memory.may_not_fit()) continue;
          return "'" + each.scheme.name + "' fits on " + std::to_string(larger.cluster.nodes) +
                 " such nodes";
        }
      } catch (const InputError&) {
        return {};
      }
    }
    return {};
  }

  bool asked(const std::string& dialect) const { return dialect_.empty() || dialect == dialect_; }

  // Tries smaller divisors of a micro-batch's samples, if the workload has operators.
  bool try_smaller_batches() {
    const Workload& workload = scenario_.workload;
    if (!may_.batch || workload.operators->empty()) return false;
    for (std::int64_t batch = workload.batch - 1; batch > 0; --batch) {
      if (workload.batch % batch != 0) continue;
      const std::int64_t count = workload.micro_batches * (workload.batch / batch);
      const Json keys{{"batch", batch}, {"micro_batches", count}};
      const std::string words = "micro-batches of " + count_words(batch, "sample") + ", " +
                                std::to_string(count) + " per step";
      if (try_with(keys, {words}, true)) return true;
    }
    return false;
  }

  // Cuts the layers over a node's GPUs, and the model over nodes, by a framework that cuts jobs.
  bool try_layouts() {
    const Json& workload = document_.root.at("workload");
    const Json operators = workload.value("operators", Json::object());
    const auto* row = operators::find_architecture(operators.value("architecture", ""));
    const Cluster& cluster = scenario_.cluster;
    if (!may_.layout || row == nullptr || row->images || cluster.ranks() == 1) return false;
    const Parallel& now = scenario_.workload.parallel;
    const std::string_view cutting = dialect::framework_of_cut_jobs();
    if (cutting.empty() || (!dialect_.empty() && dialect_ != cutting)) return false;
    if (!now.whole_job()) {
      written_ = dialect::schemes_of_framework(cutting, nullptr, scenario_.workload, cluster)
                     .front()
                     .entry();
    }
    const std::int64_t samples =
        samples_of(scenario_.workload) * (cluster.ranks() / now.model_ranks());
    for (int pipeline = now.pipeline; pipeline <= cluster.nodes * now.pipeline; pipeline *= 2) {
      for (int tensor = now.tensor; tensor <= cluster.gpus_per_node; tensor *= 2) {
        if (tensor * pipeline <= now.tensor * now.pipeline) continue;
        if (try_layout(tensor, pipeline, samples)) return true;
      }
    }
    return false;
  }

  // Tries tensor and pipeline parallelism of these sizes. Returns true if a scheme fits with them.
  bool try_layout(int tensor, int pipeline, std::int64_t samples) {
    const Parallel& now = scenario_.workload.parallel;
    const int ranks = scenario_.cluster.ranks();
    const int cut = now.model_ranks() / now.tensor / now.pipeline * tensor * pipeline;
    if (ranks % cut != 0 || samples % (ranks / cut) != 0) return false;
    Json keys{{"batch", 1},
              {"micro_batches", samples / (ranks / cut)},
              {"parallel", Json::object()},
              {"operators", {{"autocast", nullptr}, {"eager", nullptr}}}};
    std::vector<std::string> words;
    if (tensor > 1) {
      keys["parallel"].update(Json{{"tensor", tensor}, {"sequence", true}});
      words.push_back("tensor parallelism over " + std::to_string(tensor) + " GPUs");
    }
    if (pipeline > 1) {
      keys["parallel"]["pipeline"] = pipeline;
      words.push_back(std::to_string(pipeline) + " pipeline stages");
    }
    return try_with(keys, words, now.whole_job());
  }

  // Tries other keys of the workload, which the model or the framework may refuse. `own`: also
  // tries the job's strategies.
  bool try_with(const Json& keys, const std::vector<std::string>& words, bool own) {
    input::Document document = document_;
    Remedy change;
    change.workload = keys;
    apply(change, document);
    if (!own) {
      Json entry = written_;
      entry["name"] = scenario_.baseline;
      document.root["strategies"] = Json::array({entry});
    }
    try {
      const Scenario scenario = input::parse_scenario(document);
      return try_all(scenario, keys, words, own ? scenario.strategies : std::vector<Strategy>{});
    } catch (const InputError&) {
      return false;
    }
  }

  input::Document document_;
  Freedom may_;
  Scenario scenario_;
  Json written_;         // the baseline, or empty settings of the requested framework
  std::string dialect_;  // empty: any of the baseline's framework
  Remedy best_;
  std::optional<Remedy> narrow_;  // the first that fits without room to spare
};

// Returns "--set workload.batch=1 --set ...": the keys of a remedy as options.
std::string options_of(const Json& keys, const std::string& path) {
  std::string text;
  for (const auto& [key, value] : keys.items()) {
    const std::string place = path + "." + key;
    const std::string more =
        value.is_object() ? options_of(value, place)
                          : "--set " + place + "=" +
                                (value.is_string() ? value.get<std::string>() : value.dump());
    text += (text.empty() || more.empty() ? "" : " ") + more;
  }
  return text;
}

}  // namespace

std::string Remedy::words_of(const std::string& scheme) const {
  std::string text = "'" + scheme + "'";
  for (const std::string& change : changes) {
    text += (&change == &changes.front() ? " with " : " and ") + change;
  }
  return text;
}

std::string Remedy::how(const std::string& file) const {
  if (workload.contains("parallel")) {
    const Json& parallel = workload["parallel"];
    const std::string again = workload.value("activation_checkpointing", "");
    return "syncline init with --tp " + std::to_string(parallel.value("tensor", 1)) + " --pp " +
           std::to_string(parallel.value("pipeline", 1)) +
           (again.empty() ? "" : " --recompute=" + again);
  }
  const std::string options = options_of(workload, "workload");
  if (own) return options;
  return "syncline tune " + (file.empty() ? "FILE" : file) +
         (options.empty() ? "" : " " + options) + " --emit " + schemes.front().dialect;
}

std::vector<ReadScheme> schemes_of(const Scenario& scenario, const Json& written) {
  const Workload& workload = scenario.workload;
  std::string own = written.value("dialect", "");
  if (own.empty() && workload.parallel.whole_job()) own = dialect::framework_of_cut_jobs();
  std::vector<ReadScheme> read;
  for (auto& scheme : dialect::schemes_of_framework(own, written.value("config", Json()), workload,
                                                    scenario.cluster)) {
    const dialect::Dialect* dialect = dialect::find_dialect(scheme.dialect);
    if (dialect == nullptr) continue;
    dialect::set_batches(scheme.dialect, workload.batch, workload.micro_batches, scheme.config);
    try {
      Strategy strategy =
          dialect::reading_of(*dialect, scheme.config, workload, scenario.cluster).strategy;
      if (input::whole_job_conflict(strategy, workload)) continue;
      strategy.name = scheme.name;
      read.push_back({std::move(scheme), std::move(strategy)});
    } catch (const InputError&) {
      // The framework has no such scheme for this job.
    }
  }
  return read;
}

Remedy remedy_of(const input::Document& document, const Freedom& may, std::string_view dialect) {
  return FitSearch(document, may, dialect).found();
}

void apply(const Remedy& remedy, input::Document& document) {
  Json& workload = document.root["workload"];
  workload.merge_patch(remedy.workload);
  if (!remedy.workload.contains("batch")) return;
  set_batches(remedy.workload["batch"], remedy.workload["micro_batches"],
              document.root["strategies"]);
}

MemoryLack memory_lack(const Scenario& scenario) {
  std::vector<const Strategy*> large;
  const Strategy* small = nullptr;
  for (const Strategy& strategy : scenario.strategies) {
    if (!memory_of(scenario, strategy).fits()) {
      const bool first = strategy.name == scenario.baseline;
      large.insert(first ? large.begin() : large.end(), &strategy);
    } else if (small == nullptr) {
      small = &strategy;
    }
  }
  MemoryLack lack;
  if (large.empty()) return lack;
  lack.large = "'" + large.front()->name + "' " +
               memory_needs(scenario, memory_of(scenario, *large.front()));
  if (large.size() > 1) lack.others = "; so do " + std::to_string(large.size() - 1) + " more";
  if (small == nullptr) return lack;
  lack.some_fit = true;
  lack.fits = "'" + small->name + "' needs " + gigabytes(memory_of(scenario, *small).total()) +
              " GB and fits";
  return lack;
}

std::string remedy_words(const Remedy& remedy, const std::string& file) {
  if (remedy.schemes.empty()) return "";  // the framework has no scheme of its own
  const std::string text = remedy.words() + " needs " + gigabytes(remedy.memory.total()) + " GB";
  const bool barely = remedy.fits && remedy.memory.may_not_fit();
  if (remedy.fits) return text + (barely ? " and may fit: " : " and fits: ") + remedy.how(file);
  return text + ", the least of all that was tried, and does not fit either" +
         (remedy.elsewhere.empty() ? "" : ": " + remedy.elsewhere);
}

MemoryLack memory_shortage(const input::Document& document, const Scenario& scenario,
                           std::string_view dialect) {
  MemoryLack lack = memory_lack(scenario);
  if (lack.empty() || lack.some_fit) return lack;
  lack.fits = remedy_words(remedy_of(document, {}, dialect), document.file);
  return lack;
}

}  // namespace syncline::measure
