#include "core/input/strategy_json.h"

#include <algorithm>

#include "core/input/knobs.h"

namespace syncline::input {

Json strategy_json(const Strategy& strategy) {
  Json json{{"name", strategy.name}};
  if (!strategy.about.empty()) json["about"] = strategy.about;
  Strategy written = strategy;
  Fusion& fusion = written.fusion;
  // A limit of nothing leaves each gradient alone, as that of a byte does, or a rule without a
  // group.
  if (fusion.rule == Fusion::Rule::kSize) fusion.size = std::max<Bytes>(1, fusion.size);
  if (fusion.rule == Fusion::Rule::kGroups && fusion.groups.empty()) {
    fusion.rule = Fusion::Rule::kNone;
  }
  json.update(written_knobs(strategy_knobs(), written));
  return json;
}

}  // namespace syncline::input
