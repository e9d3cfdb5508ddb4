#include "studies/tune/tuning.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/error.h"
#include "core/base/index.h"
#include "formats/dialect/pytorch_apply.h"
#include "formats/input/scenario_json.h"
#include "studies/rows/fabric_jobs.h"
#include "studies/rows/fitting.h"
#include "studies/warnings/warnings.h"

namespace syncline::tune {
namespace {

// Adds the break-evens of the scenario's compressing strategies, or else of the search's best one.
void add_break_evens(const input::Document& document, Tuning& tuning) {
  const auto compare = [&](const input::Document& where, const std::string& name,
                           const std::string& against) {
    for (const auto& even :
         {bandwidth_break_even(where, name, against), nodes_break_even(where, name, against)}) {
      if (even) tuning.break_evens.push_back(*even);
    }
  };
  const Scenario& scenario = tuning.scenario;
  bool own = false;
  for (const auto& strategy : scenario.strategies) {
    own |= !strategy.compression.codec.empty();
    if (strategy.compression.codec.empty()) continue;
    if (input::changes_training(tuning.tuned.baseline.strategy)) continue;
    compare(document, strategy.name, scenario.baseline);
  }

  // Compares the search's best with compression and its best without.
  const auto& changed = tuning.tuned.best_changed;
  const auto& before = tuning.tuned.best_as_before;
  if (own || !changed || !before || changed->strategy.compression.codec.empty()) return;
  constexpr double kWorthTelling = 0.1;  // percent of a step
  const double gain = percent_above(before->metrics.step_time, changed->metrics.step_time);
  if (std::abs(gain) < kWorthTelling) return;
  input::Document with = document;
  for (const auto* ranked : {&*before, &*changed}) {
    with.root["strategies"].push_back(input::strategy_json(ranked->strategy));
  }
  try {
    input::parse_scenario(with);
  } catch (const InputError&) {
    return;  // a dialect's groups that no key of a scenario can say
  }
  compare(with, changed->strategy.name, before->strategy.name);
}

// Returns a strategy as the document has it; an empty object: it has none of that name.
Json entry_of(const input::Document& document, const std::string& name) {
  for (const Json& entry : document.root["strategies"]) {
    if (entry.value("name", "") == name) return entry;
  }
  return Json::object();
}

// Returns the configuration of the baseline; null: it is in no dialect.
Json baseline_config(const input::Document& document, const Scenario& scenario) {
  return entry_of(document, scenario.baseline).value("config", Json());
}

// Searches a framework's own keys, for a strategy in place of the best that was found.
class InFramework {
 public:
  InFramework(const dialect::Dialect& dialect, Json own, const Tuning& tuning,
              const TuneOptions& options, bool asked)
      : dialect_(dialect),
        own_(std::move(own)),
        scenario_(tuning.scenario),
        schemes_(tuning.schemes),
        by_file_(options.by_file),
        asked_(asked) {}

  // Returns the framework's own strategy in place of a best that is longer, does not fit or cannot
  // be set. Nothing: the best stays.
  std::optional<Strategy> in_place_of(const Strategy& best) {
    if (dialect_.suggest == nullptr || by_file_) return std::nullopt;
    Evaluator model(scenario_);
    std::vector<Json> starts;
    for (const auto& [scheme, strategy] : schemes_) {
      if (scheme.dialect == dialect_.name) starts.push_back(scheme.config);
    }
    try {
      said_ = best_config(dialect_, best, own_, model, starts);
    } catch (const InputError&) {
      return std::nullopt;  // the framework refuses whatever might say it
    }
    const Strategy& baseline = *find_strategy(scenario_, scenario_.baseline);
    const Seconds now = model.step_time(baseline);
    const Seconds wanted = model.step_time(best);
    const auto has_room = [&](const Strategy& own) {
      return measure::memory_of(scenario_, own).fits();
    };
    const bool fits = has_room(said_->strategy);
    const bool alike = measure::training_beside(said_->strategy, baseline) ==
                       measure::training_beside(best, baseline);
    if (said_->exact || !alike || !fits) return std::nullopt;
    const bool applied =
        dialect_.apply_refusal != nullptr &&
        dialect_.apply_refusal(best, scenario_.workload, scenario_.cluster).empty();
    constexpr double kWorthTelling = 1e-3;
    const bool shorter = said_->step_time < wanted * (1 - kWorthTelling) || !has_room(best);
    const bool in_place = (asked_ || !applied) && (said_->step_time <= now || !has_room(baseline));
    if (!shorter && !in_place) return std::nullopt;
    said_->exact = true;
    said_->difference.clear();
    if (said_->config == own_) return baseline;
    said_->strategy.name = "the best in " + std::string(dialect_.name);
    return said_->strategy;
  }

  // Returns the framework's words for the best, or for the strategy in its place.
  const std::optional<Emitted>& said() const { return said_; }

 private:
  const dialect::Dialect& dialect_;
  Json own_;
  const Scenario& scenario_;
  const std::vector<measure::ReadScheme>& schemes_;
  bool by_file_;
  bool asked_;
  std::optional<Emitted> said_;
};

// Adds the step times by the model for bucket caps in the framework's own key: at most 48 sizes of
// the curve. The framework is the one to emit, else the baseline's. Adds none if it refuses a cap.
void add_ddp_curve(const input::Document& document, const dialect::Dialect* emit, Evaluator& model,
                   Tuning& tuning) {
  const Scenario& scenario = tuning.scenario;
  const dialect::Dialect* asked =
      emit != nullptr ? emit : dialect::find_dialect(tuning.tuned.baseline.strategy.dialect);
  if (asked == nullptr || asked->cap_key.empty()) return;
  Json config = tuning.emitted ? tuning.emitted->config : baseline_config(document, scenario);
  if (!config.is_object()) return;
  constexpr std::size_t kMax = 48;
  const auto& curve = tuning.tuned.curve;
  const std::size_t stride = 1 + curve.size() / kMax;
  try {
    for (std::size_t i = 0; i < curve.size(); i += stride) {
      if (curve[i].size == 0) continue;  // 0 is no valid cap
      config[asked->cap_key] = static_cast<double>(curve[i].size) / static_cast<double>(kMiB);
      const Strategy strategy =
          dialect::reading_of(*asked, config, scenario.workload, scenario.cluster).strategy;
      tuning.ddp_curve.push_back({curve[i].size, model.step_time(strategy)});
    }
  } catch (const InputError&) {
    tuning.ddp_curve.clear();  // the other keys do not allow a cap
  }
}

// Makes the graph whole in a compiled job's base, for candidates of a file.
void search_whole_graphs(Tuning& tuning) {
  Strategy whole = dialect::with_whole_graph(*find_strategy(tuning.scenario, tuning.search.base));
  if (whole.graph_segments == find_strategy(tuning.scenario, tuning.search.base)->graph_segments)
    return;
  whole.name += ", its graph whole";
  tuning.search.base = whole.name;
  tuning.scenario.strategies.push_back(std::move(whole));
}

// Returns the configuration of a strategy that is one of the schemes, if it is.
std::optional<Emitted> scheme_written(const Tuning& tuning, const Strategy& strategy) {
  for (const auto& [scheme, own] : tuning.schemes) {
    if (scheme.name != strategy.name) continue;
    Emitted written;
    written.config = scheme.config;
    written.strategy = own;
    written.step_time = tuning.tuned.winner().metrics.step_time;
    written.exact = true;
    return written;
  }
  return std::nullopt;
}

// Lists and writes strategies that fit with other keys of the job, in place of those that do not.
void add_remedy(const input::Document& document, std::string_view dialect, Tuning& tuning) {
  tuning.alternatives.resize(1);
  measure::Remedy remedy = measure::remedy_of(document, {}, dialect);
  if (!remedy.fits) return;
  input::Document fitting = document;
  for (const char* key : {"sweep", "published", "calibration", "search"}) fitting.root.erase(key);
  measure::apply(remedy, fitting);
  Json entries = Json::array();
  for (const dialect::Scheme& scheme : remedy.schemes) {
    const Json own = entry_of(fitting, scheme.name);
    entries.push_back(own.empty() ? scheme.entry() : own);
  }
  fitting.root["strategies"] = entries;
  fitting.root["baseline"] = entries[0]["name"];
  const Scenario scenario = input::parse_scenario(fitting);
  Evaluator model(scenario);
  measure::Uncertainties uncertainties(scenario, tuning.fit_errors);
  const auto best = std::ranges::min_element(
      scenario.strategies, {}, [&](const Strategy& each) { return model.step_time(each); });
  const Json entry = entries.at(index(best - scenario.strategies.begin()));
  Alternative& row = tuning.alternatives.emplace_back();
  row.strategy = *best;
  row.strategy.name = row.change = remedy.words_of(best->name);
  row.metrics = model.metrics_of(row.strategy);
  row.memory = measure::memory_of(scenario, row.strategy);
  row.sensitivity = uncertainties.sensitivity(row.strategy);
  row.step = measure::interval_of(row.metrics.step_time, row.sensitivity);
  const Alternative& baseline = tuning.alternatives.front();
  row.speedup = baseline.metrics.step_time / row.metrics.step_time;
  row.gain = measure::ratio_interval(row.speedup, baseline.sensitivity, row.sensitivity);
  remedy.own = !entry_of(fitting, best->name).empty() && find_strategy(tuning.scenario, best->name);
  remedy.schemes = {remedy.schemes.at(index(best - scenario.strategies.begin()))};
  row.set_with = remedy.how(document.file);
  if (dialect.empty() || entry.value("config", Json()).is_null()) return;
  tuning.emitted = Emitted{};
  tuning.emitted->config = entry["config"];
  tuning.emitted->strategy = row.strategy;
  tuning.emitted->step_time = row.metrics.step_time;
  tuning.emitted->exact = true;
}

// Throws if another framework than the job's was asked for, and what it can say does not fit.
void expect_room(const Tuning& tuning) {
  const std::string& own = tuning.tuned.baseline.strategy.dialect;
  const measure::Memory memory = measure::memory_of(tuning.scenario, tuning.emitted->strategy);
  if (memory.fits() || own.empty() || own == tuning.emitted_dialect) return;
  throw InputError(
      "--emit: nothing that " + tuning.emitted_dialect + " can say fits in memory, its best " +
      measure::memory_needs(tuning.scenario, memory) + "; take --emit " + own + ", the job's own");
}

// Sets the framework's configuration for the winner. Returns its refusal, if it has none: another
// row may be what this framework is for.
std::optional<InputError> emit_winner(const dialect::Dialect& emit,
                                      const std::optional<Emitted>& said, const Json& config,
                                      Evaluator& model, Tuning& tuning) {
  const Strategy& winner = tuning.tuned.winner().strategy;
  tuning.emitted_dialect = emit.name;
  tuning.emitted = scheme_written(tuning, winner);
  if (!tuning.emitted) tuning.emitted = said;
  try {
    if (!tuning.emitted) tuning.emitted = best_config(emit, winner, config, model);
  } catch (const InputError& error) {
    return error;
  }
  return std::nullopt;
}

// Returns "; --take 'DiLoCo every 100 steps' writes another row": those with a configuration.
std::string other_rows(const Tuning& tuning) {
  std::string rows;
  for (const Alternative& row : tuning.alternatives) {
    if (row.written) rows += (rows.empty() ? "'" : ", '") + row.strategy.name + "'";
  }
  return rows.empty() ? "" : "; --take writes another row: " + rows;
}

// Puts an alternative in the place of the best for written files. An alternative without a
// configuration is for a Python file only.
void take(const std::string& name, Evaluator& model, Tuning& tuning) {
  std::vector<std::string> names;
  std::string listed;
  for (const Alternative& row : tuning.alternatives) {
    names.push_back(row.strategy.name);
    listed += (listed.empty() ? "'" : ", '") + names.back() + "'";
  }
  auto at = std::ranges::find(names, name);
  // A file may train the same with other knobs: that row's name continues this one.
  const auto goes_on = [&](const std::string& row) { return row.starts_with(name + ", "); };
  if (at == names.end() && std::ranges::count_if(names, goes_on) == 1) {
    at = std::ranges::find_if(names, goes_on);
  }
  if (at == names.end()) {
    throw InputError("--take: found no row '" + name + "'" + did_you_mean(name, names) +
                     ", the rows are " + listed);
  }
  const Alternative& row = tuning.alternatives[index(at - names.begin())];
  tuning.taken = Ranked{{model.metrics_of(row.strategy)}, row.strategy};
  tuning.emitted = row.written;
}

}  // namespace

Tuning tune_document(const input::Document& document, const TuneOptions& options,
                     const std::string& confirmed_by, const dialect::Dialect* emit) {
  const auto [fitted, fit_errors] = measure::calibrate_document(document);
  Tuning tuning;
  tuning.scenario = input::parse_scenario(fitted);
  tuning.fit_errors = fit_errors;
  tuning.warnings = measure::warnings_of(fitted, tuning.scenario);
  const bool alone = tuning.scenario.others.empty();
  if (!alone) {
    tuning.warnings.push_back("others: each link has what they leave while '" +
                              tuning.scenario.baseline +
                              "' trains; 'run' says it of another strategy");
    tuning.scenario = measure::beside_others(std::move(tuning.scenario));
  }
  const Scenario& scenario = tuning.scenario;
  const std::string_view asked = emit != nullptr ? emit->name : "";
  tuning.shortage = measure::memory_shortage(fitted, scenario, asked);
  tuning.calibrated = !scenario.calibration.parameters.empty();
  const auto own = input::parse_search(fitted, scenario);
  tuning.own_search = own.has_value();
  tuning.search = own ? *own : default_search(scenario);
  if (options.by_file) search_whole_graphs(tuning);
  tuning.executor = options.executor;
  tuning.confirmed_by = options.confirm && tuning.search.confirm > 0 ? confirmed_by : "";
  const dialect::Dialect* own_dialect =
      dialect::find_dialect(find_strategy(scenario, scenario.baseline)->dialect);
  const dialect::Dialect* dialect = emit != nullptr ? emit : own_dialect;
  const Json config = dialect == own_dialect ? baseline_config(fitted, scenario) : Json();
  std::optional<InFramework> framework;
  TuneOptions searched = options;
  // A search that the scenario declares is its own limit, as long as something of it fits.
  if (!options.by_file && (!own || !tuning.shortage.empty())) {
    tuning.schemes = schemes_beside(fitted, scenario, emit);
  }
  if (dialect != nullptr) {
    framework.emplace(*dialect, config, tuning, options, emit != nullptr);
    searched.in_framework = [&](const Strategy& best) { return framework->in_place_of(best); };
  }
  for (const auto& each : tuning.schemes) searched.schemes.push_back(each.strategy);
  tuning.tuned = tune(scenario, tuning.search, searched);

  Evaluator model(scenario);
  const Strategy& winner = tuning.tuned.winner().strategy;
  tuning.bottleneck = measure::bottleneck_of(model.evaluate(winner), scenario, model.cache());
  tuning.defaults = framework_defaults(tuning.tuned.base, model);
  tuning.certainty = certainty_of(scenario, fit_errors, tuning.tuned, tuning.defaults);
  tuning.next = next_measurement(scenario, fit_errors, tuning.tuned);
  if (alone) add_break_evens(fitted, tuning);
  tuning.averaging = averaging_of(model);
  std::optional<InputError> refusal;
  if (emit != nullptr) refusal = emit_winner(*emit, framework->said(), config, model, tuning);
  add_ddp_curve(fitted, emit, model, tuning);
  const std::optional<Emitted> said = framework ? framework->said() : std::nullopt;
  add_alternatives(fitted, options, emit, tuning.emitted ? tuning.emitted : said, tuning);
  tuning.fits = measure::memory_of(scenario, winner).fits();
  if (!tuning.fits) add_remedy(fitted, asked, tuning);
  if (refusal && options.take.empty()) throw InputError(refusal->what() + other_rows(tuning));
  if (!options.take.empty()) {
    take(options.take, model, tuning);
  } else if (tuning.emitted && !options.by_file) {
    expect_room(tuning);
  }
  return tuning;
}

const Ranked& best_to_apply(const Tuning& tuning) {
  if (tuning.taken) return *tuning.taken;
  const Tuned& tuned = tuning.tuned;
  std::vector<const Ranked*> found{&tuned.winner()};
  for (const auto& ranked : tuned.ranking) found.push_back(&ranked);
  for (const auto& [kind, ranked] : tuned.best_of_kind) found.push_back(&ranked);
  for (const auto* best : {&tuned.best_explicit, &tuned.best_threshold, &tuned.best_as_before}) {
    if (best->has_value()) found.push_back(&**best);
  }
  found.push_back(&tuned.baseline);
  std::erase_if(found, [&](const Ranked* ranked) {
    return !dialect::apply_refusal(ranked->strategy, tuning.scenario.workload,
                                   tuning.scenario.cluster)
                .empty() ||
           (tuning.fits && !measure::memory_of(tuning.scenario, ranked->strategy).fits());
  });
  if (found.empty() || found.front() == &tuned.winner()) return tuned.winner();
  return *std::ranges::min(found, {}, [](const Ranked* each) { return each->metrics.step_time; });
}

}  // namespace syncline::tune
