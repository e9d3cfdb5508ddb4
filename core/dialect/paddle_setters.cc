#include "core/dialect/paddle_setters.h"

#include <cmath>
#include <limits>

namespace syncline::dialect {
namespace {

// Protobuf's own words for a number that its field cannot hold.
constexpr const char* kOutOfRange = ": Value out of range, expected an int32";

bool in_int32(double value) {
  return std::isfinite(value) && value >= std::numeric_limits<std::int32_t>::min() &&
         value <= std::numeric_limits<std::int32_t>::max();
}

}  // namespace

bool PaddleSetters::flag(std::string_view key, bool before) {
  const Json* value = config_.find(key);
  if (value == nullptr) return before;
  if (value->is_boolean()) return value->get<bool>();
  ignored(key, *value, "bool", before);
  return before;
}

std::int64_t PaddleSetters::integer(std::string_view key, std::int64_t before) {
  const Json* value = config_.find(key);
  if (value == nullptr) return before;
  if (value->is_boolean()) return value->get<bool>() ? 1 : 0;
  if (!value->is_number_integer()) {
    ignored(key, *value, "int", before);
    return before;
  }
  if (!in_int32(value->get<double>())) config_.fail(key, "found " + describe(*value) + kOutOfRange);
  return value->get<std::int64_t>();
}

double PaddleSetters::real(std::string_view key, double before) {
  const Json* value = config_.find(key);
  if (value == nullptr) return before;
  if (!value->is_number_float()) {
    ignored(key, *value, "float", before);
    return before;
  }
  if (!in_int32(value->get<double>())) config_.fail(key, "found " + describe(*value) + kOutOfRange);
  return value->get<double>();
}

void PaddleSetters::ignored(std::string_view key, const Json& value, const char* type,
                            const Json& kept) {
  notes_.push_back(std::string(key) + " should have value of " + type + " type: " +
                   describe(value) + " is ignored with a warning, " + kept.dump() + " stays");
}

}  // namespace syncline::dialect
