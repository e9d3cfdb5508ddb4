// The journal: what it keeps, what it forgives and what it refuses.
#include "core/tune/journal.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.h"
#include "core/fingerprint.h"
#include "tests/support/scratch.h"

namespace syncline::tune {
namespace {

using test::Scratch;
using test::text_of;
using test::write_text;

Json header() { return {{"journal", "test"}, {"scenario", "abc"}, {"seed", 7}}; }

std::string refusal(const std::string& path, const Json& wanted = header()) {
  try {
    const Journal journal(path, wanted);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
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
    journal.append({{"number", 3}});
    EXPECT_EQ(journal.entries().size(), 4U);
  }
  EXPECT_EQ(text_of(path_), before + "{\"number\":3}\n");
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

TEST(Fingerprint, TellsTextsApart) {
  EXPECT_EQ(fingerprint(""), "cbf29ce484222325");   // the offset basis of FNV-1a
  EXPECT_EQ(fingerprint("a"), "af63dc4c8601ec8c");  // its published test vector
  EXPECT_NE(fingerprint("ab"), fingerprint("ba"));
}

}  // namespace
}  // namespace syncline::tune
