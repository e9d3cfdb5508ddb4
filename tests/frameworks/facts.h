// Facts about frameworks: cases of facts/*.json, which the scripts in this folder write.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "formats/json/text.h"
#include "tests/support/readings.h"
#include "tests/support/small_plans.h"

namespace syncline::test {

struct Facts {
  std::string file;
  Json head;
  std::vector<Json> cases;

  // Above which a failure is read.
  std::string place(const Json& one) const { return file + ", seed " + one.at("seed").dump(); }
};

// Returns the facts of a rule, of each version that was recorded.
inline std::vector<Facts> facts_of(const std::string& rule) {
  std::vector<std::filesystem::path> files;
  const auto folder = std::filesystem::path(SYNCLINE_SOURCE_DIR) / "tests" / "frameworks" / "facts";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename().string().ends_with("_" + rule + ".json")) {
      files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  std::vector<Facts> all;
  for (const auto& file : files) {
    Json json = read_json_file(file.string());
    std::vector<Json> cases = json.at("cases").get<std::vector<Json>>();
    json.erase("cases");
    all.push_back({file.filename().string(), std::move(json), std::move(cases)});
  }
  EXPECT_FALSE(all.empty()) << rule;
  return all;
}

inline DType dtype_of(const std::string& name) {
  for (const DType each : {DType::kFp16, DType::kBf16, DType::kFp64}) {
    if (to_string(each) == name) return each;
  }
  return DType::kFp32;
}

// The gradients of a case in the order in which they arrived.
inline Workload workload_of_case(const Facts& facts, const Json& one) {
  Workload workload;
  workload.framework_version = facts.head.at("version").get<std::string>();
  workload.forward = 1e-3;
  workload.micro_batches = one.value("micro_batches", 1);
  for (const Json& entry : one.at("tensors")) {
    const auto dtype = entry.size() > 2 ? dtype_of(entry[2].get<std::string>()) : DType::kFp32;
    const auto name = entry[0].get<std::string>();
    workload.tensors.push_back(tensor_of(name, entry[1].get<std::vector<std::int64_t>>(), dtype));
    workload.tensors.back().backward = 1e-3;
    const Json frozen = one.value("frozen", Json::array());
    workload.tensors.back().frozen = std::find(frozen.begin(), frozen.end(), name) != frozen.end();
  }
  for (std::size_t t = workload.tensors.size(); workload.tensors[--t].frozen;) {
    workload.tensors[t].backward = 0;
  }
  if (!one.contains("registered")) return workload;
  for (std::size_t t = 0; t < workload.tensors.size(); ++t) {
    workload.tensors[t].registered = one.at("registered")[t].get<int>();
  }
  return workload;
}

// When a collective of a plan is asked for: "f1" in the forward pass of micro-batch 1, "b1" in the
// backward pass, "u" behind the last. What is gathered at the end of a step is for the next one's
// forward pass where layers wait for their own parameters.
inline std::string when_of(const plan::Plan& plan, std::size_t at, bool across_steps) {
  const auto phase_of = [](const plan::Op& op) {
    const auto* compute = std::get_if<plan::Compute>(&op.work);
    return compute == nullptr ? std::optional<plan::Phase>() : compute->phase;
  };
  int passes = 0;  // backward passes that have begun
  bool backward = false;
  bool updated = false;
  for (std::size_t i = 0; i < at; ++i) {
    const auto phase = phase_of(plan.ops[i]);
    if (!phase) continue;
    if (*phase == plan::Phase::kBackward && !backward) ++passes;
    backward = *phase == plan::Phase::kBackward;
    updated = updated || *phase == plan::Phase::kUpdate;
  }
  if (!plan.ops[at].gathers) return "b" + std::to_string(passes - 1);
  for (std::size_t i = at; i < plan.ops.size(); ++i) {
    const auto phase = phase_of(plan.ops[i]);
    if (!phase || *phase == plan::Phase::kUpdate) continue;
    if (*phase == plan::Phase::kForward) return "f" + std::to_string(passes);
    return "b" + std::to_string(passes - (backward ? 1 : 0));
  }
  return across_steps ? "f0" : "u";
}

// When, kind, elements, bytes an element, ranks: what the steps of a plan ask of one rank, those
// for the forward pass of the first micro-batch first.
// `elements_of` says what the framework adds to a collective's own elements.
using ElementsOf = std::function<std::int64_t(const plan::Op&, std::int64_t)>;
inline std::vector<Json> collectives_of(const plan::Plan& plan, bool across_steps,
                                        const ElementsOf& elements_of = {}) {
  std::vector<Json> list;
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const auto* one = std::get_if<collective::Collective>(&plan.ops[i].work);
    if (one == nullptr) continue;
    const auto elements = elements_of ? elements_of(plan.ops[i], one->elements) : one->elements;
    list.push_back({when_of(plan, i, across_steps), collective::to_string(one->kind), elements,
                    one->unit, one->groups.size});
  }
  std::ranges::stable_partition(list, [](const Json& one) { return one[0] == "f0"; });
  return list;
}

// Sorts the collectives that follow a backward pass, which are marked with "e".
inline std::vector<Json> with_ends_sorted(std::vector<Json> list, const std::vector<Json>& marked) {
  for (std::size_t i = 0; i < std::min(list.size(), marked.size()); ++i) {
    std::string when = marked[i][0].get<std::string>();
    if (when[0] != 'e') continue;
    when[0] = 'b';
    if (list[i][0] == when) list[i][0] = marked[i][0];
  }
  for (auto at = list.begin(); at != list.end();) {
    const auto end =
        std::find_if(at, list.end(), [&](const Json& one) { return one[0] != (*at)[0]; });
    if ((*at)[0].get<std::string>()[0] == 'e') std::sort(at, end);
    at = end;
  }
  return list;
}

// `all` as collectives_of has them.
inline void expect_collectives(const std::vector<Json>& all, const Json& one) {
  const auto marked = one.at("collectives").get<std::vector<Json>>();
  const auto ours = with_ends_sorted(all, marked);
  const auto theirs = with_ends_sorted(marked, marked);
  if (ours == theirs) return;
  std::string text = "ours | theirs\n";
  for (std::size_t i = 0; i < std::max(ours.size(), theirs.size()); ++i) {
    text += (i < ours.size() ? ours[i].dump() : "-") + " | " +
            (i < theirs.size() ? theirs[i].dump() : "-") + "\n";
  }
  ADD_FAILURE() << text;
}

// The names of the gradients that each collective of a plan sums, each group in alphabetical order.
using NamedGroups = std::vector<std::vector<std::string>>;
inline NamedGroups groups_of_plan(const plan::Plan& plan, const Workload& workload) {
  NamedGroups groups;
  for (const plan::Bucket& bucket : plan.buckets) {
    std::vector<std::string>& group = groups.emplace_back();
    for (const int t : bucket.tensors) {
      group.push_back(workload.tensors[static_cast<std::size_t>(t)].name);
    }
    std::ranges::sort(group);
  }
  return groups;
}

inline NamedGroups groups_of_case(const Json& one) {
  auto groups = one.at("groups").get<NamedGroups>();
  for (auto& group : groups) std::ranges::sort(group);
  return groups;
}

inline NamedGroups sorted_groups(NamedGroups groups) {
  std::ranges::sort(groups);
  return groups;
}

}  // namespace syncline::test
