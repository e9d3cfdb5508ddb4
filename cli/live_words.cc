#include "cli/live_words.h"

#include <chrono>
#include <iostream>
#include <thread>

#include "reports/format.h"

namespace syncline {

// Whole lines: a failure of the machine has one of its own.
void say(const std::string& text) { std::cerr << text << std::endl; }

std::string guide_words(const GuideFactors& error) {
  std::string words = "the closed-form model";
  if (error.latency == 1 && error.transfer == 1) return words;
  words += ", made wrong on purpose: latency x";
  return words + plain_number(error.latency) + ", bandwidth x" + plain_number(1 / error.transfer);
}

MeasurementWatch announced(const std::string& what, const std::string& count, double pace) {
  const auto which = [=](const Evaluation& evaluation) {
    return what + " " + std::to_string(evaluation.number + 1) + " of " + count + ": ";
  };
  MeasurementWatch watch;
  watch.begins = [=](const Candidate& candidate, const Evaluation& evaluation) {
    say(which(evaluation) + one_line(candidate.name));
  };
  watch.ends = [=](const Evaluation& evaluation, const Measurement& measured) {
    const double seconds = measured.step_time * evaluation.steps * pace;
    if (seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    say(which(evaluation) + seconds_text(measured.step_time) + " a step");
  };
  return watch;
}

}  // namespace syncline
