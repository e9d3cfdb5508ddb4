// A trace's JSON cut into the values that matter, in bounded memory: each event of `traceEvents`
// and each other member of the object around them. Only brackets and strings are looked at; what
// is inside is the reader's.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/job/kineto/source.h"

namespace syncline::job::kineto {

// How many bytes may be read (their values do not matter) behind every slice: simdjson's need.
inline constexpr std::size_t kBehind = 64;

struct Slices {
  // One element of traceEvents. kBehind bytes behind it may be read.
  std::function<void(std::string_view event)> event;
  // Any other member of the object.
  std::function<void(std::string_view key, std::string_view value)> member;
};

// Throws InputError, naming the file, where it is no JSON object or ends too early.
void cut(Source& source, const Slices& slices);

}  // namespace syncline::job::kineto
