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

// Returns one line per row. CSV: one column per sweep path; columns of published figures only if a
// row has them; bucket lists and refits are in JSON only. `causes`: the forms that show the parts
// of a step time (Column::Form).
Table run_rows(const std::vector<measure::Row>& rows, const std::string& baseline,
               int causes = Column::kAll);
Json rows_json(const std::vector<measure::Row>& rows);

// Returns the fields of these rows: their names, the sweep, predicted and published figures. A
// further figure of a row is a further field.
std::vector<Field<measure::Row>> run_fields(const std::vector<measure::Row>& rows,
                                            const std::string& baseline, int causes);

// Returns a table of the rows' names and of these fields, for people.
Table named_rows(const std::vector<measure::Row>& rows, std::vector<Field<measure::Row>> more);

// A path of the sweep, with a name short enough for a heading.
struct Axis {
  std::string path;  // "cluster.inter.bandwidth_gbps"
  std::string name;  // "bandwidth_gbps", or the fewest last components that keep names distinct
};

// Returns the sweep's paths in the order of the rows. A path below "strategies" keeps the
// strategy's name: the key belongs to that strategy alone, but is in every row.
std::vector<Axis> axes_of(const std::vector<measure::Row>& rows);

// Returns the row's value on the axis; nullptr if the row has none.
const Json* axis_value(const measure::Row& row, const Axis& axis);

// Returns that value as people write it; empty if the row has none.
std::string value_text(const measure::Row& row, const Axis& axis);

// Returns "bandwidth_gbps 10, streams 2"; empty without axes.
std::string point_text(const measure::Row& row, const std::vector<Axis>& axes);

// Returns true if two rows belong to the same sweep point.
bool same_point(const measure::Row& a, const measure::Row& b);

// Writes CSV of a scenario without published figures, line by line as rows arrive: finished rows
// are readable even if the program is stopped. The first row decides the columns.
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

// Puts step_time_s to lower_bound_s of a strategy into an object: all predictions of a row of `run`
// except its speedup.
void put_predicted(Json& object, const measure::Metrics& metrics);

}  // namespace syncline::reports
