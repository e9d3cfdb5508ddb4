// Fabrics by name, as "fabric" has them in a scenario.
#pragma once

#include <span>
#include <string_view>

namespace syncline::fabric {

struct KnownFabric {
  std::string_view name;
  std::string_view summary;
  std::string_view keys;  // the object that the name stands for, JSON
  std::string_view source;
};

std::span<const KnownFabric> known_fabrics();

}  // namespace syncline::fabric
