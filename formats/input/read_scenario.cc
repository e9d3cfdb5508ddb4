#include <algorithm>
#include <filesystem>
#include <unordered_set>

#include "core/base/error.h"
#include "core/fabric/topology.h"
#include "formats/input/document.h"
#include "formats/input/read_cluster.h"
#include "formats/input/read_fabric.h"
#include "formats/input/read_search.h"
#include "formats/input/read_strategy.h"
#include "formats/input/read_workload.h"
#include "formats/input/spellings.h"
#include "formats/json/reader.h"
#include "formats/json/text.h"

namespace syncline::input {
namespace {

constexpr std::size_t kMaxPoints = 1000000;

Training::LearningRate read_learning_rate(Reader reader) {
  using Decay = Training::LearningRate::Decay;
  Training::LearningRate rate;
  rate.initial = reader.number_or("initial", 0.1, {0, 1e6, true});
  const std::string decay =
      reader.word_or("decay", "constant", {"constant", "polynomial", "cosine"});
  if (decay == "polynomial") rate.decay = Decay::kPolynomial;
  if (decay == "cosine") rate.decay = Decay::kCosine;
  rate.power = reader.number_or("power", 1, {0, 100, true});
  rate.final = reader.number_or("final", 0, {0, 1e6});
  rate.warmup = reader.integer_or("warmup_steps", 0, 0, kMaxSteps);
  if (reader.has("steps")) rate.steps = reader.integer("steps", 1, kMaxSteps);
  reader.finish();
  return rate;
}

Training read_training(Reader reader) {
  Training training;
  if (reader.has("step")) training.step = reader.integer("step", 0, kMaxSteps);
  training.from = reader.integer_or("from", 0, 0, kMaxSteps);
  if (reader.has("steps")) training.steps = reader.integer("steps", 1, kMaxSteps);
  if (training.step && training.steps) {
    reader.fail("steps", "cannot be combined with step: predict one step or a run of steps");
  }
  if (reader.has("learning_rate")) {
    training.learning_rate = read_learning_rate(reader.object("learning_rate"));
  }
  if (reader.has("loss")) {
    for (const Json& point : reader.array("loss")) {
      if (!point.is_array() || point.size() != 2) {
        reader.fail("loss", "found " + describe(point) + ", expected pairs [step, value]");
      }
      const std::string place = reader.place_of("loss");
      const double step = checked_number(point[0], {0, 1e12}, reader.file(), place);
      if (!training.loss.empty() && step <= training.loss.back().first) {
        reader.fail("loss", "expected rising steps");
      }
      training.loss.emplace_back(step,
                                 checked_number(point[1], {0, 1e12, true}, reader.file(), place));
    }
  }
  reader.finish();
  return training;
}

std::vector<std::pair<std::string, std::vector<Json>>> read_sweep(Reader reader) {
  std::vector<std::pair<std::string, std::vector<Json>>> sweep;
  std::size_t points = 1;
  // Axes with one value vary nothing, and each one costs another reading of the scenario.
  constexpr std::size_t kMaxAxes = 64;
  if (reader.json().size() > kMaxAxes) {
    throw InputError(reader.file() + ": " + reader.place() + ": found " +
                     std::to_string(reader.json().size()) + " keys, expected at most " +
                     std::to_string(kMaxAxes));
  }
  for (const auto& [path, values] : reader.json().items()) {
    if (!values.is_array() || values.empty()) {
      reader.fail(path, "found " + (values.is_array() ? "an empty list" : describe(values)) +
                            ", expected a list of values");
    }
    points *= values.size();
    if (points > kMaxPoints) reader.fail(path, "more than a million sweep points");
    sweep.emplace_back(path, std::vector<Json>(values.begin(), values.end()));
  }
  return sweep;
}

Published read_published(Reader& reader, const Scenario& scenario) {
  Published row;
  row.strategy = reader.text("strategy");
  std::vector<std::string> names;
  for (const auto& strategy : scenario.strategies) names.push_back(strategy.name);
  if (std::find(names.begin(), names.end(), row.strategy) == names.end()) {
    std::string known;
    for (const auto& name : names) known += (known.empty() ? "" : ", ") + name;
    reader.fail("strategy", "found '" + row.strategy + "', expected one of " + known +
                                did_you_mean(row.strategy, names));
  }
  if (reader.has("sweep")) {
    Reader sweep = reader.object("sweep");
    for (const auto& [path, value] : sweep.json().items()) {
      const auto axis = std::find_if(scenario.sweep.begin(), scenario.sweep.end(),
                                     [&path = path](const auto& a) { return a.first == path; });
      if (axis == scenario.sweep.end()) reader.fail("sweep", "'" + path + "' is not swept");
      // A whole workload or cluster is long: its name is enough.
      const auto swept = std::find_if(
          axis->second.begin(), axis->second.end(), [&value = value](const Json& candidate) {
            return candidate == value || (candidate.is_object() && value.is_string() &&
                                          plain_text(candidate) == value.get<std::string>());
          });
      if (swept == axis->second.end()) {
        reader.fail("sweep", path + " never takes the value " + describe(value));
      }
      row.sweep.emplace_back(path, *swept);
    }
  }
  const Reader::Limits positive{0, 1e15, true};
  if (reader.has("step_time_s")) row.step_time = reader.number("step_time_s", positive);
  if (reader.has("throughput")) row.throughput = reader.number("throughput", positive);
  if (reader.has("speedup")) row.speedup = reader.number("speedup", positive);
  if (reader.has("collectives")) row.collectives = reader.integer("collectives", 0, 1 << 30);
  if (reader.has("accuracy")) row.accuracy = reader.number("accuracy", {-1e9, 1e9});
  if (reader.has("buckets")) {
    for (const Json& bucket : reader.array("buckets")) {
      if (!bucket.is_array() || bucket.size() != 2) {
        reader.fail("buckets", "expected pairs [tensors, MiB]");
      }
      row.buckets.emplace_back(
          checked_integer(bucket[0], 1, 1 << 30, reader.file(), reader.place_of("buckets")),
          checked_number(bucket[1], {0, 1e9}, reader.file(), reader.place_of("buckets")));
    }
  }
  row.calibrated = reader.word_or("use", "predicted", {"calibrated", "predicted"}) == "calibrated";
  row.source = reader.text_or("source", "");
  row.note = reader.text_or("note", "");
  reader.finish();
  return row;
}

Calibration read_calibration(Reader reader, const Scenario& scenario) {
  Calibration calibration;
  const Reader parameters = reader.object("parameters");
  for (const auto& [path, ranges] : parameters.json().items()) {
    Reader item(ranges, parameters.file(), parameters.place_of(path), parameters.mistakes());
    Calibration::Parameter parameter;
    parameter.path = path;
    parameter.min = item.number("min", {0, 1e15});
    parameter.max = item.number("max", {parameter.min, 1e15, true});
    parameter.start = item.number("start", {parameter.min, parameter.max});
    item.finish();
    calibration.parameters.push_back(parameter);
  }
  if (calibration.parameters.empty()) reader.fail("parameters", "empty");
  std::vector<std::string> axes;
  for (const auto& [path, values] : scenario.sweep) axes.push_back(path);
  if (reader.has("each")) {
    for (const Json& path : reader.array("each")) {
      if (!path.is_string() ||
          std::find(axes.begin(), axes.end(), path.get<std::string>()) == axes.end()) {
        reader.fail("each", "found " + describe(path) + ", expected keys of the sweep");
      }
      calibration.each.push_back(path.get<std::string>());
    }
  }
  std::vector<std::string> words{"none", "row"};
  words.insert(words.end(), axes.begin(), axes.end());
  const std::string word = reader.word_or("leave_out", "none", words);
  calibration.leave_out = word == "none" ? "" : word;
  calibration.out_of_range = reader.text_or("out_of_range", "");
  const auto used = std::count_if(scenario.published.begin(), scenario.published.end(),
                                  [](const Published& row) { return row.calibrated; });
  if (used < static_cast<std::ptrdiff_t>(calibration.parameters.size())) {
    reader.fail("parameters", std::to_string(calibration.parameters.size()) + " parameters for " +
                                  std::to_string(used) + " published rows with use 'calibrated'");
  }
  reader.finish();
  return calibration;
}

Simulation read_simulation(Reader reader) {
  Simulation simulation;
  simulation.granularity = reader.word_or("grain", "merged", {"merged", "step"}) == "step"
                               ? Simulation::Granularity::kStep
                               : Simulation::Granularity::kMerged;
  simulation.fold = reader.boolean_or("fold", true);
  if (reader.has("periods")) {
    simulation.periods = static_cast<int>(reader.integer("periods", 1, 100000));
  }
  if (reader.has("warmup")) {
    simulation.warmup = static_cast<int>(reader.integer("warmup", 0, 99999));
  }
  if (simulation.warmup.value_or(0) >=
      simulation.periods.value_or(simulation.warmup.value_or(0) + 1)) {
    reader.fail("warmup", "drops all periods");
  }
  reader.finish();
  return simulation;
}

// Returns a mistake in a part's own file as that file's, or as the scenario's if the scenario set
// the key itself.
std::string told_of_part(const Document& document, const std::string& key, const std::string& file,
                         const std::string& message) {
  const std::string inside = message.substr(std::min(message.size(), file.size() + 2));
  for (const auto& path : document.changed) {
    if (path.rfind(key + ".", 0) != 0) continue;
    const std::string changed = path.substr(key.size() + 1);
    if (inside.rfind(changed + ":", 0) != 0 && inside.rfind(changed + ".", 0) != 0) continue;
    return document.file + ": " + key + "." + inside;
  }
  return message;
}

// Reads a part of the scenario. Returns true if it exists, even with mistakes. `sound`: see
// Mistakes::attempt.
template <typename Part, typename Read>
bool read_part(const Document& document, const std::string& key, const std::string& file,
               Reader& top, bool sound, Part& part, Read read) {
  bool whole = false;
  const auto put = [&](Reader reader) {
    part = read(std::move(reader));
    whole = true;
  };
  if (file.empty()) {
    top.mistakes()->attempt([&] { put(top.object(key)); }, sound);
  } else {
    Mistakes inside;
    const Json& object = top.require(key);
    inside.attempt([&] { put(Reader(object, file, "", &inside)); }, sound);
    top.mistakes()->add_all(inside, [&](const std::string& message) {
      return told_of_part(document, key, file, message);
    });
  }
  return whole;
}

// Checks the scenario's sentences; commands print them as warnings, read from the document.
void check_notes(Reader& top) {
  if (!top.has("notes")) return;
  const Json& notes = top.array("notes");
  for (std::size_t i = 0; i < notes.size(); ++i) {
    if (notes[i].is_string()) continue;
    throw InputError(top.file() + ": " + top.place_of("notes") + "[" + std::to_string(i) +
                     "]: found " + describe(notes[i]) + ", expected a sentence");
  }
}

// Reads the parts that need the strategies.
void read_rows(Reader& top, Scenario& scenario) {
  Mistakes& mistakes = *top.mistakes();
  const std::size_t before = mistakes.count();
  for (auto& reader : top.objects("published")) {
    reader.attempt([&] { scenario.published.push_back(read_published(reader, scenario)); });
  }
  const auto read = [&] {
    scenario.calibration = read_calibration(top.object("calibration"), scenario);
  };
  if (top.has("calibration")) mistakes.attempt(read, mistakes.count() == before);
  if (top.has("search")) {  // checked here, kept by tune
    top.attempt([&] { read_search(top.object("search"), scenario); });
  }
}

// Reads the strategies. `sound`: the workload and the cluster have no mistakes.
void read_strategies(Reader& top, bool sound, Scenario& scenario) {
  top.require("strategies");
  const auto readers = top.objects("strategies");
  if (readers.empty()) top.fail("strategies", "empty, expected at least one strategy");
  std::unordered_set<std::string> names;
  for (const auto& reader : readers) {
    const auto read = [&] {
      Strategy strategy = read_strategy(reader, scenario.workload, scenario.cluster);
      if (!names.insert(strategy.name).second) {
        reader.fail("name", "'" + strategy.name + "' names two strategies");
      }
      scenario.strategies.push_back(std::move(strategy));
    };
    top.mistakes()->attempt(read, sound);
  }
}

// Requires the run's figures that the strategies use.
void require_training(Reader& top, const Scenario& scenario) {
  for (std::size_t i = 0; i < scenario.strategies.size(); ++i) {
    const auto& local = scenario.strategies[i].local_sgd;
    if (local.adaptive && (!scenario.training.steps || scenario.training.loss.empty())) {
      top.fail("strategies[" + std::to_string(i) + "].local_sgd.adaptive",
               "needs training.steps, training.loss and training.learning_rate, which its rule "
               "reads");
    }
  }
}

// Returns dotted paths of keys inside the objects of `object`.
std::vector<std::string> inner_paths(const Json& object, const std::string& place = "") {
  std::vector<std::string> paths;
  for (const auto& [key, value] : object.items()) {
    const std::string path = place.empty() ? key : place + "." + key;
    if (!place.empty()) paths.push_back(path);
    if (!value.is_object()) continue;
    for (auto& inner : inner_paths(value, path)) paths.push_back(std::move(inner));
  }
  return paths;
}

// Guesses jitter: ranks always differ, so times evaluated by rates need waits for the slowest rank.
// Recorded times include their own. A written guess holds only with evaluated times.
void guess_jitter(Scenario& scenario) {
  Jitter& jitter = scenario.cluster.jitter;
  if (jitter.relative > 0) return;
  jitter.guessed = jitter.guessed && scenario.workload.rated_times;
  if (!jitter.guessed) {
    jitter.kind = Jitter::Kind::kNone;
    return;
  }
  if (jitter.kind == Jitter::Kind::kNone) jitter.kind = Jitter::Kind::kNormal;
  jitter.relative = Jitter::kGuess;
}

// Reads jobs on the same fabric from their files, without parts that only a lone job needs.
void read_others(Reader& top, Scenario& scenario) {
  std::vector<Reader> entries = top.objects("others");
  if (entries.empty()) return;
  constexpr std::size_t kMaxJobs = 64;  // each with a copy of the fabric
  if (entries.size() > kMaxJobs) {
    top.fail("others", "more than " + std::to_string(kMaxJobs) +
                           " jobs: say in cluster.fabric.load what the smaller ones take");
  }
  if (scenario.cluster.topology == nullptr) {
    top.fail("others", "they share the cluster's fabric: give it one, as an object, and two nodes");
  }
  if (scenario.simulation.granularity == Simulation::Granularity::kStep) {
    top.fail("simulation.grain", "several jobs on one fabric are simulated merged");
  }
  auto shared = std::make_shared<fabric::Topology>(*scenario.cluster.topology);
  shared->shared = true;
  std::vector<int> taken = shared->nodes;
  scenario.cluster.topology = std::move(shared);
  for (Reader& entry : entries) {
    const auto folder = std::filesystem::path(top.file()).parent_path();
    Document document =
        read_document((folder / entry.text("scenario")).lexically_normal().string());
    for (const char* own : {"others", "sweep", "published", "calibration", "search"}) {
      document.root.erase(own);
    }
    Scenario other = parse_scenario(document);
    join_fabric(entry, scenario.cluster, taken, other.cluster);
    entry.finish();
    const auto& nodes = other.cluster.topology->nodes;
    taken.insert(taken.end(), nodes.begin(), nodes.end());
    scenario.others.push_back(std::move(other));
  }
}

}  // namespace

Scenario parse_scenario(const Document& document) {
  Scenario scenario;
  Mistakes mistakes;
  Reader top(document.root, document.file, "", &mistakes);
  top.text_or("$schema", "");
  scenario.name = top.text("name");
  scenario.about = top.text_or("about", "");
  top.attempt([&] { check_notes(top); });
  top.attempt([&] { top.require("workload"); });
  const std::size_t before = mistakes.count();
  bool parts = false;
  if (top.has("workload") && top.has("cluster")) {
    parts = read_part(document, "cluster", document.cluster_file, top, true, scenario.cluster,
                      [](Reader reader) { return read_cluster(std::move(reader)); });
    const bool evaluated = mistakes.count() == before;
    parts &= read_part(
        document, "workload", document.workload_file, top, evaluated, scenario.workload,
        [&](Reader reader) { return read_workload(std::move(reader), scenario.cluster); });
    guess_jitter(scenario);
  } else {
    top.attempt([&] { top.require("cluster"); });
  }
  const bool sound = mistakes.count() == before;
  if (parts || !top.has("strategies")) {
    top.attempt([&] { read_strategies(top, sound, scenario); });
  }
  if (top.has("sweep")) top.attempt([&] { scenario.sweep = read_sweep(top.object("sweep")); });
  if (top.has("training")) {
    top.attempt([&] { scenario.training = read_training(top.object("training")); });
  }
  scenario.seed = static_cast<std::uint64_t>(top.integer_or("seed", 1, 0, (std::int64_t{1} << 53)));
  if (top.has("simulation")) {
    top.attempt([&] { scenario.simulation = read_simulation(top.object("simulation")); });
  }
  for (const char* known : {"baseline", "published", "calibration", "search", "others"}) {
    top.has(known);
  }
  if (parts && mistakes.count() == before) {
    std::vector<std::string> names;
    for (const auto& strategy : scenario.strategies) names.push_back(strategy.name);
    top.attempt([&] { scenario.baseline = top.word_or("baseline", names.front(), names); });
    top.attempt([&] { require_training(top, scenario); });
    top.attempt([&] { read_rows(top, scenario); });
    top.attempt([&] { read_others(top, scenario); });
  }
  top.finish(inner_paths(document.root));
  mistakes.raise();
  return scenario;
}

Scenario parse_lone_scenario(const Document& document) {
  Scenario scenario = parse_scenario(document);
  if (!scenario.others.empty()) {
    throw InputError(
        document.file +
        ": others: only 'run', 'explain' and 'tune' know other jobs: leave them out, or say in "
        "cluster.fabric.load what they take");
  }
  return scenario;
}

std::optional<Search> parse_search(const Document& document, const Scenario& scenario) {
  if (!document.root.contains("search")) return std::nullopt;
  return read_search(Reader(document.root["search"], document.file, "search"), scenario);
}

}  // namespace syncline::input
