#include "cli/options.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <type_traits>
#include <variant>

#include "cli/help.h"
#include "core/base/error.h"
#include "formats/input/document.h"
#include "formats/json/reader.h"
#include "formats/json/text.h"
#include "formats/text/parse_number.h"
#include "formats/text/visible.h"

namespace syncline::cli {
namespace {

void set_keys(input::Document& document, const std::vector<std::string>& changes) {
  for (const auto& change : changes) {
    const auto equals = change.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw InputError("--set: found '" + shorten_text(change) + "', expected KEY=VALUE");
    }
    const std::string text = change.substr(equals + 1);
    const auto value = try_parse_json(text);
    if (!value && (text.starts_with('{') || text.starts_with('['))) {
      throw InputError("--set " + change.substr(0, equals) + ": '" + shorten_text(text) +
                       "' is not valid JSON: a bracket or a quote is missing");
    }
    const auto several = value ? std::nullopt : try_parse_json("[" + text + "]");
    if (several && text.find(',') != std::string::npos) {
      throw InputError("--set: found several values, '" + shorten_text(text) +
                       "', expected one; use a sweep: --set 'sweep={\"" + change.substr(0, equals) +
                       "\": " + several->dump() + "}'");
    }
    input::set_key(document, change.substr(0, equals), value ? *value : Json(text));
  }
}

CLI::Option* added(CLI::App& verb, const std::string& name, const questions::Argument& argument,
                   bool& value) {
  return verb.add_flag(name, value, argument.help);
}

CLI::Option* added(CLI::App& verb, const std::string& name, const questions::Argument& argument,
                   std::string& value) {
  CLI::Option* option = verb.add_option(name, value, argument.help);
  return value.empty() ? option : option->capture_default_str();
}

// Adds an option with one value each time: the next word may be a file.
CLI::Option* added(CLI::App& verb, const std::string& name, const questions::Argument& argument,
                   std::vector<std::string>& value) {
  return verb.add_option(name, value, argument.help)->allow_extra_args(false);
}

CLI::Validator limits_of(const questions::Argument& argument, bool whole) {
  if (argument.high >= questions::kUnlimited) {
    return CLI::Validator(
        [](const std::string& text) {
          return text.starts_with('-') ? "found " + text + ", expected 0 or more" : "";
        },
        "");
  }
  if (!whole) return number_between(argument.low, argument.high);
  const auto low = static_cast<std::int64_t>(argument.low);
  const auto high = static_cast<std::int64_t>(argument.high);
  const std::string range = std::to_string(low) + " to " + std::to_string(high);
  return CLI::Validator(
      [low, high, range](const std::string& text) {
        const auto number = parse_number<std::int64_t>(text);
        if (number && low <= *number && *number <= high) return std::string();
        return "found " + text + ", expected a whole number from " + range;
      },
      "INT in [" + std::to_string(low) + " - " + std::to_string(high) + "]");
}

// Reads 8k as 8192.
CLI::Validator in_thousands(std::size_t thousand) {
  return CLI::Validator(
      [thousand](std::string& text) {
        const bool named = text.ends_with('k') || text.ends_with('K');
        const auto count =
            parse_number<std::uint32_t>(text.substr(0, text.size() - (named ? 1 : 0)));
        if (named && count) text = std::to_string(*count * thousand);
        return std::string();
      },
      "");
}

// Adds an option for a number, an optional one, or a list.
template <typename Number>
CLI::Option* added(CLI::App& verb, const std::string& name, const questions::Argument& argument,
                   Number& value) {
  CLI::Option* option = verb.add_option(name, value, argument.help);
  if constexpr (requires { value.push_back(1); }) option->delimiter(',');
  if constexpr (std::is_arithmetic_v<Number>) option->capture_default_str();
  const bool limited = argument.high > argument.low;
  if (argument.thousand > 0) option->transform(in_thousands(argument.thousand));
  if (limited) option->check(limits_of(argument, !std::is_same_v<Number, std::optional<double>>));
  return option;
}

}  // namespace

CLI::Validator one_of_words(const std::vector<std::string>& words) {
  const CLI::Validator known = CLI::IsMember(words);
  return CLI::Validator(
      [known, words](std::string& word) {
        word = same_name(word, words).value_or(word);
        const std::string told = known(word);
        return told.empty() ? told : told + did_you_mean(word, words);
      },
      known.get_description());
}

CLI::Validator number_between(double low, double high) {
  const CLI::Range range(low, high);
  return CLI::Validator(
      [range](std::string& text) {
        const bool none = std::isnan(std::strtod(text.c_str(), nullptr));
        std::string word = none ? "inf" : text;  // in no range either
        std::string refusal = range(word);
        if (none) refusal.replace(refusal.find(word), word.size(), text);
        return refusal;
      },
      range.get_description());
}

void add_scenario(CLI::App& verb, ScenarioOption& option, const std::string& note) {
  verb.add_option("file", option.file,
                  "scenario (JSON), - for stdin" + (note.empty() ? "" : "; " + note))
      ->required();
  add_set(verb, option.set);
}

CLI::Option* add_set(CLI::App& verb, std::vector<std::string>& set) {
  // One value each time: the next word may be a file.
  return verb.add_option("--set", set, "change a key of the scenario; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

input::Document read(const ScenarioOption& option) {
  input::Document document = input::read_document(option.file);
  set_keys(document, option.set);
  return document;
}

input::Document read_on_ranks(const ScenarioOption& option) {
  if (option.file == input::kStandardInput) {
    throw InputError("-: expected a file: each rank reads the scenario");
  }
  return read(option);
}

void add_strategy(CLI::App& verb, std::string& name, const std::string& otherwise) {
  verb.add_option("--strategy", name, "strategy (default: " + otherwise + ")");
}

void add_strategies(CLI::App& verb, std::vector<std::string>& names, const std::string& about) {
  verb.add_option("--strategy", names, about)->allow_extra_args(false);
}

void add_ranks_options(CLI::App& verb, RanksOptions& options, CLI::Option* live) {
  constexpr double kLongest = 86400;
  verb.add_option("--ranks", options.ranks, "ranks to start here (default: those of the launcher)")
      ->check(CLI::Range(1, 4096));
  verb.add_option("--timeout", options.timeout, "seconds of silence before a rank counts as failed")
      ->check(number_between(1.0, kLongest))
      ->capture_default_str();
  add_file(verb, "--meet", options.meet,
           "rendezvous file on a shared disk (default: the launcher's address or MPI)");
  if (live == nullptr) return;
  for (const char* own : {"--ranks", "--timeout", "--meet"}) verb.get_option(own)->needs(live);
}

void add_arguments(CLI::App& verb, const questions::Arguments& arguments,
                   const std::vector<std::string>& names) {
  for (const questions::Argument& argument : arguments) {
    const std::string name = "--" + argument.name;
    const bool wanted = names.empty() || std::ranges::count(names, argument.name) > 0;
    if (!wanted || verb.get_option_no_throw(name) != nullptr) continue;
    CLI::Option* option = std::visit(
        [&](auto* value) { return added(verb, name, argument, *value); }, argument.value);
    if (argument.file) option->type_name("FILE");
    if (!argument.words.empty()) option->transform(one_of_words(argument.words));
    if (!argument.shown.empty()) option->default_str(argument.shown);
    if (!argument.group.empty()) option->group(argument.group);
  }
}

}  // namespace syncline::cli
