// Models by the names that their makers give them.
#include <array>
#include <cctype>
#include <utility>

#include "catalogue/architectures/architecture.h"
#include "formats/text/visible.h"
#include "imports/frameworks/keys.h"
#include "imports/frameworks/settings.h"
#include "imports/models/families.h"

namespace syncline::job::frameworks {
namespace {

// Returns a model's name as its maker writes it, then without its kind of tuning and its version,
// all of it in letters and digits.
std::vector<std::string> names_of(const std::string& path) {
  std::string name = lower(path.substr(path.rfind('/') + 1));
  // ModelScope's folders have three underscores for a point.
  for (auto at = name.find("___"); at != name.npos; at = name.find("___")) name.replace(at, 3, ".");
  if (name.starts_with("meta-")) name.erase(0, 5);
  std::vector<std::string> names{models::plain_name(name)};
  const std::size_t version = name.rfind("-v");
  const bool versioned =
      version != name.npos && version + 2 < name.size() && std::isdigit(name[version + 2]) != 0;
  const std::string ending = versioned ? name.substr(version) : "";
  if (versioned) name.resize(version);
  // Releases have their month or day at the end.
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  const bool dated = digits > 0 && name[digits - 1] == '-' && name.size() - digits >= 4;
  if (dated && !versioned) name.resize(digits - 1);
  for (const char* end : {"-hf", "-thinking", "-instruct", "-chat", "-base", "-it", "-uncased"}) {
    if (!name.ends_with(end)) continue;
    name.resize(name.size() - std::string_view(end).size());
    if (versioned) names.push_back(models::plain_name(name + ending));
    names.push_back(models::plain_name(name));
  }
  names.push_back(models::plain_name(name));
  return names;
}

// Models of the same sizes as a row of another name.
constexpr std::array<std::pair<const char*, const char*>, 23> kSameSizes{
    {{"llama318b", "llama38b"},
     {"llama3170b", "llama370b"},
     {"llama3370b", "llama370b"},
     {"deepseekr1distillllama8b", "llama38b"},
     {"deepseekr1distillllama70b", "llama370b"},
     {"deepseekr1distillqwen14b", "qwen2514b"},
     {"deepseekr1distillqwen32b", "qwen2532b"},
     {"llama7b", "llama27b"},
     {"qwen257b", "qwen27b"},
     {"qwen25math7b", "qwen27b"},
     {"qwen25coder7b", "qwen27b"},
     {"qwen25math15b", "qwen2515b"},
     {"qwen25coder05b", "qwen2505b"},
     {"qwen25coder15b", "qwen2515b"},
     {"qwen25coder3b", "qwen253b"},
     {"qwen25coder14b", "qwen2514b"},
     {"qwen25coder32b", "qwen2532b"},
     {"gpt2", "gpt2small"},
     {"mistralnemo", "mistralnemo12b"},
     {"phi414b", "phi4"},
     {"phi3mini", "phi3mini4k"},
     {"vicuna7b", "llama27b"},
     {"vicuna13b", "llama213b"}}};

}  // namespace

void take_model_named(const std::string& name, Settings& settings) {
  for (std::string plain : names_of(name)) {
    for (const auto& [other, same] : kSameSizes) {
      if (plain == other) plain = same;
    }
    if (const std::string* known = models::find_named(plain); known != nullptr) {
      settings.model = *known;
      return;
    }
    for (const operators::Architecture& row : operators::architectures()) {
      if (row.shaped || models::plain_name(row.name) != plain) continue;
      settings.workload["operators"]["architecture"] = row.name;
      settings.workload["name"] = row.name;
      settings.workload["source"] = "generated: " + std::string(row.summary);
      return;
    }
  }
  settings.no_model = "'" + shorten_text(visible(name), 80) +
                      "', the model of these settings, is no architecture that is known by name";
}

}  // namespace syncline::job::frameworks
