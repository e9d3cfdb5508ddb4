// --help fits one screen, in plain words; --help-all names every option and its default.
#include "tests/support/help.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>

#include "catalogue/architectures/architecture.h"
#include "catalogue/hardware/device.h"
#include "core/algorithm.h"
#include "core/codec.h"
#include "formats/dialect/dialect.h"
#include "imports/format.h"
#include "imports/models/families.h"
#include "tests/support/expect.h"
#include "tests/support/program.h"
#include "tests/support/text.h"

namespace syncline::cli {
namespace {

using test::contains;
using test::syncline_run;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream all(text);
  for (std::string line; std::getline(all, line);) lines.push_back(line);
  return lines;
}

TEST(Help, EachVerbsHelpFitsOneScreen) {
  for (const auto& verb : test::verbs_in_help()) {
    const std::string help = test::syncline_out(test::with_verb(verb, {"--help"}));
    EXPECT_TRUE(test::says(help, verb));
    const auto lines = lines_of(help);
    EXPECT_LE(lines.size(), 24U) << verb;
    for (const auto& line : lines) EXPECT_LE(line.size(), 80U) << verb << ": " << line;
  }
}

TEST(Help, NoLineOfAllOptionsIsWiderThanAScreen) {
  for (const auto& line : lines_of(syncline_run({"--help-all"}).out)) {
    EXPECT_LE(line.size(), 80U) << line;
  }
}

TEST(Help, TheProgramsHelpGroupsTheVerbs) {
  const std::string help = syncline_run({"--help"}).out;
  std::size_t last = 0;
  for (const char* group : {"\nAsk (", "\nMeasure (", "\nApply (", "\nLook up:"}) {
    const std::size_t at = help.find(group);
    ASSERT_NE(at, std::string::npos) << group;
    EXPECT_GT(at, last) << group;
    last = at;
  }
  EXPECT_TRUE(test::says(help, "Exit codes"));
  EXPECT_GE(test::verbs_of("").size(), 17U);
}

TEST(Help, IsPrintedWithoutAVerb) {
  const auto ran = syncline_run({});
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(ran.err, syncline_run({"--help"}).out);
}

// The last line names --help-all exactly where that shows more.
TEST(Help, NamesWhereMoreOptionsAre) {
  for (const auto& verb : test::verbs_in_help()) {
    const std::string common = syncline_run(test::with_verb(verb, {"--help"})).out;
    const auto shown = test::entries_in_help(common);
    const auto all = test::entries_of(verb);
    const bool more = all.size() > shown.size() + 1;  // --help-all itself
    EXPECT_EQ(common.ends_with("\nMore options: syncline " + verb + " --help-all\n"), more) << verb;
  }
}

// An option without a default leaves something out: a file, a filter, a measurement.
bool needs_no_default(const std::string& key) {
  static const std::set<std::string> values{"FILE", "FOLDER", "KEY=VALUE", "KEY=VALUE..."};
  static const std::set<std::string> names{"--target",     "--utilisation", "--micro-batch-sizes",
                                           "--live",       "--node",        "--line-rate",
                                           "--throughput", "--emit",        "--gpu",
                                           "--net",        "--step",        "--batch",
                                           "--cut",        "--uplink",      "--wrong",
                                           "--part",       "--tp",          "--trace-of",
                                           "--pp",         "--vp",          "--cp",
                                           "--ep",         "--etp",         "--schedule"};
  const std::string value = key.substr(std::min(key.find(' ') + 1, key.size()));
  const bool is_flag = !contains(key, " ");
  if (is_flag || values.contains(value) || value == "FILE...") return true;
  return names.contains(key.substr(0, key.find(' ')));
}

TEST(Help, EachOptionNamesItsDefaultOrNeedsNone) {
  for (const auto& verb : test::verbs_in_help()) {
    for (const auto& entry : test::entries_of(verb)) {
      if (!entry.is_option() || needs_no_default(entry.key)) continue;
      EXPECT_TRUE(contains(entry.text, "(default") || contains(entry.text, "(required)"))
          << verb << " " << entry.key << ": " << entry.text;
    }
  }
}

// Words that mean something here alone: see docs/design.md for the field's.
TEST(Help, SaysItInTheFieldsWords) {
  const std::regex own(
      "\\b(price[ds]?|laws?|book|arms?|doubts?|sway|pinned|anew|told|tells?|says?|remarks?|slip|"
      "obstacle|beside|behind|ahead|holds?|pays?|exchanges?|taken|meet|beat|bye|carriers|leads|"
      "slowed|binds|pieces|belief|truth|what|whose)\\b");
  for (const auto& verb : test::verbs_in_help()) {
    const std::string help = syncline_run(test::with_verb(verb, {"--help-all"})).out;
    for (const auto& entry : test::entries_in_help(help)) {
      EXPECT_FALSE(std::regex_search(entry.text, own)) << verb << " " << entry.key << entry.text;
      const auto words = std::count(entry.text.begin(), entry.text.end(), ' ') + 1;
      EXPECT_TRUE(words <= 14 || !entry.choices().empty()) << verb << " " << entry.text;
    }
    EXPECT_FALSE(std::regex_search(help.substr(0, help.find('\n')), own)) << help;
  }
}

// What shells complete, against what each verb's --help-all lists.

using test::Scratch;
using WordSet = std::set<std::string>;

WordSet verbs() {
  const auto list = test::verbs_in_help();
  return {list.begin(), list.end()};
}

// As the scripts name it.
std::string joined(std::string verb) {
  std::ranges::replace(verb, ' ', '-');
  return verb;
}

class Bash {
 public:
  Bash() { test::write_text(file_.path("c"), test::syncline_run({"completion", "bash"}).out); }

  // What bash offers for the last of the words.
  WordSet offers(const std::vector<std::string>& words) const {
    std::string line = "source " + file_.path("c") + "; COMP_WORDS=(";
    for (const auto& word : words) line += "'" + word + "' ";
    line += "); COMP_CWORD=" + std::to_string(words.size() - 1) + "; _syncline; ";
    const auto ran =
        test::Program({"bash", "-c", line + "printf '%s\\n' \"${COMPREPLY[@]}\""}).wait();
    EXPECT_EQ(ran.err, "");
    std::istringstream lines(ran.out);
    WordSet offered;
    for (std::string word; std::getline(lines, word);) {
      if (!word.empty()) offered.insert(word);
    }
    return offered;
  }

 private:
  Scratch file_;
};

TEST(Completion, BashOffersTheVerbs) {
  const auto list = test::verbs_of("");
  WordSet all(list.begin(), list.end());
  EXPECT_GT(all.size(), 15u);
  all.insert({"--help", "--version"});
  EXPECT_EQ(Bash().offers({"syncline", ""}), all);
  EXPECT_EQ(Bash().offers({"syncline", "calib"}), WordSet{"calibrate"});
  EXPECT_EQ(Bash().offers({"syncline", "calibrate", ""}),
            (WordSet{"logs", "steps", "live", "kernels"}));
}

TEST(Completion, BashOffersEveryOptionOfAVerb) {
  const Bash bash;
  for (const auto& verb : verbs()) {
    EXPECT_EQ(bash.offers(test::with_verb("syncline " + verb, {"-"})), test::options_of(verb))
        << verb;
  }
}

TEST(Completion, BashOffersTheWordsThatAnOptionTakes) {
  const Bash bash;
  int options_with_words = 0;
  for (const auto& verb : verbs()) {
    for (const auto& entry : test::entries_of(verb)) {
      const WordSet words = entry.choices();
      if (words.empty() || !entry.is_option()) continue;
      const std::string name = *entry.names().rbegin();
      const auto offered = [&](const std::vector<std::string>& value) {
        auto line = test::with_verb("syncline " + verb, {name});
        line.insert(line.end(), value.begin(), value.end());
        return bash.offers(line);
      };
      EXPECT_EQ(offered({""}), words) << verb << " " << name;
      EXPECT_EQ(offered({"=", *words.begin()}).count(*words.begin()), 1u);
      ++options_with_words;
    }
  }
  EXPECT_GT(options_with_words, 10);
}

TEST(Completion, FilesAreLeftToBash) {
  EXPECT_EQ(Bash().offers({"syncline", "run", ""}), WordSet{});
  EXPECT_EQ(Bash().offers({"syncline", "run", "--html", ""}), WordSet{});
  EXPECT_EQ(Bash().offers({"syncline", "calibrate", "logs", ""}), WordSet{});
}

TEST(Completion, TheOthersNameEveryOption) {
  const std::string zsh = test::syncline_run({"completion", "zsh"}).out;
  const std::string fish = test::syncline_run({"completion", "fish"}).out;
  for (const auto& verb : verbs()) {
    const std::size_t from = zsh.find("    " + joined(verb) + ")\n");
    ASSERT_NE(from, std::string::npos) << verb;
    const std::string part = zsh.substr(from, zsh.find(" ;;\n", from) - from);
    const bool nested = contains(verb, " ");
    EXPECT_EQ(contains(fish, "-f -a " + verb + " -d "), !nested) << verb;
    EXPECT_EQ(contains(zsh, "      '" + verb + ":"), !nested) << verb;
    const std::string seen =
        std::regex_replace(verb, std::regex(" "), "; and __fish_seen_subcommand_from ");
    for (const auto& option : test::options_of(verb)) {
      EXPECT_TRUE(test::says(part, option + "[")) << verb << " " << option;
      const std::string letters =
          option.starts_with("--") ? "-l " + option.substr(2) : "-s " + option.substr(1);
      EXPECT_TRUE(std::regex_search(
          fish, std::regex("seen_subcommand_from " + seen + "'.* " + letters + " ")))
          << verb << " " << option;
    }
  }
}

TEST(Completion, AnUnknownShellIsNamedWithThoseThatAreKnown) {
  EXPECT_TRUE(test::refused(test::syncline_run({"completion", "tcsh"}), "bash,zsh,fish"));
}

TEST(Schema, IsPrintedAsItLies) {
  EXPECT_EQ(test::syncline_run({"schema"}).out,
            test::text_of(SYNCLINE_SOURCE_DIR "/scenarios/schema.json"));
  const auto cluster = test::syncline_run({"schema", "cluster"});
  EXPECT_EQ(cluster.code, 0) << cluster.err;
  EXPECT_TRUE(test::says(cluster.out, "\"title\": \"Syncline cluster\""));
  EXPECT_EQ(test::syncline_run({"schema", "plan"}).code, 2);
}

// `syncline list` prints every row of the tables that a scenario names things from.

template <typename Rows>
void expect_listed(const Rows& rows, const std::string& printed) {
  for (const auto& row : rows) {
    EXPECT_TRUE(test::says(printed, std::string(row.name) + " ", std::string(row.summary)))
        << row.name;
  }
}

TEST(List, PrintsEveryRow) {
  const std::string ran = test::syncline_out({"list"});
  expect_listed(collective::algorithms(), ran);
  expect_listed(compress::codecs(), ran);
  expect_listed(dialect::dialects(), ran);
  expect_listed(operators::architectures(), ran);
  expect_listed(hardware::devices(), ran);
  expect_listed(hardware::nodes(), ran);
  expect_listed(job::formats(), ran);
  const std::string models = test::syncline_out({"list", "models"});
  for (const auto& [name, config] : job::models::named_configs()) {
    EXPECT_TRUE(test::contains(models, "\n" + name + " ")) << name;
  }
  EXPECT_TRUE(test::says(ran, "8,030,261,248 parameters", "model ", "sim ", "all_reduce"));
}

TEST(List, FitsAHundredColumns) {
  std::istringstream lines(test::syncline_run({"list"}).out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
}

TEST(List, TuneWritesForEveryDialectThatIsWritten) {
  const auto ran = test::syncline_run({"tune", "--help"});
  std::string words;
  for (const auto& name : dialect::written_dialect_names()) {
    words += (words.empty() ? "" : ", ") + name;
  }
  const std::string help = std::regex_replace(ran.out, std::regex("\\s+"), " ");
  EXPECT_TRUE(test::says(help, ": " + words)) << ran.out;
}

}  // namespace
}  // namespace syncline::cli
