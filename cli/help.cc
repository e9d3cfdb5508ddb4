#include "cli/help.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "reports/format.h"
#include "reports/grid.h"

namespace syncline::cli {
namespace {

struct HelpLine {
  std::string key;   // "--out FILE"
  std::string text;  // description
};

std::string upper(std::string text) {
  for (char& letter : text) letter = static_cast<char>(std::toupper(letter));
  return text;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

// Returns the value in the first column: the option's own word for it, else by its type.
std::string value_name(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::string own = type.substr(0, type.find(':'));
  if (own == "INT" || own == "UINT") return "N";
  if (own == "FLOAT") return "X";
  return own == "TEXT" ? "NAME" : own;
}

std::string key_of(const CLI::Option& option) {
  const bool several = option.get_items_expected_max() > 1 && option.get_allow_extra_args();
  const std::string many = several ? "..." : "";
  if (option.get_positional()) return upper(option.get_single_name()) + many;
  const std::string names = option.get_name(false, true);
  return takes_value(option) ? names + " " + value_name(option) + many : names;
}

// Returns the description, the allowed words, and the default.
std::string text_of(const CLI::Option& option) {
  std::string text = option.get_description();
  const auto choices = choices_of(option);
  const std::size_t end = std::min(text.find(" (default"), text.size());
  if (!choices.empty()) text.insert(end, ": " + reports::join(choices));
  const std::string value = option.get_default_str();
  if (option.get_required() && !option.get_positional()) return text + " (required)";
  const bool known = !takes_value(option) || text.find("(default") != std::string::npos;
  return known || value.empty() ? text : text + " (default " + value + ")";
}

using HelpGroup = std::pair<std::string, std::vector<HelpLine>>;  // title and lines

// Returns the column of the texts, the same in all groups.
std::size_t column_of(const std::vector<HelpGroup>& groups) {
  constexpr std::size_t kMargin = 2, kWidest = 20;
  std::size_t widest = 0;
  for (const auto& [title, lines] : groups) {
    for (const auto& line : lines) {
      if (line.key.size() <= kWidest) widest = std::max(widest, line.key.size());
    }
  }
  return kMargin + widest + kMargin;
}

std::string lines_of(const std::vector<HelpGroup>& groups, std::size_t width) {
  const std::size_t column = column_of(groups);
  std::string text;
  for (const auto& [title, lines] : groups) {
    text += "\n" + title + ":\n";
    for (const auto& [key, about] : lines) {
      std::string first = "  " + key;
      if (first.size() + 2 > column) text += std::exchange(first, "") + "\n";
      first.resize(column, ' ');
      for (const auto& part : reports::wrap(first + about, width, column)) text += part + "\n";
    }
  }
  return text;
}

std::string with_footer(const CLI::App& app, std::size_t width) {
  const std::string footer = app.get_footer();
  return footer.empty() ? "" : "\n" + reports::wrapped_lines(footer, width);
}

// Returns the positional options; an old form's are in no group.
std::vector<const CLI::Option*> arguments_of(const CLI::App& verb) {
  return verb.get_options([](const CLI::Option* option) {
    return option->get_positional() && !option->get_group().empty();
  });
}

std::string usage(const CLI::App& verb, const std::string& name) {
  std::string line = "Usage: " + name + (verbs_of(verb).empty() ? "" : " VERB") + " [OPTIONS]";
  for (const CLI::Option* option : arguments_of(verb)) {
    const std::string key = key_of(*option);
    line += option->get_required() ? " " + key : " [" + key + "]";
  }
  return line + "\n";
}

// Returns the options of a group: a verb's, or the program's own.
std::vector<HelpLine> options_in(const CLI::App& app, const std::string& group, bool all) {
  std::vector<HelpLine> lines;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional() || option->get_group() != group) continue;
    if (!all && option == app.get_help_all_ptr()) continue;
    lines.push_back({key_of(*option), text_of(*option)});
  }
  return lines;
}

// Returns the verbs, grouped by a user's purpose.
std::vector<HelpGroup> verb_groups(const CLI::App& app) {
  std::vector<HelpGroup> groups;
  for (const CLI::App* verb : verbs_of(app)) {
    if (groups.empty() || groups.back().first != verb->get_group()) {
      groups.push_back({verb->get_group(), {}});
    }
    groups.back().second.push_back({verb->get_name(), verb->get_description()});
  }
  return groups;
}

// Returns a verb's help in lines of at most `width` columns; with `all`, also its other groups.
std::string help_of_verb(const CLI::App& verb, const std::string& name, bool all,
                         std::size_t width) {
  std::vector<HelpGroup> groups = verb_groups(verb);
  const auto arguments = arguments_of(verb);
  if (!arguments.empty()) groups.push_back({"Arguments", {}});
  for (const CLI::Option* option : arguments) {
    groups.back().second.push_back({key_of(*option), text_of(*option)});
  }
  bool more = false;
  for (const std::string& group : verb.get_groups()) {
    auto lines = options_in(verb, group, all);
    if (group.empty() || lines.empty()) continue;
    if (!all && group != kCommonOptions) {
      more = true;
    } else {
      groups.emplace_back(group, std::move(lines));
    }
  }
  const std::string head = verb.get_description() + "\n" + usage(verb, name);
  return reports::wrapped_lines(head, width) + lines_of(groups, width) + with_footer(verb, width) +
         (more ? "\nMore options: " + name + " --help-all\n" : "");
}

std::string help_of_program(const CLI::App& app, bool all, std::size_t width) {
  std::vector<HelpGroup> groups = verb_groups(app);
  groups.push_back({kCommonOptions, options_in(app, kCommonOptions, true)});
  const std::string head = app.get_description() + "\nUsage: " + app.get_name() + " VERB [OPTIONS]";
  std::string text =
      reports::wrapped_lines(head, width) + lines_of(groups, width) + with_footer(app, width);
  if (!all) return text;
  for (const CLI::App* verb : verbs_of(app)) {
    const std::string name = app.get_name() + " " + verb->get_name();
    text += "\n" + help_of_verb(*verb, name, all, width);
    for (const CLI::App* nested : verbs_of(*verb)) {
      text += "\n" + help_of_verb(*nested, name + " " + nested->get_name(), all, width);
    }
  }
  return text;
}

class Help : public CLI::FormatterBase {
 public:
  explicit Help(std::size_t width) : width_(width) {}

  // Returns the help. `name`: "syncline run" from the parser for a verb; empty for the program.
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    const bool all = mode == CLI::AppFormatMode::All;
    return app->get_parent() == nullptr ? help_of_program(*app, all, width_)
                                        : help_of_verb(*app, name, all, width_);
  }

 private:
  std::size_t width_;
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_within(std::size_t width) {
  return std::make_shared<Help>(width);
}

std::vector<std::string> choices_of(const CLI::Option& option) {
  // "TEXT:{model,sim}" names the allowed words.
  const std::string type = option.get_type_name();
  const std::size_t from = type.find('{');
  const std::size_t to = type.find('}', from);
  std::vector<std::string> choices;
  if (to == std::string::npos) return choices;
  std::istringstream list(type.substr(from + 1, to - from - 1));
  for (std::string word; std::getline(list, word, ',');) choices.push_back(word);
  return choices;
}

std::vector<const CLI::App*> verbs_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

void put_in_group(CLI::App& verb, const std::string& group, const std::vector<const char*>& names) {
  for (const char* name : names) verb.get_option(name)->group(group);
}

}  // namespace syncline::cli
