#include "studies/tune/setting.h"

#include "core/base/error.h"
#include "core/collective/library.h"
#include "formats/dialect/pytorch_apply.h"
#include "formats/dialect/write.h"
#include "studies/explain/advice.h"

namespace syncline::tune {
namespace {

using measure::TrainingChange;

// Returns the scenario's entries of strategies, by name.
std::map<std::string, const Json*> written_in(const input::Document& document) {
  std::map<std::string, const Json*> written;
  for (const Json& item : document.root.at("strategies")) {
    written.emplace(item.at("name").get<std::string>(), &item);
  }
  return written;
}

}  // namespace

std::string setting_text(const dialect::Dialect& dialect, const Emitted& said,
                         const Parallel& parallel) {
  return dialect::config_text(dialect, said.config, parallel) +
         (!said.setting.empty()     ? ", with " + said.setting
          : !said.algorithm.empty() ? ", with collectives by " + said.algorithm
                                    : "");
}

SettingWriter::SettingWriter(const input::Document& document, const Tuning& tuning, bool by_file,
                             const dialect::Dialect* emit)
    : scenario_(tuning.scenario),
      tuned_(tuning.tuned),
      baseline_(tuned_.baseline.strategy),
      asked_(emit),
      dialect_(emit != nullptr ? emit : dialect::find_dialect(baseline_.dialect)),
      by_file_(by_file && emit != nullptr),
      written_(written_in(document)) {
  for (const auto& each : tuning.schemes) entries_.push_back(each.scheme.entry());
  for (const Json& entry : entries_) written_.emplace(entry["name"], &entry);
}

std::optional<Settable> SettingWriter::settable(const Strategy& strategy,
                                                const Json& config) const {
  if (by_file_) {
    const auto& refusal = dialect_->apply_refusal;
    const bool refused =
        refusal == nullptr || !refusal(strategy, scenario_.workload, scenario_.cluster).empty();
    if (refused) return std::nullopt;
    return settable_as_applied(strategy);
  }
  if (const auto own = written_.find(strategy.name); own != written_.end()) {
    if (auto set = set_as_written(strategy, *own->second)) return set;
  }
  if (dialect_ == nullptr) return Settable{strategy, measure::own_keys(strategy, baseline_), {}};
  if (!config.is_null()) return set_by(*dialect_, strategy, config);
  if (auto set = set_as_said(strategy)) return set;
  if (dialect_->apply_refusal == nullptr) return std::nullopt;
  if (!dialect_->apply_refusal(strategy, scenario_.workload, scenario_.cluster).empty()) {
    return std::nullopt;
  }
  return settable_as_applied(strategy);
}

// Sets a strategy by its configuration and the library's variable.
Settable SettingWriter::set_by(const dialect::Dialect& dialect, const Strategy& strategy,
                               const Json& config) const {
  Emitted written;
  written.config = config;
  written.strategy = strategy;
  written.exact = true;
  if (strategy.algorithm != collective::library_algorithm(scenario_.cluster)) {
    written.algorithm = strategy.algorithm;
    written.setting = dialect::nccl_setting(strategy, scenario_.workload, scenario_.cluster);
  }
  return {strategy, setting_text(dialect, written, scenario_.workload.parallel), written};
}

// Sets a strategy in the words that the scenario has for it, unless another framework was asked
// for.
std::optional<Settable> SettingWriter::set_as_written(const Strategy& strategy,
                                                      const Json& written) const {
  const dialect::Dialect* own = dialect::find_dialect(strategy.dialect);
  if (own == nullptr || (asked_ != nullptr && own != asked_)) return std::nullopt;
  Settable set = set_by(*own, strategy, written.value("config", Json::object()));
  if (own != dialect_) set.how = "in " + std::string(own->name) + ": " + set.how;
  return set;
}

// Returns the strategy as the framework's configuration; nullopt if it has no exact one.
std::optional<Settable> SettingWriter::set_as_said(const Strategy& strategy) const {
  try {
    const auto config =
        dialect::write_config(*dialect_, strategy, scenario_.workload, scenario_.cluster);
    if (!config || !config->exact) return std::nullopt;
    if (!config->algorithm.empty() && config->setting.empty()) return std::nullopt;
    // A codec that encodes nothing here is expressed by leaving it out.
    if (trains_otherwise(strategy) != trains_otherwise(config->strategy)) return std::nullopt;
    Strategy expressed = is_given(strategy) ? strategy : config->strategy;
    expressed.name = strategy.name;
    return set_by(*dialect_, expressed, config->config);
  } catch (const InputError&) {
    return std::nullopt;  // the framework refuses whatever might say it
  }
}

// Returns the baseline's configuration in the framework; null if it is in another.
Json SettingWriter::own_config() const {
  const auto own = written_.find(baseline_.name);
  const bool known = own != written_.end() && dialect_->name == baseline_.dialect;
  return known ? own->second->value("config", Json()) : Json();
}

bool SettingWriter::is_winner(const Strategy& strategy) const {
  return strategy.name == tuned_.winner().strategy.name;
}

// Returns whether a strategy is the user's or the winner: it stays as it was evaluated.
bool SettingWriter::is_given(const Strategy& strategy) const {
  return is_winner(strategy) || written_.contains(strategy.name);
}

bool SettingWriter::trains_otherwise(const Strategy& strategy) const {
  return measure::training_beside(strategy, baseline_) != TrainingChange::kSame;
}

Settable SettingWriter::settable_as_applied(const Strategy& strategy) const {
  return {is_given(strategy) ? strategy : dialect::as_applied(strategy),
          dialect::apply_line(strategy.name),
          {}};
}

Settable SettingWriter::settable_or_unsaid(const Strategy& strategy) const {
  if (auto set = settable(strategy, {})) return *set;
  const std::string explanation =
      dialect_ == nullptr ? "" : "cannot be written in " + std::string(dialect_->name);
  return {strategy, explanation, {}};
}

std::optional<Emitted> SettingWriter::find_words(const Strategy& strategy,
                                                 const std::optional<Emitted>& emitted) const {
  if (dialect_ == nullptr || dialect_->suggest == nullptr) return std::nullopt;
  if (emitted && is_winner(strategy)) return emitted;
  Evaluator model(scenario_);
  try {
    return best_config(*dialect_, strategy, own_config(), model);
  } catch (const InputError&) {
    return std::nullopt;  // the framework refuses whatever might say it
  }
}

std::pair<Strategy, Json> SettingWriter::baseline_entry(const std::optional<Emitted>& said) const {
  const auto own = written_.find(baseline_.name);
  if (dialect_ == nullptr || dialect_->name == baseline_.dialect || !said ||
      trains_otherwise(said->strategy)) {
    return {baseline_, own == written_.end() ? Json::object() : *own->second};
  }
  Strategy asked = baseline_;
  asked.dialect = dialect_->name;
  return {asked, {{"dialect", dialect_->name}, {"config", said->config}}};
}

}  // namespace syncline::tune
