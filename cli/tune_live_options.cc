#include <algorithm>
#include <charconv>

#include "cli/executors.h"
#include "cli/number_option.h"
#include "cli/tune_live.h"
#include "cli/word_option.h"
#include "core/error.h"

namespace syncline::cli {

void add_live_options(CLI::App& verb, LiveVerbOptions& live) {
  std::vector<std::string> machines = backend_names();
  machines.insert(machines.begin(), "emulated");
  CLI::Option* machine =
      verb.add_option("--live", live.machine,
                      "search on a machine, where each evaluation costs training steps. gloo: the "
                      "ranks of this machine or of a launcher; emulated: the closed-form model "
                      "with noise stands for the machine")
          ->transform(one_of_words(machines));
  for (const char* other : {"--svg", "--csv", "--executor", "--top", "--jobs"}) {
    machine->excludes(verb.get_option(other));
  }
  add_ranks_options(verb, live.ranks);
  for (const char* own : {"--ranks", "--timeout", "--meet"}) verb.get_option(own)->needs(machine);
  verb.add_flag("--calibrate", live.calibrate, "measure the links of --live gloo first")
      ->needs(machine);
  verb.add_flag("--no-check", live.no_check,
                "do not compare the values that --live gloo exchanges with the host executor's")
      ->needs(machine);
  constexpr double kMostNoise = 30;  // percent: a normal step time stays above zero
  const auto add = [&](const char* name, auto& value, const char* about) {
    return verb.add_option(name, value, about)->needs(machine)->capture_default_str();
  };
  add("--noise", live.noise, "standard deviation of an emulated step, percent")
      ->check(number_from(0.0, kMostNoise));
  add("--steps", live.steps, "training steps an evaluation")->check(CLI::Range(2, 1000000));
  add("--seed", live.seed, "seed of the noise");
  add("--journal", live.journal,
      "file that keeps every evaluation: killed, the same command goes on from there");
  add("--wrong", live.wrong,
      "guide the search by a model that is off: latency=FACTOR,bandwidth=FACTOR");
  add("--pace", live.pace, "how long an emulated second takes, in seconds; 0: no time")
      ->check(number_from(0.0, 1000.0));
}

void check_live_options(const LiveVerbOptions& options) {
  if (options.budget < 1 || options.budget > 100000) {
    throw InputError("--budget: found " + std::to_string(options.budget) +
                     ", expected 1 to 100000 evaluations with --live");
  }
  guide_error(options.wrong);
  if (options.machine == "emulated") {
    for (const bool given :
         {options.ranks.ranks != 0, options.calibrate, options.no_check, options.exhaustive}) {
      if (!given) continue;
      throw InputError(
          "--live emulated: there are no ranks to start, links to measure, values to check or "
          "sweeps to run: --ranks, --calibrate, --no-check and --exhaustive go with --live gloo");
    }
  }
}

tune::GuideFactors guide_error(const std::string& text) {
  constexpr double kMost = 1000;
  tune::GuideFactors error;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const std::size_t equals = part.find('=');
    const std::string key = part.substr(0, equals);
    double factor = 0;
    if (equals != std::string::npos) {
      const char* last = part.data() + part.size();
      const auto read = std::from_chars(part.data() + equals + 1, last, factor);
      if (read.ec != std::errc() || read.ptr != last) factor = 0;
    }
    const bool known = key == "latency" || key == "bandwidth";
    if (!known || !(factor >= 1 / kMost && factor <= kMost)) {
      throw InputError("--wrong: found '" + part +
                       "', expected latency=FACTOR or bandwidth=FACTOR, from 0.001 to 1000");
    }
    (key == "latency" ? error.latency : error.transfer) = key == "latency" ? factor : 1 / factor;
    begin = end + 1;
  }
  return error;
}

}  // namespace syncline::cli
