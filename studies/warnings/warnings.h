// What is allowed in a scenario and rarely meant: said beside every answer, never a failure.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/input/document.h"
#include "formats/scenario/scenario.h"

namespace syncline::measure {

inline constexpr std::string_view kDoubtful = "doubtful: ";

// Takes the doubtful ones out of a list of warnings, without the word.
std::vector<std::string> take_suspicious(std::vector<std::string>& warnings);

// Recognises a strategy's note about a setting that does nothing. Warnings repeat those notes, so
// that each verb prints them.
bool tells_ignored(std::string_view note);

// One line each, without a final stop. What holds for several strategies is one line that names
// them. Empty where there is nothing to say.
std::vector<std::string> warnings_of(const Scenario& scenario);

// The same over a sweep of the document, which has been read as `scenario`. Warnings that differ in
// numbers alone are said once, as at the first point where they hold; what does not hold at all
// points says where. Throws InputError, naming the point, where its values make the scenario wrong.
// `interrupted` is asked between points; true ends it with what was found at those before.
// `progress` is called after each point with the number done and wanted.
std::vector<std::string> warnings_of(
    const input::Document& document, const Scenario& scenario, const Sweep& sweep = Sweep(),
    const std::function<bool()>& interrupted = [] { return false; },
    const std::function<void(std::size_t, std::size_t)>& progress = [](std::size_t,
                                                                       std::size_t) {});

}  // namespace syncline::measure
