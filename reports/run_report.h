// The answer of `syncline run`: a report as a page, as rows for spreadsheets, as JSON.
#pragma once

#include <cstddef>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "core/json/json.h"
#include "core/measure/explanation.h"
#include "core/measure/report.h"
#include "reports/answer.h"
#include "reports/grid.h"
#include "reports/page.h"
#include "reports/table.h"

namespace syncline::reports {

// The rows; beside them, where somebody published figures, those and the error of the prediction
// (of the step time, else the throughput, else the speedup, else the collectives: the first that
// was published). Then what was fitted, what the table shows, and where the figures come from.
Page page_of(const measure::Report& report);
// The verdict first, then the rows with how fast they are and what communication they expose.
Page brief_of(const measure::Report& report);

// One line a row. CSV: one column a sweep path; columns about published figures only where some row
// has them; bucket lists and refits are in the JSON alone. `causes`: the forms that say what a step
// time is made of (Column::Form).
Table run_rows(const std::vector<measure::Row>& rows, const std::string& baseline,
               int causes = Column::kAll);
Json rows_json(const std::vector<measure::Row>& rows);

// What rows are called, and these columns, for people.
Table named_rows(const std::vector<measure::Row>& rows, const std::vector<Column>& more,
                 const std::function<std::vector<Cell>(const measure::Row&)>& cells);

// A path of the sweep, with a name short enough for a heading.
struct Axis {
  std::string path;  // "cluster.inter.bandwidth_gbps"
  std::string name;  // "bandwidth_gbps", or as many last components as keep the names distinct
};

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
  std::vector<Axis> axes_;
  Table table_;
  std::size_t count_ = 0;
};

Json json_of(const measure::Report& report);

// All three.
Answer answer_of(const measure::Report& report);

// Where the figures come from, in sentences. Which executor predicted the figures, and what they
// were fitted to.
std::string figures_sentence(const measure::Report& report);

// Which strategies change the training itself, about whose accuracy nothing is said. Empty if none.
std::string accuracy_sentence(const measure::Report& report);

// How far predictions are from published figures: those used for the fit, those not used, and each
// left out in turn. Empty where nothing was published to compare with.
std::string agreement_sentence(const measure::Report& report);

// The sweep's paths in the order of the rows. A path below "strategies" keeps the strategy's name:
// the key is that strategy's alone, though it stands in every row.
std::vector<Axis> axes_of(const std::vector<measure::Row>& rows);

// The value that a row has on the axis; nullptr where the row does not name it.
const Json* value_on(const measure::Row& row, const Axis& axis);

// The same as a person writes it; empty where the row does not name it.
std::string value_text(const measure::Row& row, const Axis& axis);

// "bandwidth_gbps 10, streams 2"; empty without axes.
std::string point_text(const measure::Row& row, const std::vector<Axis>& axes);

// Whether two rows belong to the same sweep point.
bool same_point(const measure::Row& a, const measure::Row& b);

// What a report's table says, in a plain sentence or two, worked out from its rows.

// Speedups within this ratio are called equal.
inline constexpr double kTie = 1.005;
// Below this, a strategy is slower.
inline constexpr double kPays = 0.9995;

// Which strategy is fastest at which sweep points, by how much over the baseline, and which do not
// pay: "dgc is the fastest at bandwidth_gbps 10 and 1 (1.47x and 6.55x over momentum); at 100 it
// is slower (0.985x)." Where some strategies do not fit in memory, the fastest of those that do,
// and which are faster and do not fit. Speaks about the first row's executor where there are
// several.
std::string verdict(const measure::Report& report);

// That no values of the fitted keys bring the fitted rows within 6 % of what was measured, in the
// mean: the rest of the answer is about another job. Empty where they do. The verdict begins so.
std::string fit_failure(const measure::Report& report);

// How each row of the report stands out: the fastest of its sweep point, as the verdict has it, and
// what is slower or does not fit there. Plain where there is nothing to compare with.
std::vector<Tone> tones_of(const measure::Report& report);

// What usually holds such a network below its ports' rates, and the settings to try.
std::string slow_network_causes(Fabric fabric, int nics);

// The answer of `syncline explain`: in words what each strategy does, what it is bound by, and
// which changes would gain most.

// Of those that fit, of all where none does; nullptr where nothing is explained.
const measure::Explained* fastest_of(const measure::Explanation& explanation);

// CSV: one line a strategy and change, with an empty change where none is worth making.
Answer answer_of(const measure::Explanation& explanation);

}  // namespace syncline::reports
