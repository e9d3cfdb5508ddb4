#include "studies/warnings/gradient_order.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <string_view>

namespace syncline::measure {
namespace {

// "layer2.0.conv1.weight" -> form "layer#.#.conv#.weight" and numbers 2, 0, 1.
struct ParsedName {
  std::string form;
  std::vector<std::int64_t> numbers;
};

ParsedName parsed(const std::string& name) {
  constexpr std::int64_t kLargest = 1000000;  // a longer number is not a layer's
  ParsedName parsed;
  bool in_number = false;
  for (const char letter : name) {
    const bool digit = std::isdigit(static_cast<unsigned char>(letter)) != 0;
    if (!digit) {
      parsed.form += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    } else if (!in_number) {
      parsed.form += '#';
      parsed.numbers.push_back(letter - '0');
    } else {
      auto& number = parsed.numbers.back();
      number = std::min(kLargest, number * 10 + (letter - '0'));
    }
    in_number = digit;
  }
  return parsed;
}

// Returns true if one of the words is in the form, between dots, underscores and slashes.
template <std::size_t kCount>
bool has_word(const std::string& form, const std::array<std::string_view, kCount>& words) {
  constexpr std::string_view kSeparators = "._/:";
  for (std::size_t begin = 0; begin <= form.size();) {
    const std::size_t end = std::min(form.find_first_of(kSeparators, begin), form.size());
    const std::string_view word = std::string_view(form).substr(begin, end - begin);
    if (std::find(words.begin(), words.end(), word) != words.end()) return true;
    begin = end + 1;
  }
  return false;
}

// Returns true if torch, Keras or Paddle ("fc_0.w_0") name parameters like this.
bool names_parameter(const std::string& form) {
  constexpr std::array<std::string_view, 8> kWords{"weight", "weights", "bias",  "kernel",
                                                   "gamma",  "beta",    "scale", "offset"};
  const auto ends_in = [&](std::string_view tail) {
    return form.size() > tail.size() && form.ends_with(tail);
  };
  return has_word(form, kWords) || ends_in(".w_#") || ends_in(".b_#");
}

bool names_first_layer(const ParsedName& name) {
  constexpr std::array<std::string_view, 8> kWords{"embedding", "embeddings", "embed", "wte",
                                                   "wpe",       "stem",       "patch", "tokens"};
  const bool first_convolution =
      name.form.starts_with("conv#") && !name.numbers.empty() && name.numbers.front() <= 1;
  return first_convolution || has_word(name.form, kWords);
}

bool names_last_layer(const ParsedName& name) {
  constexpr std::array<std::string_view, 8> kWords{"fc",     "classifier", "head",      "lm",
                                                   "logits", "cls",        "predictor", "pooler"};
  return has_word(name.form, kWords);
}

struct Votes {
  int forward = 0;
  int backward = 0;

  bool clearly_forward() const { return forward >= 2 && forward > 3 * backward; }
};

// Counts votes of the numbers in names, each compared with the previous name of the same form.
Votes votes_of_numbers(const std::vector<ParsedName>& names, bool parameters_alone) {
  Votes votes;
  std::map<std::string_view, const ParsedName*> last;
  for (const auto& name : names) {
    if (name.numbers.empty() || (parameters_alone && !names_parameter(name.form))) continue;
    const ParsedName*& before = last[name.form];
    if (before != nullptr) {
      votes.forward += before->numbers < name.numbers;
      votes.backward += before->numbers > name.numbers;
    }
    before = &name;
  }
  return votes;
}

// Counts votes of adjacent matrices (outputs x inputs).
Votes votes_of_shapes(const Workload& workload) {
  Votes votes;
  const Tensor* before = nullptr;
  for (const auto& tensor : workload.tensors) {
    if (tensor.shape.size() < 2) continue;
    if (before != nullptr) {
      const bool feeds = before->shape[0] == tensor.shape[1];
      const bool fed = before->shape[1] == tensor.shape[0];
      votes.forward += feeds && !fed;
      votes.backward += fed && !feeds;
    }
    before = &tensor;
  }
  return votes;
}

}  // namespace

bool is_forward_order(const Workload& workload) {
  std::vector<ParsedName> names;
  for (const auto& tensor : workload.tensors) names.push_back(parsed(tensor.name));
  if (names.size() < 2) return false;
  if (votes_of_numbers(names, true).clearly_forward()) return true;
  const Votes numbers = votes_of_numbers(names, false);
  const Votes shapes = votes_of_shapes(workload);
  if (numbers.clearly_forward() && shapes.clearly_forward()) return true;
  const bool ends = names_first_layer(names.front()) && names_last_layer(names.back());
  return ends && numbers.backward <= numbers.forward;
}

}  // namespace syncline::measure
