// The rows of `run` as a table, for people and programs, and the sweep that they lie on.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

#include "formats/json/json.h"
#include "reports/table.h"
#include "studies/rows/report.h"

namespace syncline::reports {

// One line a row. CSV: one column a sweep path; columns about published figures only where some row
// has them; bucket lists and refits are in the JSON alone. `causes`: the forms that say what a step
// time is made of (Column::Form).
Table run_rows(const std::vector<measure::Row>& rows, const std::string& baseline,
               int causes = Column::kAll);
Json rows_json(const std::vector<measure::Row>& rows);

// Returns the fields of these rows: their names, the sweep, and what is predicted and published.
// A further figure of a row is a further field.
std::vector<Field<measure::Row>> run_fields(const std::vector<measure::Row>& rows,
                                            const std::string& baseline, int causes);

// Makes a table of the rows' names and of these fields, for people.
Table named_rows(const std::vector<measure::Row>& rows, std::vector<Field<measure::Row>> more);

// A path of the sweep, with a name short enough for a heading.
struct Axis {
  std::string path;  // "cluster.inter.bandwidth_gbps"
  std::string name;  // "bandwidth_gbps", or as many last components as keep the names distinct
};

// Returns the sweep's paths in the order of the rows. A path below "strategies" keeps the
// strategy's name: the key is that strategy's alone, though it stands in every row.
std::vector<Axis> axes_of(const std::vector<measure::Row>& rows);

// Returns the value that a row has on the axis; nullptr where the row does not name it.
const Json* value_on(const measure::Row& row, const Axis& axis);

// The same as a person writes it; empty where the row does not name it.
std::string value_text(const measure::Row& row, const Axis& axis);

// "bandwidth_gbps 10, streams 2"; empty without axes.
std::string point_text(const measure::Row& row, const std::vector<Axis>& axes);

// Returns whether two rows belong to the same sweep point.
bool same_point(const measure::Row& a, const measure::Row& b);

// Lines of CSV of a scenario without published figures, each written as a whole once its row is
// there: what has been done is read, however the program ends. The columns are known from the first
// row on.
class CsvStream {
 public:
  explicit CsvStream(std::ostream& out) : out_(out) {}
  void put(const measure::Row& row);
  std::size_t rows() const { return count_; }

 private:
  void begin(const measure::Row& first);

  std::ostream& out_;
  std::vector<Field<measure::Row>> fields_;
  Table table_;
  std::size_t count_ = 0;
};

// Puts step_time_s to lower_bound_s of a strategy by itself into an object: all that a row of
// `run` predicts but its speedup.
void put_predicted(Json& object, const measure::Metrics& metrics);

}  // namespace syncline::reports
