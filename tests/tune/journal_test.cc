// The journal: what it keeps, what it forgives and what it refuses.
#include "studies/machines/journal.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <random>
#include <regex>

#include "core/base/error.h"
#include "formats/text/fingerprint.h"
#include "tests/support/expect.h"
#include "tests/support/scratch.h"

namespace syncline::tune {
namespace {

using test::Scratch;
using test::text_of;
using test::write_text;

Json header() { return {{"journal", "test"}, {"scenario", "abc"}, {"seed", 7}}; }

std::string refusal(const std::string& path, const Json& wanted = header()) {
  return test::input_error([&] { const Journal journal(path, wanted); });
}

class JournalTest : public testing::Test {
 protected:
  static Json entry(int number) { return {{"number", number}}; }
  // A journal with three entries.
  void SetUp() override {
    Journal journal(path_, header());
    for (int i = 0; i < 3; ++i) journal.append(entry(i));
  }
  Scratch scratch_;
  std::string path_ = scratch_.path("tune.jsonl");
};

TEST_F(JournalTest, GivesBackWhatWasAppendedToTheLastBit) {
  const double awkward[] = {1.0 / 3, 5e-324, 1.7976931348623157e308, 0.1 + 0.2};
  {
    Journal journal(path_, header());
    for (const double value : awkward) journal.append({{"value", value}});
  }
  const Journal journal(path_, header());
  ASSERT_EQ(journal.entries().size(), 7U);
  EXPECT_EQ(journal.entries()[1]["number"].get<int>(), 1);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(journal.entries()[i + 3]["value"].get<double>(), awkward[i]);
  }
}

TEST_F(JournalTest, GoesOnWhereItStopped) {
  const std::string before = text_of(path_);
  {
    Journal journal(path_, header());
    journal.append(entry(3));
    EXPECT_EQ(journal.entries().size(), 4U);
  }
  EXPECT_EQ(text_of(path_),
            before + "{\"number\":3,\"sum\":\"" + fingerprint("{\"number\":3}") + "\"}\n");
}

// A kill may come anywhere: whole lines stay, the rest is as if it had never been.
TEST_F(JournalTest, ForgivesACutAnywhere) {
  const std::string whole = text_of(path_);
  const std::size_t header_size = whole.find('\n') + 1;
  // Each cut costs the disk a few waits: in the header every seventh byte has to do.
  for (std::size_t size = 0; size <= whole.size(); size += size + 7 < header_size ? 7 : 1) {
    SCOPED_TRACE(size);
    write_text(path_, whole.substr(0, size));
    const auto lines = std::count(whole.begin(), whole.begin() + static_cast<long>(size), '\n');
    Journal journal(path_, header());
    ASSERT_EQ(static_cast<long>(journal.entries().size()), std::max(0L, lines - 1));
    for (auto i = static_cast<int>(journal.entries().size()); i < 3; ++i) journal.append(entry(i));
    ASSERT_EQ(text_of(path_), whole);
  }
}

// A disk may have kept the length of a line and not its bytes.
TEST_F(JournalTest, ForgivesALastLineOfZeros) {
  const std::string whole = text_of(path_);
  write_text(path_, whole + std::string(20, '\0') + "\n");
  EXPECT_EQ(Journal(path_, header()).entries().size(), 3U);
  EXPECT_EQ(text_of(path_), whole);
}

TEST_F(JournalTest, RefusesDamageInTheMiddle) {
  std::string text = text_of(path_);
  text[text.find("\"number\":1")] = '}';
  write_text(path_, text);
  EXPECT_NE(refusal(path_).find("line 3"), std::string::npos) << refusal(path_);
  EXPECT_EQ(text_of(path_), text);  // and leaves it alone
}

// Whatever bit the disk lost: refused, or, in the last line, as if it had not been written.
TEST_F(JournalTest, NoticesAnyFlippedBit) {
  const std::string whole = text_of(path_);
  const std::size_t last = whole.rfind('\n', whole.size() - 2) + 1;
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    std::string text = whole;
    const std::size_t at = random() % (text.size() - 1);
    if (at + 1 == last) continue;  // the last two lines are one then, and not written
    text[at] = static_cast<char>(text[at] ^ (1 << random() % 8));
    write_text(path_, text);
    SCOPED_TRACE(text);
    if (at < last) {
      EXPECT_NE(refusal(path_), "");
      EXPECT_EQ(text_of(path_), text);
    } else if (text[at] != '\n') {
      EXPECT_EQ(Journal(path_, header()).entries().size(), 2u);
    }
  }
}

std::string without_sums(const std::string& text) {
  return std::regex_replace(text, std::regex(",\"sum\":\"[0-9a-f]{16}\""), "");
}

TEST_F(JournalTest, GoesOnWithOneFromBeforeChecksums) {
  write_text(path_, without_sums(text_of(path_)));
  for (std::size_t entries : {3u, 4u}) {
    Journal journal(path_, header());
    EXPECT_TRUE(journal.lacks_checksums());
    ASSERT_EQ(journal.entries().size(), entries);
    EXPECT_EQ(journal.entries().back(), entry(static_cast<int>(entries) - 1));
    if (entries == 3) journal.append(entry(3));
  }
  // Behind a header with its checksum every line has one.
  write_text(path_, "");
  { Journal(path_, header()).append(entry(0)); }
  const std::string text = text_of(path_);
  const std::size_t second = text.find('\n') + 1;
  const std::string line = text.substr(second);
  write_text(path_, text.substr(0, second) + without_sums(line) + line);
  EXPECT_NE(refusal(path_).find("line 2"), std::string::npos) << refusal(path_);
}

TEST_F(JournalTest, RefusesANestedLine) {
  const std::string text = text_of(path_);
  const std::size_t first = text.find('\n') + 1;
  for (const std::string& nested :
       {"{\"a\":" + std::string(100000, '[') + std::string(100000, ']') + "}",
        std::string(100000, '[')}) {
    write_text(path_, text.substr(0, first) + nested + "\n" + text.substr(first));
    EXPECT_NE(refusal(path_).find("line 2"), std::string::npos);
    write_text(path_, nested + "\n");
    EXPECT_NE(refusal(path_), "");
  }
}

TEST_F(JournalTest, NamesOneThatIsFarTooLarge) {
  std::filesystem::resize_file(path_, std::uintmax_t{50} << 30);  // sparse: takes no place
  EXPECT_NE(refusal(path_).find(path_ + ": 51200 MiB"), std::string::npos) << refusal(path_);
}

TEST_F(JournalTest, RefusesAnotherScenarioNamingWhatDiffers) {
  Json other = header();
  other["scenario"] = "xyz";
  other["steps"] = 50;
  const std::string before = text_of(path_);
  const std::string why = refusal(path_, other);
  EXPECT_NE(why.find(path_), std::string::npos) << why;
  EXPECT_NE(why.find("scenario is \"abc\" there and \"xyz\" here"), std::string::npos) << why;
  EXPECT_NE(why.find("steps is null there and 50 here"), std::string::npos) << why;
  EXPECT_EQ(why.find("seed"), std::string::npos) << why;
  EXPECT_EQ(text_of(path_), before);
}

TEST_F(JournalTest, RefusesWhatIsNoJournal) {
  for (const std::string text : {"hello\n", "hello", "[1]\n", "{\"a\": 1}\n", "\n"}) {
    write_text(path_, text);
    EXPECT_NE(refusal(path_), "") << text;
    EXPECT_EQ(text_of(path_), text);
  }
  EXPECT_THROW(Journal(scratch_.folder() + "/none/x.jsonl", header()), MachineError);
}

TEST_F(JournalTest, IsForOneRunAtATime) {
  const Journal journal(path_, header());
  EXPECT_THROW(Journal(path_, header()), MachineError);
}

// No file grows beyond `most` bytes: what a full disk does to a write.
class DiskOf {
 public:
  explicit DiskOf(rlim_t most) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{most, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~DiskOf() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  DiskOf(const DiskOf&) = delete;
  DiskOf& operator=(const DiskOf&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST_F(JournalTest, OnAFullDiskNoFileIsBegun) {
  for (const rlim_t room : {0u, 10u}) {
    const std::string fresh = scratch_.path("fresh.jsonl");
    const std::string prepared = scratch_.path("prepared.jsonl");
    write_text(prepared, "");
    {
      const DiskOf disk(room);
      EXPECT_THROW(Journal(fresh, header()), MachineError);
      EXPECT_THROW(Journal(prepared, header()), MachineError);
    }
    EXPECT_FALSE(std::filesystem::exists(fresh));
    EXPECT_TRUE(std::filesystem::exists(prepared));  // somebody else's, and gone on with
    EXPECT_TRUE(Journal(prepared, header()).entries().empty());
    std::filesystem::remove(prepared);
  }
}

// What was evaluated stays, also where it fits no longer that something is added.
TEST_F(JournalTest, OnAFullDiskEvaluationsStay) {
  const std::string before = text_of(path_);
  {
    const DiskOf disk(before.size() + 10);
    Journal journal(path_, header());
    EXPECT_THROW(journal.append(entry(3)), MachineError);
  }
  EXPECT_EQ(text_of(path_).substr(0, before.size()), before);
  EXPECT_EQ(Journal(path_, header()).entries().size(), 3U);
}

TEST(Fingerprint, TellsTextsApart) {
  EXPECT_EQ(fingerprint(""), "cbf29ce484222325");   // the offset basis of FNV-1a
  EXPECT_EQ(fingerprint("a"), "af63dc4c8601ec8c");  // its published test vector
  EXPECT_NE(fingerprint("ab"), fingerprint("ba"));
}

}  // namespace
}  // namespace syncline::tune
