#include "imports/models/families.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "catalogue/architectures/architecture.h"

namespace syncline::job::models {

void Laid::add(const std::string& name, const std::vector<std::int64_t>& shape, double multiplied) {
  const double elements = std::accumulate(
      shape.begin(), shape.end(), 1.0,
      [](double product, std::int64_t extent) { return product * static_cast<double>(extent); });
  if (elements > static_cast<double>(kMaxElements)) {
    throw InputError("'" + name + "' has more than 2^40 elements");
  }
  if (all.size() >= kMaxTensors) throw InputError("more than 200000 tensors");
  all.push_back({name, shape, elements, "fp32", multiplied * elements});
}

void Laid::linear(const std::string& name, std::int64_t in, std::int64_t out, bool bias,
                  double share) {
  add(name + ".weight", {out, in}, share);
  if (bias) add(name + ".bias", {out});
}

void Laid::norm(const std::string& name, std::int64_t width, bool bias) {
  add(name + ".weight", {width});
  if (bias) add(name + ".bias", {width});
}

void Laid::table(const std::string& name, std::int64_t rows, std::int64_t width) {
  add(name + ".weight", {rows, width});
}

void Laid::head(const std::string& name, std::int64_t words, std::int64_t width, bool tied,
                bool bias) {
  if (!has_words()) return;
  if (tied) all.back().multiplied += static_cast<double>(words) * static_cast<double>(width);
  if (!tied) add(name + ".weight", {words, width}, 1);
  if (bias) add(name + ".bias", {words});
}

bool Laid::ends_in(std::initializer_list<End> ends) {
  const bool here = std::ranges::find(ends, end_) != ends.end();
  known_ = known_ || here;
  return here;
}

void Laid::append(Parameters more) {
  if (all.size() + more.size() > kMaxTensors) throw InputError("more than 200000 tensors");
  std::ranges::move(more, std::back_inserter(all));
}

bool has_value(Reader& reader, const char* key) {
  const Json* value = reader.find(key);
  return value != nullptr && !value->is_null();
}

std::int64_t size(Reader& reader, const char* key, std::int64_t most) {
  return reader.integer(key, 1, most);
}

std::int64_t size_or(Reader& reader, const char* key, std::int64_t fallback, std::int64_t most) {
  return has_value(reader, key) ? reader.integer(key, 1, most) : fallback;
}

std::int64_t width(Reader& reader, const char* key) {
  return size(reader, key, operators::kMaxVocabulary);
}

std::int64_t width_or(Reader& reader, const char* key, std::int64_t fallback) {
  return size_or(reader, key, fallback, operators::kMaxVocabulary);
}

std::int64_t layers(Reader& reader, const char* key) {
  return size(reader, key, operators::kMaxLayers);
}

bool flag_or(Reader& reader, const char* key, bool fallback) {
  return has_value(reader, key) ? reader.boolean_or(key, fallback) : fallback;
}

void expect_flag(Reader& reader, const char* key, bool known) {
  if (flag_or(reader, key, known) == known) return;
  reader.fail(key, std::string("found ") + (known ? "false" : "true") + ", only " +
                       (known ? "true" : "false") + " is known");
}

std::int64_t channels_of(Reader& reader) {
  return size_or(reader, "num_channels", 3, operators::kMaxHidden);
}

std::int64_t classes_of(Reader& reader, std::int64_t fallback) {
  if (has_value(reader, "id2label") && reader.json()["id2label"].is_object()) {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(reader.json()["id2label"].size()));
  }
  return width_or(reader, "num_labels", fallback);
}

}  // namespace syncline::job::models
