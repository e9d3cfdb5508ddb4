#include "core/tune/rules.h"

namespace syncline::tune {

Fusion by_size(Bytes size, Fusion::Close close, Bytes first_size) {
  Fusion fusion;
  fusion.rule = Fusion::Rule::kSize;
  fusion.size = size;
  fusion.first_size = first_size;
  fusion.close = close;
  return fusion;
}

Fusion by_ends(const std::vector<std::size_t>& ends) {
  Fusion fusion;
  fusion.rule = Fusion::Rule::kIndex;
  for (const std::size_t end : ends) fusion.ends.push_back(static_cast<std::int64_t>(end));
  return fusion;
}

}  // namespace syncline::tune
