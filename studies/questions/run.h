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
  std::string granularity;  // grain of a simulation; empty: the scenario's
  int jobs = 1;
  ObjectiveOptions objective;  // if set, run_to_target (target.h) answers
};

Arguments arguments_of(Run& question);

// Throws InputError if arguments exclude each other.
void expect_fitting(const Run& question);

// Sets the document's grain to the requested one.
void set_grain(const Run& question, input::Document& document);

// Returns the rows, the executor and the number of processes of the study.
measure::StudyOptions study_of(const Run& question);

}  // namespace syncline::questions
