#include "formats/json/reader.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <numeric>
#include <sstream>
#include <utility>

namespace syncline {
namespace {

bool is_digit(char letter) { return std::isdigit(static_cast<unsigned char>(letter)) != 0; }
bool is_part(char letter) { return std::isalnum(static_cast<unsigned char>(letter)) != 0; }

// Returns the lower-case runs of letters and digits: "A100-SXM4" has two.
std::vector<std::string> parts_of(std::string_view text) {
  std::vector<std::string> parts(1);
  for (const char letter : text) {
    if (is_part(letter)) {
      parts.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    } else if (!parts.back().empty()) {
      parts.emplace_back();
    }
  }
  if (parts.back().empty()) parts.pop_back();
  return parts;
}

std::string bare(std::string_view text) {
  std::string joined;
  for (const auto& part : parts_of(text)) joined += part;
  return joined;
}

bool has_all_parts(std::string_view of, std::string_view in) {
  const std::vector<std::string> wanted = parts_of(of);
  const std::vector<std::string> there = parts_of(in);
  return !wanted.empty() && std::all_of(wanted.begin(), wanted.end(), [&](const std::string& part) {
    return std::find(there.begin(), there.end(), part) != there.end();
  });
}

// Names in other programs, without case and punctuation. Not `same`: a similar thing.
struct Alias {
  std::string_view ours;
  std::string_view theirs;  // words
  bool same = true;
};
constexpr Alias kAliases[] = {
    {"fp16", "float16 half"},
    {"bf16", "bfloat16"},
    {"fp32", "float32 float"},
    {"fp64", "float64 double"},
    {"pytorch", "ddp torch distributeddataparallel"},
    {"fsdp", "fsdp2"},
    {"fsdp", "fsdp1", false},
    {"deepspeed", "zero", false},
    {"hf_trainer", "trainer huggingface transformers", false},
    {"nccl", "nvls", false},
    {"shape", "size numel", false},
    {"--format", "json csv", false},
};

// Returns the name that an alias of the word means, if it is among `names`.
std::optional<std::string> by_alias(std::string_view word, const std::vector<std::string>& names,
                                    bool same) {
  constexpr std::string_view kTorch = "torch.";
  const std::string whole = bare(word.starts_with(kTorch) ? word.substr(kTorch.size()) : word);
  for (const Alias& alias : kAliases) {
    if (alias.same == same && has_all_parts(whole, alias.theirs) &&
        std::find(names.begin(), names.end(), alias.ours) != names.end()) {
      return std::string(alias.ours);
    }
  }
  return std::nullopt;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

std::string digits_of(std::string_view text) {
  std::string digits;
  std::copy_if(text.begin(), text.end(), std::back_inserter(digits), is_digit);
  return digits;
}

// Returns true if the shorter text is the longer one without some of its letters.
bool only_misses(std::string_view a, std::string_view b) {
  const auto [shorter, longer] = a.size() < b.size() ? std::pair{a, b} : std::pair{b, a};
  std::size_t met = 0;
  for (const char letter : longer) met += met < shorter.size() && shorter[met] == letter;
  return met == shorter.size();
}

using Rule = bool (*)(std::string_view word, const std::string& name);

bool has_parts(std::string_view word, const std::string& name) { return has_all_parts(word, name); }
bool begins(std::string_view word, const std::string& name) {
  return bare(name).starts_with(bare(word));
}
// Returns true for one extra letter, not a digit: an A100 is not a mistyped A10.
bool has_a_letter_too_many(std::string_view word, const std::string& name) {
  const std::string a = bare(word);
  const std::string b = bare(name);
  return a.size() == b.size() + 1 && digits_of(a) == digits_of(b) && only_misses(a, b);
}
bool is_part_of(std::string_view word, const std::string& name) {
  return has_all_parts(name, word);
}

std::vector<std::string> family(std::string_view word, const std::vector<std::string>& names) {
  constexpr std::size_t kMin = 2;  // letters of a meaningful part
  if (bare(word).size() < kMin) return {};
  for (const Rule rule : {has_parts, begins, has_a_letter_too_many, is_part_of}) {
    std::vector<std::string> kin;
    std::copy_if(names.begin(), names.end(), std::back_inserter(kin),
                 [&](const std::string& name) { return rule(word, name); });
    if (!kin.empty()) return kin;
  }
  return {};
}

// Returns names within a typo. A word that is mostly a number differs from all other numbers: an
// A30 is not an A10.
std::vector<std::string> few_letters_apart(std::string_view word,
                                           const std::vector<std::string>& names) {
  const std::string whole = bare(word);
  const std::string digits = digits_of(whole);
  const bool is_number = 2 * digits.size() > whole.size();
  std::vector<std::string> best;
  std::size_t least = (whole.size() + 2) / 3 + 1;
  for (const auto& name : names) {
    if (is_number && !only_misses(digits, digits_of(name))) continue;
    const std::size_t distance = edit_distance(whole, bare(name));
    if (distance >= std::min(least, whole.size())) continue;
    least = distance;
    best = {name};
  }
  return best;
}

struct Unit {
  std::string_view ending;
  std::string_view quantity;
  double size;
};
// Longer endings come first.
constexpr Unit kUnits[] = {
    {"_gbytes_per_s", "rate", 8e9},
    {"_mbytes_per_s", "rate", 8e6},
    {"_per_s", "", 1},
    {"_kbps", "rate", 1e3},
    {"_mbps", "rate", 1e6},
    {"_gbps", "rate", 1e9},
    {"_ms", "time", 1e-3},
    {"_us", "time", 1e-6},
    {"_ns", "time", 1e-9},
    {"_s", "time", 1},
    {"_bytes", "size", 1},
    {"_kb", "size", 1024.0},
    {"_mb", "size", 1048576.0},
    {"_gb", "size", 1073741824.0},
    {"_gflops", "work", 1e9},
    {"_tflops", "work", 1e12},
};

const Unit* unit_of(std::string_view name) {
  const auto* unit = std::find_if(std::begin(kUnits), std::end(kUnits),
                                  [&](const Unit& known) { return name.ends_with(known.ending); });
  return unit == std::end(kUnits) ? nullptr : unit;
}

// Returns " 1 ms is 1000 us" if two names differ in their units.
std::string factor_between(std::string_view word, std::string_view name) {
  const Unit* from = unit_of(word);
  const Unit* to = unit_of(name);
  if (from == nullptr || to == nullptr || from == to || from->quantity != to->quantity) return "";
  std::ostringstream text;
  text << " 1 " << from->ending.substr(1) << " is " << from->size / to->size << " "
       << to->ending.substr(1);
  return text.str();
}

}  // namespace

std::optional<std::string> same_name(std::string_view word, const std::vector<std::string>& names) {
  if (auto ours = by_alias(word, names, true)) return ours;
  const std::string whole = bare(word);
  std::optional<std::string> same;
  for (const auto& name : names) {
    if (whole.empty() || bare(name) != whole) continue;
    if (same) return std::nullopt;
    same = name;
  }
  return same;
}

std::vector<std::string> near_names(std::string_view word, const std::vector<std::string>& names) {
  if (auto same = same_name(word, names)) return {*same};
  if (auto near = by_alias(word, names, false)) return {*near};
  const std::vector<std::string> kin = family(word, names);
  return kin.empty() ? few_letters_apart(word, names) : kin;
}

std::string question_of(std::string_view word, const std::vector<std::string>& near) {
  if (near.empty()) return "";
  constexpr std::size_t kNamed = 6;
  std::string text = near.size() == 1 ? "did you mean " : "did you mean one of ";
  for (std::size_t i = 0; i < std::min(near.size(), kNamed); ++i) {
    text += (i > 0 ? ", '" : "'") + near[i] + "'";
  }
  if (near.size() > kNamed) text += " and " + std::to_string(near.size() - kNamed) + " more";
  return text + "?" + (near.size() == 1 ? factor_between(word, near.front()) : "");
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& names) {
  const std::string question = question_of(word, near_names(word, names));
  return question.empty() ? "" : " (" + question + ")";
}

}  // namespace syncline
