// A table that is written once: what of it people see, and what programs get.
#include <gtest/gtest.h>

#include <stdexcept>

#include "reports/table.h"

namespace syncline::reports {
namespace {

using enum Kind;

Table steps() {
  Table table{columns(both("name", "name"), both("step\ntime", "step_time_s", kSeconds),
                      both("80 %\ninterval", "step_time_*_s", kSeconds),
                      both("use", "published/use", kText, 0, Column::kAll, Column::kNoJson),
                      shown("sure", kShare), kept("bytes", Column::kJson))};
  table.add("a", 0.5, measure::Interval{0.25, 1}, Cell(), 12.5, 7);
  return table;
}

TEST(Columns, PeopleSeeWhatTheKindMakesOfAValue) {
  EXPECT_EQ(plain_grid(grid_of(steps())),
            "          step             80 %\n"
            "name      time         interval    sure\n"
            "---------------------------------------\n"
            "a     500.0 ms  0.250 to 1.00 s  12.5 %\n");
}

TEST(Columns, ProgramsGetTheValueItself) {
  EXPECT_EQ(csv_text(steps()),
            "name,step_time_s,step_time_low_s,step_time_high_s\r\na,0.5,0.25,1\r\n");
  EXPECT_EQ(json_of(steps()).dump(),
            R"([{"name":"a","step_time_s":0.5,"step_time_low_s":0.25,"step_time_high_s":1,)"
            R"("bytes":7}])");
}

TEST(Columns, ASparseColumnStandsWhereALineHasAValue) {
  Table table = steps();
  table.add("b,c", 1, Cell(), "predicted", Cell(), Cell());
  EXPECT_EQ(csv_text(table),
            "name,step_time_s,step_time_low_s,step_time_high_s,published_use\r\n"
            "a,0.5,0.25,1,\r\n\"b,c\",1,,,predicted\r\n");
  EXPECT_EQ(json_of(table)[1].dump(),
            R"({"name":"b,c","step_time_s":1,"published":{"use":"predicted"}})");
  EXPECT_NE(plain_grid(grid_of(table)).find("use"), std::string::npos);
}

TEST(Columns, WhatIsNotKnownIsLeftOutOrNull) {
  Table table{columns(both("a", "a", kFlag), both("b", "b", kCount))};
  table.add(or_null(std::optional<bool>()), std::optional<double>());
  table.add(shown_as(true, "equal"), 12345);
  EXPECT_EQ(json_of(table).dump(), R"([{"a":null},{"a":true,"b":12345}])");
  EXPECT_EQ(csv_text(table), "a,b\r\n,\r\ntrue,12345\r\n");
  EXPECT_EQ(plain_grid(grid_of(table)), "a           b\n-------------\n\nequal  12,345\n");
}

TEST(Columns, ALineIsAsWideAsItsTable) {
  Table table{columns(both("a", "a"), both("b", "b"))};
  EXPECT_THROW(table.add("one"), std::logic_error);
}

}  // namespace
}  // namespace syncline::reports
