// The ways to set a strategy in a job: by its framework's settings, a file of ours, or its keys.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>

#include "core/strategy.h"
#include "formats/dialect/dialect.h"
#include "formats/input/document.h"
#include "studies/tune/dialect_search.h"
#include "studies/tune/tuning.h"

namespace syncline::tune {

// A strategy as the job then runs it.
struct Settable {
  Strategy strategy;
  std::string how;                 // the lines, or keys, that set it
  std::optional<Emitted> written;  // nullopt: it is set by a file of ours, or cannot be set
  Seconds step = 0;
  bool fits = true;  // into the device's memory
};

// Returns the framework's configuration as text, with the library's setting or algorithm.
std::string setting_text(const dialect::Dialect& dialect, const Emitted& said,
                         const Parallel& parallel);

class SettingWriter {
 public:
  // Builds a writer. All arguments must outlive it. `emit`: the framework that was asked for;
  // nullptr: the baseline's. `by_file`: a Python file of ours carries strategies out.
  SettingWriter(const input::Document& document, const Tuning& tuning, bool by_file,
                const dialect::Dialect* emit);

  // Returns a strategy with the lines that set it in the job; nullopt if neither the framework nor
  // a file of ours can. `config`: the framework's configuration for the strategy, if known.
  std::optional<Settable> settable(const Strategy& strategy, const Json& config) const;
  // Returns the strategy as `settable` does, or a sentence that it cannot be written.
  Settable settable_or_unsaid(const Strategy& strategy) const;
  // Returns the framework's configuration for a strategy; nullopt if it has none. `emitted`: that
  // of the winner, if known.
  std::optional<Emitted> find_words(const Strategy& strategy,
                                    const std::optional<Emitted>& emitted) const;
  // Returns the baseline in the framework, with its entry in a scenario: the entry of `said` if
  // another framework was asked for.
  std::pair<Strategy, Json> baseline_entry(const std::optional<Emitted>& said) const;

  const dialect::Dialect* asked_dialect() const { return asked_; }
  const dialect::Dialect* dialect() const { return dialect_; }
  bool by_file() const { return by_file_; }
  bool is_winner(const Strategy& strategy) const;
  bool trains_otherwise(const Strategy& strategy) const;

 private:
  Settable settable_as_applied(const Strategy& strategy) const;
  Settable set_by(const dialect::Dialect& dialect, const Strategy& strategy,
                  const Json& config) const;
  std::optional<Settable> set_as_written(const Strategy& strategy, const Json& written) const;
  std::optional<Settable> set_as_said(const Strategy& strategy) const;
  Json own_config() const;
  bool is_given(const Strategy& strategy) const;

  const Scenario& scenario_;
  const Tuned& tuned_;
  const Strategy& baseline_;
  const dialect::Dialect* asked_;
  const dialect::Dialect* dialect_;  // that was asked for, or the baseline's
  bool by_file_;
  std::deque<Json> entries_;                    // of the schemes
  std::map<std::string, const Json*> written_;  // entries of the scenario and the schemes, by name
};

}  // namespace syncline::tune
