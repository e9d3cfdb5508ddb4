// What shells complete, against what each verb's --help-all lists.
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>

#include "core/collective/algorithm.h"
#include "core/compress/codec.h"
#include "core/dialect/dialect.h"
#include "core/hardware/device.h"
#include "core/job/format.h"
#include "core/operators/architecture.h"
#include "tests/support/expect.h"
#include "tests/support/help.h"
#include "tests/support/program.h"
#include "tests/support/text.h"

namespace syncline::cli {
namespace {

using test::contains;
using test::Scratch;
using Words = std::set<std::string>;

Words verbs() {
  const auto list = test::verbs_in_help();
  return {list.begin(), list.end()};
}

class Bash {
 public:
  Bash() { test::write_text(file_.path("c"), test::syncline_run({"completion", "bash"}).out); }

  // What bash offers for the last of the words.
  Words offers(const std::vector<std::string>& words) const {
    std::string line = "source " + file_.path("c") + "; COMP_WORDS=(";
    for (const auto& word : words) line += "'" + word + "' ";
    line += "); COMP_CWORD=" + std::to_string(words.size() - 1) + "; _syncline; ";
    const auto ran =
        test::Program({"bash", "-c", line + "printf '%s\\n' \"${COMPREPLY[@]}\""}).wait();
    EXPECT_EQ(ran.err, "");
    std::istringstream lines(ran.out);
    Words offered;
    for (std::string word; std::getline(lines, word);) {
      if (!word.empty()) offered.insert(word);
    }
    return offered;
  }

 private:
  Scratch file_;
};

TEST(Completion, BashOffersTheVerbs) {
  Words all = verbs();
  EXPECT_GT(all.size(), 15u);
  all.insert({"--help", "--version"});
  EXPECT_EQ(Bash().offers({"syncline", ""}), all);
  EXPECT_EQ(Bash().offers({"syncline", "calib"}), Words{"calibrate"});
}

TEST(Completion, BashOffersEveryOptionOfAVerb) {
  const Bash bash;
  for (const auto& verb : verbs()) {
    EXPECT_EQ(bash.offers({"syncline", verb, "-"}), test::options_of(verb)) << verb;
  }
}

TEST(Completion, BashOffersTheWordsThatAnOptionTakes) {
  const Bash bash;
  int options_with_words = 0;
  for (const auto& verb : verbs()) {
    for (const auto& entry : test::entries_of(verb)) {
      const Words words = entry.choices();
      if (words.empty() || !entry.is_option()) continue;
      const std::string name = *entry.names().rbegin();
      EXPECT_EQ(bash.offers({"syncline", verb, name, ""}), words) << verb << " " << name;
      EXPECT_EQ(bash.offers({"syncline", verb, name, "=", *words.begin()}).count(*words.begin()),
                1u);
      ++options_with_words;
    }
  }
  EXPECT_GT(options_with_words, 10);
}

TEST(Completion, WhereAFileIsMeantBashIsLeftToItsOwn) {
  EXPECT_EQ(Bash().offers({"syncline", "run", ""}), Words{});
  EXPECT_EQ(Bash().offers({"syncline", "run", "--html", ""}), Words{});
}

TEST(Completion, TheOthersNameEveryOption) {
  const std::string zsh = test::syncline_run({"completion", "zsh"}).out;
  const std::string fish = test::syncline_run({"completion", "fish"}).out;
  for (const auto& verb : verbs()) {
    const std::size_t from = zsh.find("    " + verb + ")\n");
    ASSERT_NE(from, std::string::npos) << verb;
    const std::string part = zsh.substr(from, zsh.find(" ;;\n", from) - from);
    EXPECT_TRUE(contains(fish, "-f -a " + verb + " -d ")) << verb;
    for (const auto& option : test::options_of(verb)) {
      EXPECT_TRUE(contains(part, option + "[")) << verb << " " << option;
      const std::string letters =
          option.starts_with("--") ? "-l " + option.substr(2) : "-s " + option.substr(1);
      EXPECT_TRUE(std::regex_search(
          fish, std::regex("seen_subcommand_from " + verb + "'.* " + letters + " ")))
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
  EXPECT_TRUE(contains(cluster.out, "\"title\": \"Syncline cluster\"")) << cluster.out;
  EXPECT_EQ(test::syncline_run({"schema", "plan"}).code, 2);
}

// `syncline list` prints every row of the tables that a scenario names things from.

template <typename Rows>
void expect_listed(const Rows& rows, const std::string& printed) {
  for (const auto& row : rows) {
    EXPECT_NE(printed.find(std::string(row.name) + " "), std::string::npos) << row.name;
    EXPECT_NE(printed.find(std::string(row.summary)), std::string::npos) << row.name;
  }
}

TEST(List, PrintsEveryRow) {
  const auto ran = test::syncline_run({"list"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  expect_listed(collective::algorithms(), ran.out);
  expect_listed(compress::codecs(), ran.out);
  expect_listed(dialect::dialects(), ran.out);
  expect_listed(operators::architectures(), ran.out);
  expect_listed(hardware::devices(), ran.out);
  expect_listed(hardware::nodes(), ran.out);
  expect_listed(job::formats(), ran.out);
  for (const char* word : {"8,030,261,248 parameters", "model ", "sim ", "all_reduce"}) {
    EXPECT_TRUE(contains(ran.out, word)) << word;
  }
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
  EXPECT_NE(help.find(": " + words), std::string::npos) << ran.out;
}

}  // namespace
}  // namespace syncline::cli
