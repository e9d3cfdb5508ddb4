#include "imports/observed.h"

#include <algorithm>
#include <array>
#include <map>

namespace syncline::job {

const char* role_text(Role role) {
  constexpr std::array<const char*, 11> kTexts{
      "unknown", "tensor",      "context",     "expert",        "expert tensor", "pipeline",
      "data",    "data, inner", "data, outer", "data, experts", "other"};
  return kTexts[static_cast<std::size_t>(role)];
}

bool carries_gradients(Role role) {
  return role == Role::kData || role == Role::kInner || role == Role::kOuter ||
         role == Role::kExpertData;
}

Bytes gradient_bytes(const Step& step) {
  Bytes bytes = 0;
  for (const Gradient& gradient : step.gradients) bytes += gradient.bytes();
  return bytes;
}

bool carries_gradients(const Step& step) {
  return std::ranges::any_of(
      step.exchanges, [](const ObservedExchange& exchange) { return !exchange.gradients.empty(); });
}

std::string source_of(const Observed& observed) {
  return observed.file.substr(observed.file.rfind('/') + 1) + ", " + observed.format;
}

std::string source_of(const Observed& observed, const Step& step) {
  return source_of(observed) + ", step " + std::to_string(step.number) + " of rank " +
         std::to_string(observed.ranks.front().rank);
}

bool is_own(const ObservedExchange& exchange) {
  constexpr std::array<std::string_view, 5> kOwn{"all_to_all", "all_gather", "reduce_scatter",
                                                 "send_recv", "deep_ep"};
  return exchange.gradients.empty() && std::ranges::find(kOwn, exchange.kind) != kOwn.end();
}

std::string own_collectives(const Step& step) {
  std::map<std::string, std::size_t> counts;
  for (const ObservedExchange& exchange : step.exchanges) {
    if (is_own(exchange)) ++counts[exchange.kind];
  }
  std::string text;
  for (const auto& [kind, count] : counts) {
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + kind;
  }
  return text;
}

void note_optimizer(std::string_view mark, std::vector<std::string>& optimizers) {
  constexpr std::string_view kBegin = "Optimizer.step#", kEnd = ".step";
  if (!mark.starts_with(kBegin) || !mark.ends_with(kEnd)) return;
  mark.remove_prefix(kBegin.size());
  mark.remove_suffix(std::min(mark.size(), kEnd.size()));
  if (mark.empty() || std::ranges::find(optimizers, mark) != optimizers.end()) return;
  optimizers.emplace_back(mark);
}

const Step& typical_step(const Rank& rank) {
  std::vector<const Step*> steps;
  for (const Step& step : rank.steps) steps.push_back(&step);
  const auto middle = steps.begin() + static_cast<std::ptrdiff_t>((steps.size() - 1) / 2);
  std::nth_element(steps.begin(), middle, steps.end(),
                   [](const Step* a, const Step* b) { return a->gpu < b->gpu; });
  return **middle;
}

}  // namespace syncline::job
