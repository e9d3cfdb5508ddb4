// `tune`: the best strategy, by the model or by simulation; the best layout; the bandwidth for a
// utilisation; the shortest training to a target.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/run/jobs.h"
#include "formats/input/document.h"
#include "studies/layouts/layouts.h"
#include "studies/layouts/utilisation.h"
#include "studies/questions/arguments.h"
#include "studies/questions/objective.h"
#include "studies/tune/tuning.h"
#include "studies/worth/time_to_target.h"

namespace syncline::questions {

struct Tune {
  std::string strategy;
  std::string emit;
  std::string take;
  std::string executor = "model";
  std::optional<std::size_t> top;
  std::optional<std::size_t> budget;
  bool exhaustive = false;            // on machines: also measures every candidate
  std::optional<double> utilisation;  // requested, as a share
  tune::LayoutChoice choice;
  int jobs = run::cores();
  ObjectiveOptions objective;
};

Arguments arguments_of(Tune& question);

// Options by name; true if given.
using Given = std::vector<std::pair<std::string_view, bool>>;

// Throws InputError if arguments exclude each other. `own`: a program's other options.
void expect_fitting(const Tune& question, const Given& own = {});

// Sets the requested strategy as the baseline: candidates are searched around it and compared with
// it.
void set_baseline(const Tune& question, input::Document& document);

// Returns the method, the budget and the executor of the search.
tune::TuneOptions search_of(const Tune& question);

// Searches the best strategy. `options`: result of search_of, with a program's additions.
tune::Tuning steps_of(const Tune& question, const input::Document& document,
                      tune::TuneOptions options);
tune::Layouts layouts_of(const Tune& question, const input::Document& document,
                         tune::TuneOptions options);
tune::Utilisation utilisation_of(const Tune& question, const input::Document& document);
// Searches each strategy that has a curve by itself. Changes that keep its training keep its steps
// to the target.
worth::Worth worth_of(const Tune& question, const input::Document& document,
                      const tune::TuneOptions& options);

}  // namespace syncline::questions
