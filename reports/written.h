// What is said of a strategy that was written as a framework's configuration.
#pragma once

#include <string>
#include <vector>

#include "core/dialect/write.h"

namespace syncline::reports {

// That the dialect of that name cannot express the strategy, and what comes nearest.
std::string nearest_text(const Strategy& strategy, const std::string& dialect,
                         const dialect::Written& written);

// What has to stand beside the configuration, and what runs in its place elsewhere: sentences.
std::vector<std::string> notes_on(const dialect::Written& written);

// Those of them that follow from the configuration alone.
std::vector<std::string> notes_on(const Json& config);

}  // namespace syncline::reports
