#include "cli/live_words.h"

#include <chrono>
#include <iostream>
#include <thread>

#include "core/visible.h"
#include "reports/format.h"

namespace syncline::cli {

// Whole lines: a failure of the machine has one of its own.
void say(const std::string& text) { std::cerr << visible(text) << std::endl; }

std::string guide_words(const tune::GuideFactors& error) {
  std::string words = "the closed-form model";
  if (error.latency == 1 && error.transfer == 1) return words;
  words += ", made wrong on purpose: latency x";
  return words + reports::plain_number(error.latency) + ", bandwidth x" +
         reports::plain_number(1 / error.transfer);
}

tune::MeasurementWatch announced(const std::string& what, const std::string& count, double pace) {
  const auto which = [=](const tune::Evaluation& evaluation) {
    return what + " " + std::to_string(evaluation.number + 1) + " of " + count + ": ";
  };
  tune::MeasurementWatch watch;
  watch.begins = [=](const tune::Candidate& candidate, const tune::Evaluation& evaluation) {
    say(which(evaluation) + reports::one_line(candidate.name));
  };
  watch.ends = [=](const tune::Evaluation& evaluation, const tune::Measurement& measured) {
    const double seconds = measured.step_time * evaluation.steps * pace;
    if (seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    say(which(evaluation) + reports::seconds_text(measured.step_time) + " a step");
  };
  return watch;
}

}  // namespace syncline::cli
