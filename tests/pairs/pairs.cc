// The net over pairs of capabilities as a program, whose cases that break a law become files:
//   syncline_pairs FOLDER [--jobs N] [--triples N] [--seed N] [--only FRAGMENT] [--every N]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/pairs/net.h"

namespace syncline::pairs {
namespace {

struct Words {
  std::string folder;
  std::map<std::string, std::string> options;

  std::uint64_t number(const std::string& key, std::uint64_t fallback) const {
    const auto found = options.find(key);
    return found == options.end() ? fallback : std::strtoull(found->second.c_str(), nullptr, 10);
  }
};

Words words_of(int count, char** given) {
  Words words;
  for (int i = 1; i < count; ++i) {
    const std::string word = given[i];
    if (word.starts_with("--") && i + 1 < count) {
      words.options[word.substr(2)] = given[++i];
    } else {
      words.folder = word;
    }
  }
  return words;
}

std::string file_name(const Case& one) {
  std::string name = name_of(one.shape, one.chosen);
  std::ranges::replace(name, ' ', '_');
  return name + ".json";
}

// Each beside what it breaks.
void write_broken(const std::vector<Result>& results, const std::string& folder) {
  std::filesystem::create_directories(folder);
  std::ofstream list(folder + "/faults.txt");
  for (const Result& each : results) {
    if (each.verdict.faults.empty()) continue;
    const std::string file = folder + "/" + file_name(each.of);
    std::ofstream(file) << scenario_of(each.of.shape, each.of.chosen).dump(2) << "\n";
    for (const Fault& fault : each.verdict.faults) {
      list << fault.law << ": " << fault.what << "  " << file << "\n";
    }
  }
}

bool has(const Case& one, const std::string& fragment) {
  return std::ranges::any_of(one.chosen,
                             [&](std::size_t each) { return fragments()[each].name == fragment; });
}

int net(const Words& words) {
  if (words.folder.empty()) {
    std::cerr << "the folder for scenarios that break a law is missing\n";
    return 2;
  }
  constexpr std::uint64_t kTriples = 2000;
  std::vector<Case> cases = pair_cases();
  const std::size_t pairs = cases.size();
  const auto triples = drawn_cases(words.number("triples", kTriples), 3, words.number("seed", 1));
  cases.insert(cases.end(), triples.begin(), triples.end());
  std::cout << pairs << " scenarios of one fragment or two, " << triples.size() << " of three\n";
  const auto only = words.options.find("only");
  if (only != words.options.end()) {
    std::erase_if(cases, [&](const Case& one) { return !has(one, only->second); });
  }
  const std::uint64_t every = words.number("every", 1);
  std::vector<Case> taken;
  for (std::size_t i = 0; i < cases.size(); i += every) taken.push_back(cases[i]);
  NetOptions options;
  options.jobs = static_cast<int>(words.number("jobs", 1));
  const auto results = judged(taken, options);
  write_broken(results, words.folder);
  std::cout << report_of(results);
  const bool broken =
      std::ranges::any_of(results, [](const Result& each) { return !each.verdict.faults.empty(); });
  if (broken) std::cout << "each in " << words.folder << ", listed in faults.txt\n";
  return broken ? 1 : 0;
}

}  // namespace
}  // namespace syncline::pairs

int main(int count, char** given) {
  return syncline::pairs::net(syncline::pairs::words_of(count, given));
}
