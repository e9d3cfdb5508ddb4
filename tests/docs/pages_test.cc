// The README, core/README.md, examples/README.md, the pages under docs/ and the notes beside data
// show what the program prints. A mark ahead of a block says whose text it is, and every block is
// compared with that:
//
//   <!-- output: ARGUMENTS -->  what `syncline ARGUMENTS` prints; a pipe may choose lines and
//   columns
//   <!-- prose: ARGUMENTS -->   the same, long lines wrapped
//   <!-- shell: COMMAND -->     what any command prints, long lines wrapped; $SYNCLINE is the
//   program
//   <!-- file: FILE -->         the file itself
//
// A block is fenced, or a table that ends at an empty line. SYNCLINE_UPDATE_GOLDEN=1 writes all of
// them again.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/docs/scenario_reference.h"
#include "tests/support/expect.h"
#include "tests/support/help.h"
#include "tests/support/program.h"

namespace syncline {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = SYNCLINE_SOURCE_DIR;
constexpr std::size_t kColumns = 100;

bool update_wanted() { return std::getenv("SYNCLINE_UPDATE_GOLDEN") != nullptr; }

std::string printed_by(const std::string& command) {
  const std::string whole =
      "cd '" + kRoot.string() + "' && export SYNCLINE='" SYNCLINE_BINARY "' && " + command;
  const auto ran = test::Program({"sh", "-c", whole}).wait(std::chrono::minutes(10));
  EXPECT_EQ(ran.code, 0) << command << ran.err;
  EXPECT_NE(ran.out, "") << command;
  return ran.out;
}

// What belongs under a mark.
std::string wanted_text(const std::string& kind, const std::string& what) {
  const std::string wrapped = " | fold -s -w 100 | sed 's/ *$//'";
  if (kind == "output") return printed_by("\"$SYNCLINE\" " + what);
  if (kind == "prose") return printed_by("\"$SYNCLINE\" " + what + wrapped);
  if (kind == "shell") return printed_by(what + wrapped);
  EXPECT_EQ(kind, "file") << what;
  std::string text = test::text_of(kRoot / what);
  if (!text.empty() && text.back() != '\n') text += '\n';
  return text;
}

struct Block {
  std::string kind, what;
  std::size_t begin = 0, end = 0;  // of its text in the page
};

std::vector<Block> blocks_of(const std::string& page) {
  std::vector<Block> blocks;
  std::size_t at = 0;
  while (true) {
    const std::size_t mark = page.find("<!-- ", at);
    if (mark == std::string::npos) return blocks;
    const std::size_t mark_end = page.find(" -->\n", mark);
    const std::size_t colon = page.find(": ", mark);
    at = mark + 1;
    if (colon > mark_end) continue;  // a comment
    Block block{page.substr(mark + 5, colon - mark - 5),
                page.substr(colon + 2, mark_end - colon - 2)};
    const std::size_t start = mark_end + 5;
    const bool fenced = page.compare(start, 3, "```") == 0;
    block.begin = fenced ? page.find('\n', start) + 1 : start;
    const bool empty = !fenced && page.compare(start, 1, "|") != 0;
    block.end = fenced  ? page.find("```\n", block.begin)
                : empty ? start
                        : std::min(page.find("\n\n", block.begin), page.size() - 1) + 1;
    EXPECT_NE(block.end, std::string::npos) << block.what;
    at = block.end;
    blocks.push_back(block);
  }
}

std::vector<fs::path> pages() {
  std::vector<fs::path> paths{kRoot / "README.md", kRoot / "core/README.md",
                              kRoot / "examples/README.md"};
  for (const auto& entry : fs::directory_iterator(kRoot / "docs"))
    if (entry.path().extension() == ".md") paths.push_back(entry.path());
  for (const auto& entry : fs::directory_iterator(kRoot / "scenarios"))
    if (fs::exists(entry.path() / "NOTES.md")) paths.push_back(entry.path() / "NOTES.md");
  return paths;
}

// All published tables: minutes under sanitizers, where their parts are tested.
#ifdef SYNCLINE_SANITIZED
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

bool too_slow(const Block& block) {
  return kSanitized && (block.kind == "shell" || block.what.starts_with("fidelity"));
}

TEST(Pages, ShowWhatTheProgramPrints) {
  std::size_t shown = 0;
  for (const auto& path : pages()) {
    const std::string page = test::text_of(path);
    std::string fresh;
    std::size_t at = 0;
    for (const auto& block : blocks_of(page)) {
      if (too_slow(block)) continue;
      const std::string wanted = wanted_text(block.kind, block.what);
      EXPECT_EQ(page.substr(block.begin, block.end - block.begin), wanted)
          << path << ": " << block.what;
      fresh += page.substr(at, block.begin - at) + wanted;
      at = block.end;
      ++shown;
    }
    fresh += page.substr(at);
    if (update_wanted() && fresh != page) std::ofstream(path) << fresh;
  }
  EXPECT_GE(shown, 10U);
}

TEST(Pages, FitInAHundredColumns) {
  for (const auto& path : pages()) {
    std::istringstream lines(test::text_of(path));
    for (std::string line; std::getline(lines, line);) {
      const bool table = line.starts_with("|");  // drawn again by whoever shows the page
      const bool mark = line.starts_with("<!-- ");
      if (table || mark) continue;
      EXPECT_LE(line.size(), kColumns) << path << ": " << line;
    }
  }
}

TEST(Pages, TheReadmeIsShort) {
  const std::string readme = test::text_of(kRoot / "README.md");
  EXPECT_LT(std::count(readme.begin(), readme.end(), '\n'), 200);
}

// Every page can be reached from the README, and no link leads nowhere.
TEST(Pages, LinksLeadSomewhere) {
  const std::regex link(R"(\]\(([^)#:]+)[^):]*\))");
  std::set<fs::path> reached;
  for (const auto& path : pages()) {
    const std::string page = test::text_of(path);
    for (std::sregex_iterator at(page.begin(), page.end(), link), end; at != end; ++at) {
      const fs::path target = (path.parent_path() / (*at)[1].str()).lexically_normal();
      EXPECT_TRUE(fs::exists(target)) << path << ": " << at->str();
      if (path.filename() == "README.md") reached.insert(target);
    }
  }
  for (const auto& path : pages()) {
    EXPECT_TRUE(path.filename() == "README.md" || reached.contains(path)) << path;
  }
}

// The manual page has a section for each verb, and in it each of the verb's options.
TEST(Pages, TheManualNamesEveryVerbAndOption) {
  const std::string manual = printed_by("docs/manual.sh \"$SYNCLINE\"");
  int verbs = 0;
  for (const std::string& verb : test::verbs_in_help()) {
    const std::size_t begin = manual.find(".SS " + verb + "\n");
    ASSERT_NE(begin, std::string::npos) << verb;
    const std::string section = manual.substr(begin, manual.find("\n.S", begin + 1) - begin);
    const std::string options = printed_by("\"$SYNCLINE\" " + verb + " --help-all");
    const std::regex option_line("\n  (-[^ ]+) ");
    for (std::sregex_iterator one(options.begin(), options.end(), option_line), last; one != last;
         ++one) {
      const std::string tag = std::regex_replace((*one)[1].str(), std::regex("-"), "\\-");
      EXPECT_TRUE(test::says(section, "\n.B " + tag)) << verb << " " << (*one)[1];
    }
    ++verbs;
  }
  EXPECT_GE(verbs, 13);
}

// The keys in docs/keys.md are those of the schema.
TEST(Pages, TheScenarioReferenceIsTheSchemas) {
  const fs::path path = kRoot / "docs/keys.md";
  const std::string page = test::text_of(path);
  const std::string mark = "<!-- made from scenarios/schema.json -->\n\n";
  const std::size_t at = page.find(mark);
  ASSERT_NE(at, std::string::npos);
  const std::string prose = page.substr(0, at + mark.size());
  std::ifstream schema(kRoot / "scenarios/schema.json");
  const std::string wanted = reference::of_schema(nlohmann::ordered_json::parse(schema));
  EXPECT_EQ(page.substr(prose.size()), wanted) << "make it anew: SYNCLINE_UPDATE_GOLDEN=1";
  if (update_wanted()) std::ofstream(path) << prose << wanted;
}

// The page of scenarios/FIDELITY.md is what `syncline fidelity --format markdown` prints.
TEST(Pages, TheFidelityPageIsTrue) {
  if (kSanitized) GTEST_SKIP() << "too slow under sanitizers";
  const fs::path path = kRoot / "scenarios/FIDELITY.md";
  const std::string wanted = printed_by("\"$SYNCLINE\" fidelity --format markdown");
  EXPECT_EQ(test::text_of(path), wanted) << "make it anew: SYNCLINE_UPDATE_GOLDEN=1";
  if (update_wanted()) std::ofstream(path) << wanted;
}

}  // namespace
}  // namespace syncline
