// Values as the property setters of Paddle's DistributedStrategy take them: one of another type is
// no error there. Paddle prints "WARNING: KEY should have value of TYPE type" and keeps what stood
// before; so do these, and leave a note.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/json/reader.h"

namespace syncline::dialect {

class PaddleSetters {
 public:
  PaddleSetters(Reader& config, std::vector<std::string>& notes) : config_(config), notes_(notes) {}

  bool flag(std::string_view key, bool before);
  // An int32 field; Python's True and False are ints too.
  std::int64_t integer(std::string_view key, std::int64_t before);
  // A float field; the int 50 is not one, 50.0 is.
  double real(std::string_view key, double before);

 private:
  void ignored(std::string_view key, const Json& value, const char* type, const Json& kept);

  Reader& config_;
  std::vector<std::string>& notes_;
};

}  // namespace syncline::dialect
