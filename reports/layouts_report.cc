#include "reports/layouts_report.h"
#include "reports/decisions.h"
#include "reports/memory_text.h"
#include "reports/tune_report.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "reports/format.h"
#include "reports/table.h"

namespace syncline::reports {
namespace {

using tune::RankedLayout;

using Shares = std::vector<std::pair<std::string, Seconds>>;

// Returns the parts of a step, with the same names for all layouts.
Shares shares_of(const measure::Bottleneck& bottleneck) {
  return {{"computation", bottleneck.compute + bottleneck.stragglers},
          {"bubble", bottleneck.bubble + bottleneck.sends},
          {"tensor parallelism", bottleneck.tensor},
          {"context parallelism", bottleneck.context},
          {"expert parallelism", bottleneck.expert},
          {"data parallelism",
           bottleneck.communication() + bottleneck.comm_overhead + bottleneck.overhead}};
}

// Returns fields of the shares of a step; a kind of parallelism that a layout lacks has no value.
std::vector<Field<RankedLayout>> share_fields() {
  struct Heading {
    const char* heading;
    const char* key;
    int rank;
  };
  const std::vector<Heading> headings{
      {"compu-\ntation", "computation_percent", 3}, {"bubble", "bubble_percent", 2},
      {"tensor", "tensor_parallelism_percent", 2},  {"context", "context_parallelism_percent", 3},
      {"expert", "expert_parallelism_percent", 3},  {"data", "data_parallelism_percent", 2}};
  std::vector<Field<RankedLayout>> shares;
  for (std::size_t i = 0; i < headings.size(); ++i) {
    const auto& [heading, key, rank] = headings[i];
    shares.push_back({table_column(heading, key, Kind::kShare, rank, Column::kAll, Column::kPage),
                      [i](const RankedLayout& one) {
                        const Seconds seconds = shares_of(one.bottleneck)[i].second;
                        return seconds > 0 ? Cell(100 * seconds / one.bottleneck.step) : Cell();
                      }});
  }
  return shares;
}

std::vector<Field<RankedLayout>> fields_of(const tune::Layouts& layouts) {
  using enum Kind;
  using One = const RankedLayout&;
  return fields<RankedLayout>(
      std::vector<Field<RankedLayout>>{
          {table_column("layout", "layout"), &RankedLayout::words},
          {data_column("parallel", Column::kJson), &RankedLayout::parallel},
          {data_column("batch"), &RankedLayout::batch},
          {data_column("micro_batches"), &RankedLayout::micro_batches},
          {data_column("replicas"), &RankedLayout::replicas},
          {data_column("recompute", Column::kPrograms, Column::kAll),
           [](One one) { return one.recompute.empty() ? Cell() : Cell(one.recompute); }},
          {table_column("step\ntime", "step_time_s", kSeconds),
           [](One one) { return one.metrics.step_time; }},
          {table_column("80 %\ninterval", "step_time_*_s", kSeconds, 4), &RankedLayout::step},
          {table_column("speedup over\nthe given", "speedup", kSpeedup),
           [&layouts](One one) { return layouts.speedup(one); }},
          {table_column("80 %\ninterval", "speedup_*", kSpeedup, 5), &RankedLayout::gain},
          {table_column("samples/s", "throughput", kThroughput, 6),
           [](One one) { return one.metrics.throughput; }},
          {table_column("tokens/s\nper GPU", "tokens_per_s_per_gpu", kThroughput, 1),
           [](One one) { return one.tokens > 0 ? Cell(one.tokens) : Cell(); }},
          {table_column("MFU", "mfu_percent", kShare),
           [](One one) { return one.mfu > 0 ? Cell(100 * one.mfu) : Cell(); }},
          {page_column("memory\nper GPU", kBytes), [](One one) { return memory_cell(one.memory); }},
          {data_column("memory_bytes", Column::kJson),
           [](One one) { return memory_json(one.memory); }},
          {data_column("memory_bytes", Column::kCsv), [](One one) { return one.memory.total(); }}},
      share_fields());
}

Table ranking_of(const tune::Layouts& layouts) {
  return table_of(fields_of(layouts), layouts.ranking);
}

// Returns the ranking for people, with the given layout below it.
Grid ranking_grid(const tune::Layouts& layouts) {
  Table table = ranking_of(layouts);
  Table::Line& line = table.add_line(cells_of(fields_of(layouts), layouts.given));
  line.cells.front().text = "given: " + layouts.given.words();
  line.rule_before = true;
  return grid_of(table);
}

std::string shortage_of(const tune::Layouts& layouts) {
  const measure::Memory& memory = layouts.given.memory;
  if (memory.available <= 0 || memory.total() <= memory.available) return "";
  return "the given layout needs " + measure::gigabytes(memory.total()) +
         " GB per GPU, which has " + measure::gigabytes(memory.available);
}

// Returns "computation takes 1.20 s less and bubble takes 100 ms more": the parts that differ most.
std::string differences(const RankedLayout& best, const RankedLayout& given) {
  constexpr double kWorthTelling = 0.005;  // share of the given step
  const Shares now = shares_of(best.bottleneck), before = shares_of(given.bottleneck);
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < now.size(); ++i) {
    const Seconds change = now[i].second - before[i].second;
    if (std::abs(change) < kWorthTelling * given.bottleneck.step) continue;
    parts.push_back(now[i].first + " takes " + seconds_text(std::abs(change), kSaidDigits) +
                    (change < 0 ? " less" : " more"));
  }
  return join_and(parts);
}

std::string search_sentence(const tune::Layouts& layouts) {
  std::string text = count_text(layouts.layouts) + " layouts divide the cluster; " +
                     count_text(layouts.fitting) + " of them divide the model and fit, " +
                     count_text(layouts.too_large) + " need more memory; " +
                     count_text(layouts.evaluated) + " were evaluated by the " + layouts.executor +
                     " executor with the strategy " + quoted_name(layouts.strategy);
  if (!layouts.complete) return text + "; stopped before the end.";
  return text +
         (layouts.evaluated < layouts.fitting ? ", the rest ruled out by their bounds." : ".");
}

// Returns the changes with the best's settings in the framework's words if it was asked for.
Table changes_of(const tune::Layouts& layouts) {
  constexpr std::size_t kBest = 1;
  std::vector<measure::Advice> rows = layouts.changes;
  if (!layouts.pasted.empty() && rows.size() > kBest) {
    rows[kBest].set_with = "in " + layouts.dialect + ": " + layouts.pasted;
  }
  Table table = decisions_of(rows, true);
  if (rows.size() > kBest) table.lines[kBest].tone = Tone::kBest;
  return table;
}

Page page_of(const tune::Layouts& layouts) {
  Page page;
  page.title = "Layouts: " + one_line(layouts.scenario.name);
  const std::string shortage = shortage_of(layouts);
  if (!shortage.empty()) page.add("Does not fit: " + shortage + ".");
  page.add("Workload " + one_line(layouts.scenario.workload.name) + ", cluster " +
           one_line(layouts.scenario.cluster.name) + ".");
  for (const std::string& verdict : layout_verdicts(layouts)) page.add(verdict);
  if (!layouts.changes.empty()) {
    page.add(changes_of(layouts));
    page.add("The best layouts:");
  }
  page.add(ranking_grid(layouts));
  page.add(search_sentence(layouts));
  if (!layouts.pasted.empty()) {
    page.add("And as settings of " + layouts.dialect + ":");
    page.add(Listing{"", layouts.pasted + "\n"});
  }
  page.add("All figures are predicted by the " + layouts.executor + " executor, none is measured.");
  return page;
}

Json json_of_layouts(const tune::Layouts& layouts) {
  Json json;
  if (!layouts.ranking.empty()) {
    json["best"] = layouts.ranking.front().keys();
    json["step_time_s"] = exact(layouts.ranking.front().metrics.step_time);
  }
  if (!layouts.pasted.empty()) {
    json["emit"] = {{"dialect", layouts.dialect}, {"code", layouts.pasted}};
  }
  json["strategy"] = layouts.strategy;
  json["changes"] = json_of(changes_of(layouts));
  json["ranking"] = json_of(ranking_of(layouts));
  json["given"] = json_of(table_of(fields_of(layouts), {layouts.given}))[0];
  json["searched"] = {{"layouts", layouts.layouts},     {"fitting", layouts.fitting},
                      {"too_large", layouts.too_large}, {"priced", layouts.evaluated},
                      {"complete", layouts.complete},   {"search", search_sentence(layouts)}};
  if (const std::string shortage = shortage_of(layouts); !shortage.empty()) {
    json["does_not_fit"] = shortage;
  }
  json["verdicts"] = layout_verdicts(layouts);
  json["provenance"] = {{"executor", layouts.executor},
                        {"workload", layouts.scenario.workload.name},
                        {"cluster", layouts.scenario.cluster.name}};
  return json;
}

}  // namespace

std::vector<std::string> layout_verdicts(const tune::Layouts& layouts) {
  if (layouts.ranking.empty()) {
    return {layouts.least.empty() ? "No layout was found that divides the model."
                                  : "No layout fits: " + layouts.least + "."};
  }
  const RankedLayout& best = layouts.ranking.front();
  const RankedLayout& given = layouts.given;
  const Seconds step = best.metrics.step_time;
  std::string text = quoted_name(best.words()) +
                     " is the best found: " + seconds_text(step, kSaidDigits) +
                     " per step (80 %: " + seconds_range(best.step.low, best.step.high) + ")";
  if (best.same_job(given)) {
    return {text + ", and it is the given one."};
  }
  text += ", " + short_speedup_text(layouts.speedup(best));
  const std::string range = speedup_range(best.gain.low, best.gain.high);
  if (!range.empty()) text += " (" + range + ")";
  std::vector<std::string> verdicts{text + " over the given " + quoted_name(given.words()) + " (" +
                                    seconds_text(given.metrics.step_time, kSaidDigits) + ")." +
                                    room_sentence(best.memory)};
  const std::string why = differences(best, given);
  if (!why.empty()) verdicts.push_back("Against the given, " + why + ".");
  return verdicts;
}

Answer answer_of(const tune::Layouts& layouts) {
  return make_answer("tune", layouts.scenario.name, layouts, page_of, ranking_of, json_of_layouts,
                     layouts.warnings);
}

}  // namespace syncline::reports
