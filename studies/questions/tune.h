// `tune`: the best strategy, by the model or by simulation; the best layout; the bandwidth that a
// utilisation takes; the shortest training to a target.
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
  bool exhaustive = false;  // on machines: measures every candidate besides
  bool layouts = false;
  std::optional<double> utilisation;  // asked for, as a share
  std::vector<std::int64_t> batches;  // of layouts: samples a micro-batch
  int jobs = run::cores();
  ObjectiveOptions objective;
};

Arguments arguments_of(Tune& question);

// Options by their names, and whether they were given.
using Given = std::vector<std::pair<std::string_view, bool>>;

// Throws InputError where arguments do not go together; `own`: what a program has beside them.
void expect_fitting(const Tune& question, const Given& own = {});

// Makes the strategy that is asked for the one around which candidates are searched, and which they
// are compared with.
void set_baseline(const Tune& question, input::Document& document);

// Returns the method, the budget and the executor of the search.
tune::TuneOptions search_of(const Tune& question);

// `options`: as search_of gives them, with what a program adds.
tune::Tuning steps_of(const Tune& question, const input::Document& document,
                      tune::TuneOptions options);
tune::Layouts layouts_of(const Tune& question, const input::Document& document,
                         tune::TuneOptions options);
tune::Utilisation utilisation_of(const Tune& question, const input::Document& document);
// Each strategy that has a curve is searched by itself: nothing that leaves its training as it is
// changes its steps to the target.
worth::Worth worth_of(const Tune& question, const input::Document& document,
                      const tune::TuneOptions& options);

}  // namespace syncline::questions
