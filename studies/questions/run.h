// `run`: strategies by the time of a step.
#pragma once

#include <string>
#include <vector>

#include "formats/input/document.h"
#include "studies/questions/arguments.h"
#include "studies/questions/objective.h"
#include "studies/study/study.h"

namespace syncline::questions {

struct Run {
  std::vector<std::string> strategies;  // empty: all
  std::string executor = "model";
  std::string grain;  // of a simulation; empty: the scenario's
  int jobs = 1;
  ObjectiveOptions objective;  // asked: run_to_target (target.h) answers
};

Arguments arguments_of(Run& question);

// Throws InputError where arguments do not go together.
void expect_fitting(const Run& question);

// The document with the grain that is asked for.
void set_grain(const Run& question, input::Document& document);

// Which rows, by which executor, in how many processes.
measure::StudyOptions study_of(const Run& question);

}  // namespace syncline::questions
