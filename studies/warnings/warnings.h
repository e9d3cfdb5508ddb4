// Warnings of valid but rarely intended settings: part of every answer, never a failure.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/input/document.h"
#include "formats/scenario/scenario.h"

namespace syncline::measure {

inline constexpr std::string_view kDoubtful = "doubtful: ";

// Takes the doubtful ones out of a list of warnings, without the word "doubtful".
std::vector<std::string> take_suspicious(std::vector<std::string>& warnings);

// Tells whether a strategy's note is about an ignored setting. Warnings repeat those notes, so that
// each verb prints them.
bool tells_ignored(std::string_view note);

// Returns the notes that at least `least` of the strategies have, one line each, with their names.
// Notes about ignored settings are warnings instead.
std::vector<std::string> strategy_notes(const std::vector<Strategy>& strategies,
                                        std::size_t least = 1);

// Returns the warnings, one line each, without a final stop. A warning of several strategies is one
// line that names them.
std::vector<std::string> warnings_of(const Scenario& scenario);

// Returns the warnings over a sweep of the document, which was read as `scenario`. Warnings that
// differ only in numbers appear once, as at their first point. A warning that is not at all points
// names its own.
// Throws InputError, naming the point, if its values make the scenario wrong. `interrupted` is
// called between points; true ends with the warnings so far. `progress` is called after each point
// with the numbers done and in all.
std::vector<std::string> warnings_of(
    const input::Document& document, const Scenario& scenario, const Sweep& sweep = Sweep(),
    const std::function<bool()>& interrupted = [] { return false; },
    const std::function<void(std::size_t, std::size_t)>& progress = [](std::size_t,
                                                                       std::size_t) {});

}  // namespace syncline::measure
