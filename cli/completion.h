// How shells complete this program's command lines: made from the options that the verbs declare.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace syncline::cli {

// The shells that are known: bash, zsh, fish.
const std::vector<std::string>& shells();

// The file that such a shell reads, for the verbs that `app` has.
std::string completion(const CLI::App& app, const std::string& shell);

}  // namespace syncline::cli
