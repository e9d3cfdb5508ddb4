#include "tests/pairs/net.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/base/index.h"
#include "core/base/random.h"
#include "tests/support/dice.h"

namespace syncline::pairs {
namespace {

Json json_of(const Verdict& verdict) {
  Json faults = Json::array();
  for (const Fault& fault : verdict.faults) faults.push_back({fault.law, fault.what});
  return {{"refusal", verdict.refusal},
          {"faults", std::move(faults)},
          {"merged", verdict.merged},
          {"in_steps", verdict.in_steps}};
}

Verdict verdict_of(const Json& json) {
  Verdict verdict;
  verdict.refusal = json["refusal"];
  for (const Json& fault : json["faults"]) verdict.faults.push_back({fault[0], fault[1]});
  verdict.merged = json["merged"].is_number() ? json["merged"].get<double>() : 0;
  verdict.in_steps = json["in_steps"].is_number() ? json["in_steps"].get<double>() : 0;
  return verdict;
}

// One worker's cases: those of a number from `next` on, `jobs` apart. A line each when it begins
// and when it is done. Never returns.
[[noreturn]] void work(const std::vector<Case>& cases, std::size_t next, const NetOptions& options,
                       const std::string& file) {
  std::ofstream out(file, std::ios::app);
  const auto every = [](std::size_t number, std::size_t so_many) {
    return so_many > 0 && number % so_many == 0;
  };
  for (std::size_t i = next; i < cases.size(); i += index(options.jobs)) {
    out << i << " begins" << std::endl;
    ::alarm(options.seconds_each);
    const Asked asked{true, every(i, options.in_steps_every), every(i, options.tuned_every)};
    const Verdict verdict = options.judge(scenario_of(cases[i].shape, cases[i].chosen), asked);
    out << i << " " << json_of(verdict).dump(-1, ' ', false, Json::error_handler_t::replace)
        << std::endl;
  }
  out.flush();
  ::_exit(0);
}

std::string ending_of(int status) {
  if (!WIFSIGNALED(status)) return "exit code " + std::to_string(WEXITSTATUS(status));
  return WTERMSIG(status) == SIGALRM ? "hangs" : "signal " + std::to_string(WTERMSIG(status));
}

// The last case of which a line stands there, and whether it is done.
std::pair<std::size_t, bool> last_in(const std::string& file) {
  std::ifstream in(file);
  std::pair<std::size_t, bool> last{0, false};
  for (std::string line; std::getline(in, line);) {
    last = {std::strtoull(line.c_str(), nullptr, 10), !line.ends_with(" begins")};
  }
  return last;
}

// Workers one after the other until all of the cases are done, each behind the one at which the
// worker before it ended.
void supervise(const std::vector<Case>& cases, std::size_t first, const NetOptions& options,
               const std::string& file) {
  for (std::size_t next = first; next < cases.size();) {
    const pid_t worker = ::fork();
    if (worker == 0) work(cases, next, options, file);
    int status = 0;
    ::waitpid(worker, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
    const auto [last, done] = last_in(file);
    Verdict crashed;
    crashed.faults.push_back({"ends", ending_of(status)});
    if (!done) std::ofstream(file, std::ios::app) << last << " " << json_of(crashed) << "\n";
    next = last + index(options.jobs);
  }
}

void read_results(const std::string& file, std::vector<Result>& results) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const std::size_t space = line.find(' ');
    if (line.ends_with(" begins")) continue;
    results.at(std::strtoull(line.c_str(), nullptr, 10)).verdict =
        verdict_of(Json::parse(line.substr(space + 1)));
  }
}

// What so many of the values do not exceed, sorted here.
double quantile(std::vector<double>& values, double share) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

std::string line(const char* format, auto... values) {
  char text[400];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

// The fragments that stand in most of the cases, with how many of theirs those are.
std::string often_in(const std::vector<const Result*>& broken,
                     const std::map<std::size_t, std::size_t>& all) {
  std::map<std::size_t, std::size_t> counts;
  for (const Result* each : broken) {
    for (const std::size_t fragment : each->of.chosen) ++counts[fragment];
  }
  std::vector<std::pair<std::size_t, std::size_t>> sorted(counts.begin(), counts.end());
  std::ranges::sort(sorted, std::ranges::greater(), &std::pair<std::size_t, std::size_t>::second);
  std::string text;
  constexpr std::size_t kShown = 6;
  for (std::size_t i = 0; i < std::min(kShown, sorted.size()); ++i) {
    const auto [fragment, count] = sorted[i];
    text += (text.empty() ? "" : ", ") + fragments()[fragment].name + " " + std::to_string(count) +
            " of " + std::to_string(all.at(fragment));
  }
  return text;
}

std::string refusals_text(const std::vector<Result>& results) {
  std::map<std::string, std::vector<const Result*>> kinds;
  for (const Result& each : results) {
    if (!each.verdict.refusal.empty())
      kinds[kind_of_refusal(each.verdict.refusal)].push_back(&each);
  }
  std::string text = line("%zu kinds of refusals:\n", kinds.size());
  for (const auto& [kind, list] : kinds) {
    text += line("%6zu  ", list.size()) + kind + "  [" +
            name_of(list.front()->of.shape, list.front()->of.chosen) + "]\n";
  }
  return text;
}

std::string faults_text(const std::vector<Result>& results) {
  std::map<std::size_t, std::size_t> of_fragment;
  std::map<std::string, std::vector<const Result*>> by_law;
  for (const Result& each : results) {
    for (const std::size_t fragment : each.of.chosen) ++of_fragment[fragment];
    std::set<std::string> laws;
    for (const Fault& fault : each.verdict.faults) laws.insert(fault.law);
    for (const auto& law : laws) by_law[law].push_back(&each);
  }
  std::string text;
  for (const auto& [law, list] : by_law) {
    text += line("%zu break '%s': ", list.size(), law.c_str()) + often_in(list, of_fragment) + "\n";
  }
  return text;
}

}  // namespace

std::vector<Case> pair_cases() {
  std::vector<Case> cases;
  const std::size_t count = fragments().size();
  for (const Shape& shape : shapes()) {
    cases.push_back({shape, {}});
    for (std::size_t a = 0; a < count; ++a) {
      cases.push_back({shape, {a}});
      for (std::size_t b = a + 1; b < count; ++b) {
        if (!exclude({a, b})) cases.push_back({shape, {a, b}});
      }
    }
  }
  return cases;
}

std::vector<Case> drawn_cases(std::size_t count, std::size_t so_many, std::uint64_t seed) {
  test::Dice dice(seed);
  std::vector<Case> cases;
  const int last = static_cast<int>(fragments().size()) - 1;
  while (cases.size() < count) {
    std::set<std::size_t> drawn;
    while (drawn.size() < so_many) drawn.insert(index(dice.between(0, last)));
    const Case one{dice.pick(shapes()), {drawn.begin(), drawn.end()}};
    if (!exclude(one.chosen)) cases.push_back(one);
  }
  return cases;
}

std::vector<Result> judged(const std::vector<Case>& cases, const NetOptions& options) {
  const std::string folder =
      std::filesystem::temp_directory_path() / ("syncline-pairs-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const auto file = [&](int job) { return folder + "/" + std::to_string(job); };
  std::vector<pid_t> supervisors;
  for (int job = 0; job < options.jobs; ++job) {
    std::fflush(nullptr);
    const pid_t own = ::fork();
    if (own == 0) {
      supervise(cases, index(job), options, file(job));
      ::_exit(0);
    }
    supervisors.push_back(own);
  }
  for (const pid_t each : supervisors) ::waitpid(each, nullptr, 0);
  std::vector<Result> results;
  for (const Case& each : cases) results.push_back({each, {}});
  for (int job = 0; job < options.jobs; ++job) read_results(file(job), results);
  std::filesystem::remove_all(folder);
  return results;
}

std::string kind_of_refusal(const std::string& text) {
  std::string kind;
  bool quoted = false, number = false;
  const std::size_t file = text.find(".json: ");
  for (const char c : file == text.npos ? text : text.substr(file + 7)) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (c == '\'') quoted = !quoted;
    if (digit && number) continue;
    number = digit;
    if (c == '\'' && !quoted) kind += "'...'";
    if (c == '\'' || quoted) continue;
    kind += digit ? 'N' : c;
  }
  return kind;
}

std::string report_of(const std::vector<Result>& results) {
  std::size_t refused = 0, broken = 0;
  std::vector<double> merged, in_steps;
  for (const Result& each : results) {
    refused += each.verdict.refusal.empty() ? 0 : 1;
    broken += each.verdict.faults.empty() ? 0 : 1;
    if (each.verdict.merged > 0) merged.push_back(each.verdict.merged);
    if (each.verdict.in_steps > 0) in_steps.push_back(each.verdict.in_steps);
  }
  std::string text =
      line("%zu fragments, %zu scenarios: %zu evaluated, %zu refused, %zu with faults\n",
           fragments().size(), results.size(), results.size() - refused, refused, broken);
  for (auto& [name, apart] : {std::pair("merged", &merged), {"message by message", &in_steps}}) {
    text += line(
        "model and simulation %s apart: %.2f %% in 90 of 100, %.2f %% in 99, %.2f %% at worst\n",
        name, 100 * quantile(*apart, 0.9), 100 * quantile(*apart, 0.99), 100 * quantile(*apart, 1));
  }
  return text + refusals_text(results) + faults_text(results);
}

}  // namespace syncline::pairs
