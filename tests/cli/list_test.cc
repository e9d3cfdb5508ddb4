// `syncline list` prints every row of the tables that a scenario names things from.
#include <gtest/gtest.h>

#include <regex>
#include <sstream>

#include "core/collective/algorithm.h"
#include "core/compress/codec.h"
#include "core/dialect/dialect.h"
#include "core/hardware/device.h"
#include "core/job/format.h"
#include "core/operators/architecture.h"
#include "tests/support/program.h"

namespace syncline::cli {
namespace {

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
  EXPECT_NE(ran.out.find("8,030,261,248 parameters"), std::string::npos);
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
