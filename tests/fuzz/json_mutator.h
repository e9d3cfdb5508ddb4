// Text alone seldom stays JSON: for readers of JSON, libFuzzer's own changes of bytes take turns
// with changes of values, keys and lists that keep the rest as it is.
#pragma once

#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace syncline::fuzz {

using AnyJson = nlohmann::ordered_json;

inline void collect(AnyJson& node, std::vector<AnyJson*>& nodes) {
  nodes.push_back(&node);
  if (!node.is_structured()) return;
  for (auto& child : node) collect(child, nodes);
}

inline AnyJson other_value(const AnyJson& old, const std::vector<AnyJson*>& nodes,
                           std::mt19937& random) {
  if (random() % 3 == 0) return *nodes[random() % nodes.size()];  // from elsewhere in the text
  if (old.is_number() && random() % 2 == 0) {
    constexpr double kFactors[] = {0, -1, 0.5, 2, 10, 1000, 1e-9, 1e9};
    const double value = old.get<double>() * kFactors[random() % std::size(kFactors)];
    if (old.is_number_integer() && std::abs(value) < 1e15) return static_cast<std::int64_t>(value);
    return value;
  }
  static const AnyJson values = AnyJson::parse(
      R"([null, true, false, 0, 1, 2, 7, -1, 0.5, 1e-300, 1e300, 1e15, 9007199254740993,
          "", "none", "ring", "nccl", "fp16", "dgc", "size", "auto", [], {}])");
  return values[random() % values.size()];
}

inline void change(AnyJson& root, std::mt19937& random) {
  std::vector<AnyJson*> nodes;
  collect(root, nodes);
  AnyJson& node = *nodes[random() % nodes.size()];
  const auto kind = random() % 4;
  if (node.is_structured() && !node.empty() && kind < 2) {
    auto at = node.begin();
    std::advance(at, random() % node.size());
    if (kind == 0) {
      node.erase(at);
    } else if (node.is_array()) {
      const AnyJson again = *at;
      node.push_back(again);
    } else {
      const AnyJson moved = *at;
      const auto from = nodes[random() % nodes.size()];
      if (from->is_object() && !from->empty()) node[from->begin().key()] = moved;
    }
    return;
  }
  const AnyJson value = other_value(node, nodes, random);
  node = value;
}

// JSON with up to three changes; nothing where the text is none.
inline std::optional<std::string> changed_json(std::string_view text, std::mt19937& random) {
  AnyJson root = AnyJson::parse(text, nullptr, false);
  if (root.is_discarded()) return std::nullopt;
  for (auto changes = 1 + random() % 3; changes > 0; --changes) change(root, random);
  return root.dump(-1, ' ', false, AnyJson::error_handler_t::replace);
}

}  // namespace syncline::fuzz

#ifdef SYNCLINE_LIBFUZZER

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  std::mt19937 random(seed);
  if (random() % 8 == 0) return LLVMFuzzerMutate(data, size, most);
  const std::string_view old(reinterpret_cast<const char*>(data), size);
  const auto text = syncline::fuzz::changed_json(old, random);
  if (!text || text->size() > most) return LLVMFuzzerMutate(data, size, most);
  std::memcpy(data, text->data(), text->size());
  return text->size();
}

#endif
