#include "formats/dialect/changes.h"

#include <limits>
#include <utility>

#include "catalogue/hardware/device.h"

namespace syncline::dialect {
namespace {

std::string value_text(const Json& value) {
  if (value.is_null()) return "none";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// Adds a part to the text for each key that the patch changes; walks into objects.
void tell(const Json& config, const Json& patch, const Json& defaults, const std::string& above,
          std::string& text) {
  for (const auto& [key, value] : patch.items()) {
    const std::string path = above.empty() ? key : above + "." + key;
    const Json* before = config.contains(key) ? &config[key] : nullptr;
    const Json* otherwise = defaults.contains(key) ? &defaults[key] : nullptr;
    if (value.is_null() && before == nullptr) continue;
    if (value.is_object()) {
      static const Json none = Json::object();
      tell(before != nullptr && before->is_object() ? *before : none, value,
           otherwise != nullptr ? *otherwise : none, path, text);
      continue;
    }
    if (before != nullptr ? *before == value : otherwise != nullptr && *otherwise == value) {
      continue;
    }
    if (!text.empty()) text += ", ";
    text += path + ": ";
    text += before != nullptr      ? value_text(*before)
            : otherwise != nullptr ? value_text(*otherwise) + " (default)"
                                   : "not given";
    text += " -> " + value_text(value);
  }
}

}  // namespace

std::string_view words_of(ChangeKind kind) {
  constexpr std::array<std::string_view, 10> kWords{"fuse operators",
                                                    "other buckets",
                                                    "keep gradients in their buckets",
                                                    "other overlap",
                                                    "sum gradients once per step",
                                                    "other levels",
                                                    "other scheme",
                                                    "round gradients",
                                                    "compress gradients",
                                                    "average more rarely"};
  return kWords.at(static_cast<std::size_t>(kind));
}

std::string change_text(const Dialect& dialect, const Json& config, const Json& patch) {
  std::string text;
  tell(config, patch, dialect.defaults, "", text);
  return text;
}

bool has_bf16(const Cluster& cluster) {
  const auto* device = hardware::recognise_device(cluster.device.name);
  if (device == nullptr) device = hardware::find_device(cluster.device.name);
  return device != nullptr && device->bf16;
}

Changes accumulation_changes() {
  Changes changes;
  for (const bool once : {true, false}) {
    changes.push_back({ChangeKind::kAccumulation, {{"no_sync", once}}});
  }
  return changes;
}

std::vector<std::int64_t> groups_below(const Cluster& cluster) {
  std::vector<std::int64_t> groups;
  if (cluster.gpus_per_node == 1) return groups;
  for (std::int64_t ranks = cluster.gpus_per_node; ranks < cluster.ranks(); ranks *= 2) {
    if (cluster.ranks() % ranks == 0) groups.push_back(ranks);
  }
  return groups;
}

std::vector<Json> for_each_size(const Partitions& partitions, Fusion::Close close,
                                const std::function<std::vector<Json>(Bytes, Bytes)>& configs) {
  Fusion form;
  form.rule = Fusion::Rule::kSize;
  form.close = close;
  const std::vector<Bytes> sizes = partitions.sizes(form);
  std::vector<Json> list;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const Bytes end = i + 1 < sizes.size() ? sizes[i + 1] : std::numeric_limits<Bytes>::max();
    for (auto& config : configs(sizes[i], end)) list.push_back(std::move(config));
  }
  return list;
}

}  // namespace syncline::dialect
