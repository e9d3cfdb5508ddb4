#include "cli/cost.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <utility>

#include "core/error.h"
#include "reports/format.h"

namespace syncline::cli {
namespace {

constexpr std::pair<measure::Answer, const char*> kVerbs[] = {
    {measure::Answer::kCheck, "check"},
    {measure::Answer::kPlan, "plan"},
    {measure::Answer::kExplain, "explain"},
    {measure::Answer::kRun, "run"},
    {measure::Answer::kRunStreamed, "run --format csv"},
    {measure::Answer::kSimulate, "run --executor sim"},
    {measure::Answer::kTune, "tune"},
};

// An estimate has one digit: "4 minutes", "20 s", "3 hours".
std::string rough_time(Seconds time) {
  constexpr std::pair<Seconds, const char*> kUnits[] = {
      {86400, "day"}, {3600, "hour"}, {60, "minute"}};
  for (const auto& [unit, name] : kUnits) {
    if (time < unit) continue;
    return reports::plural(static_cast<std::size_t>(std::min(1e9, std::round(time / unit))), name);
  }
  return "a minute or less";
}

std::string rough_bytes(double bytes) {
  constexpr double kGigabyte = 1e9;
  const double digits = bytes < 10 * kGigabyte ? 10 : 1;
  return reports::plain_number(std::max(0.1, std::round(bytes / kGigabyte * digits) / digits)) +
         " GB";
}

std::string cost_words(const measure::Estimate& estimate) {
  return "about " + rough_time(estimate.time) + " of one core and " + rough_bytes(estimate.bytes) +
         " of memory";
}

// What this process may fill.
double memory_here() {
  const double machine =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return machine;
  return std::min(machine, static_cast<double>(limit.rlim_cur));
}

// What to do where it is the rows that take the memory.
std::string streamed_words(const Scenario& scenario, measure::Answer answer) {
  if (answer != measure::Answer::kRun) return "";
  const double kept = measure::estimate_of(scenario, answer).bytes;
  const double streamed = measure::estimate_of(scenario, measure::Answer::kRunStreamed).bytes;
  return streamed < kept / 2 ? "; --format csv prints each row as it is priced, and keeps none"
                             : "";
}

}  // namespace

std::vector<std::string> heavy_answers(const Scenario& scenario) {
  std::vector<std::string> lines;
  for (const auto& [answer, verb] : kVerbs) {
    const auto estimate = measure::estimate_of(scenario, answer);
    // A simulation is what somebody asked for who set its grain.
    const bool merged = scenario.simulation.grain == Simulation::Grain::kMerged;
    if (answer == measure::Answer::kSimulate && merged) continue;
    if (measure::is_heavy(estimate)) {
      lines.push_back("`" + std::string(verb) + "` will take " + cost_words(estimate));
    }
  }
  return lines;
}

void announce(const Scenario& scenario, measure::Answer answer) {
  const auto estimate = measure::estimate_of(scenario, answer);
  if (!measure::is_heavy(estimate)) return;
  const double here = memory_here();
  if (estimate.bytes > here) {
    throw MachineError("this would take " + cost_words(estimate) + ", and there are " +
                       rough_bytes(here) + " here" + streamed_words(scenario, answer));
  }
  std::cerr << "syncline: this takes " << cost_words(estimate) << streamed_words(scenario, answer)
            << "\n";
}

}  // namespace syncline::cli
