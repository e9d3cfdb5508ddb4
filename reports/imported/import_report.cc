#include "reports/imported/import_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "imports/scenario_of.h"
#include "imports/whole_job.h"
#include "reports/format.h"
#include "reports/run_figures.h"
#include "reports/run_report.h"
#include "reports/table.h"
#include "reports/verdict.h"

namespace syncline::reports {
namespace {

using job::ObservedExchange;
using job::Step;

// Returns the step that represents the job, or nullptr for a model file.
const Step* typical(const ImportedJob& job) {
  if (job.observed.ranks.empty() || job.observed.ranks.front().steps.empty()) return nullptr;
  return &job::typical_step(job.observed.ranks.front());
}

std::string range_text(Seconds low, Seconds high) {
  return low == high ? seconds_text(low) : seconds_text(low) + " to " + seconds_text(high);
}

std::string origin(const job::Observed& observed) {
  std::string text = observed.format;
  if (!observed.version.empty()) text += " " + observed.version;
  if (!observed.framework.empty()) text += ", " + observed.framework;
  if (!observed.nccl_version.empty()) {
    text += ", NCCL " + observed.nccl_version;
  } else if (!observed.backend.empty()) {
    text += ", " + observed.backend;
  }
  if (!observed.device.empty()) text += ", " + observed.device;
  return one_line(text);
}

std::string ranks_text(const job::Observed& observed) {
  const std::size_t read = observed.ranks.size();
  const auto world = static_cast<std::size_t>(std::max(1, observed.world_size));
  if (read == world) return plural(world, "rank");
  return std::to_string(read) + " of " + plural(world, "rank") + " read";
}

// Returns the bytes of the collectives that carry gradients.
Bytes bucket_bytes(const Step& step) {
  Bytes bytes = 0;
  for (const ObservedExchange& exchange : step.exchanges) {
    if (!exchange.gradients.empty()) bytes += exchange.bytes();
  }
  return bytes;
}

std::string steps_text(const ImportedJob& job, const Step& step) {
  const auto& steps = job.observed.ranks.front().steps;
  const auto range = [&](Seconds Step::*of) {
    const auto [low, high] = std::ranges::minmax_element(steps, {}, of);
    return range_text((*low).*of, (*high).*of);
  };
  std::string text = plural(steps.size(), "step") + ": " + range(&Step::gpu) + " on the GPU";
  const bool timed = std::ranges::any_of(steps, [](const Step& one) { return one.cpu > 0; });
  if (timed) text += ",\n             " + range(&Step::cpu) + " on the CPU";
  if (steps.size() > 1) text += "; step " + std::to_string(step.number) + " is representative";
  return text;
}

std::string facts(const ImportedJob& job) {
  const Step* step = typical(job);
  std::string text = "  read       " + origin(job.observed) + "\n";
  if (step == nullptr) return text;
  text += "  ranks      " + ranks_text(job.observed) + "\n";
  text += "  steps      " + steps_text(job, *step) + "\n";
  const auto& whole = job.observed.whole;
  if (whole) text += "  layout     " + job::layout_text(*whole, job.observed.world_size) + "\n";
  const std::string own = job::own_collectives(*step);
  if (!own.empty() && !whole)
    text += "  job        not plain data-parallel: " + own + " per step of its own\n";
  const Bytes told = job::gradient_bytes(*step);
  const Bytes sent = bucket_bytes(*step);
  text += "  gradients  " + count_text(step->gradients.size()) + ", " + bytes_text(told);
  const std::string verb = whole ? "; summed " : "; all-reduced ";
  if (sent > 0) text += verb + bytes_text(sent);
  // Shards are padded, and sums may be in another format.
  text += sent > 0 && sent != told && !whole ? ": they do not match\n" : "\n";
  if (!job.imported.rule.words.empty()) {
    text += "  buckets    " + job.imported.rule.words + "\n";
    for (const auto& other : job.imported.rule.others) text += "             " + other + "\n";
  }
  return text;
}

// A part of a step. kParts has them in order of time.
struct Part {
  const char* name;
  const char* key;
  Seconds Step::*seconds;
  bool inside = false;  // part of the one above it
};

constexpr Part kParts[] = {
    {"broadcast of the buffers", "broadcast_s", &Step::broadcast},
    {"forward", "forward_s", &Step::forward},
    {"backward", "backward_s", &Step::backward},
    {"copies into buckets", "copy_in_s", &Step::copy_in, true},
    {"copies out of buckets", "copy_out_s", &Step::copy_out},
    {"waiting for collectives", "exposed_s", &Step::exposed},
    {"waiting for other stages", "stages_s", &Step::stages},
    {"waiting for the host", "host_gap_s", &Step::host_gap},
    {"update", "update_s", &Step::update},
    {"between steps", "between_s", &Step::between},
};

Grid parts_grid(const Step& step) {
  Grid grid{{{"where the step goes", false}, {"time"}, {"share"}}, {}};
  const auto add = [&](const std::string& name, Seconds time, Seconds share, bool rule = false) {
    const std::string percent = share_text(100 * share / step.gpu);
    grid.lines.push_back({{name, seconds_text(time), percent}, rule});
  };
  Seconds sum = 0;
  for (const Part& part : kParts) {
    const Seconds seconds = step.*part.seconds;
    if (!part.inside) sum += seconds;
    if (seconds == 0 && part.seconds != &Step::exposed) continue;
    add((part.inside ? "  " : "") + std::string(part.name), seconds, seconds);
  }
  add("the step on the GPU", step.gpu, sum, true);
  const Seconds idle = step.idle + step.between_idle;
  if (idle > 0) add("  GPU idle (host-bound)", idle, idle);
  return grid;
}

// Returns "0, 1", "0, 4, ... 12".
std::string ranks_text_of(const job::RankGroup& group) {
  constexpr std::size_t kShown = 4;
  std::string text;
  for (std::size_t i = 0; i < group.ranks.size(); ++i) {
    const bool last = i + 1 == group.ranks.size();
    if (group.ranks.size() > kShown && i > 1 && !last) continue;
    if (group.ranks.size() > kShown && last) text += ", ...";
    text += (i > 0 ? ", " : "") + std::to_string(group.ranks[i]);
  }
  return text.empty() ? "not told" : text;
}

// Returns a table of the groups of ranks: their role, traffic and times. Groups without the first
// rank are listed only if several of their ranks were read.
Table groups_of(const job::Observed& observed) {
  using enum Kind;
  Table groups{columns(
      table_column("group", "role"), data_column("name"), data_column("description"),
      data_column("members", Column::kJson), table_column("ranks", "size", kInteger, 3),
      page_column("of the world"), table_column("calls", "calls", kInteger, 2),
      table_column("bytes", "bytes", kBytes, 1), table_column("hidden", "hidden_s", kSeconds),
      table_column("exposed", "exposed_s", kSeconds), data_column("last_rank", Column::kJson),
      data_column("matched", Column::kJson), data_column("came_last", Column::kJson),
      page_column("comes last"), table_column("waited for it", "waited_s", kSeconds))};
  const int first = observed.ranks.empty() ? 0 : observed.ranks.front().rank;
  for (const job::RankGroup& group : observed.groups) {
    const bool own = group.ranks.empty() || std::ranges::binary_search(group.ranks, first);
    if (group.calls == 0 || (!own && group.matched == 0)) continue;
    const bool late = group.last_rank >= 0;
    const std::string last = "rank " + std::to_string(group.last_rank) + ", " +
                             std::to_string(group.last) + " of " + std::to_string(group.matched);
    groups.add(job::role_text(group.role), group.name, group.description, Json(group.ranks),
               group.size, ranks_text_of(group), group.calls, group.bytes, group.hidden,
               group.exposed, group.last_rank, group.matched, group.last, late ? last : "",
               late ? Cell(group.waited) : show_as(group.waited, ""));
  }
  return groups;
}

// Returns a table of collectives; their true time is known if several ranks were read.
Table exchanges_of(const ImportedJob& job, const Step& step, bool sums_alone = false) {
  using enum Kind;
  const bool several = job.observed.ranks.size() > 1;
  Table exchanges{columns(
      table_column("collective", "kind"), data_column("group"), data_column("ranks"),
      table_column("gradients", "gradients", kInteger, 0, Column::kNoJson),
      data_column("gradients", Column::kJson), data_column("elements", Column::kJson),
      data_column("dtype", Column::kJson), table_column("size", "bytes", kBytes),
      table_column("complete", "complete_s", kSeconds, 3),
      table_column("sent", "sent_s", kSeconds, 2), table_column("took", "duration_s", kSeconds),
      table_column("truly", "time_s", kSeconds, 0, Column::kAll, Column::kPage),
      page_column("waiting", kSeconds, 1, Column::kPage),
      table_column("exposed", "exposed_s", kSeconds))};
  for (const ObservedExchange& one : step.exchanges) {
    if (sums_alone && one.gradients.empty()) continue;
    const auto of_bucket = [&](Cell cell) {
      return one.gradients.empty() ? show_as(std::move(cell), "-") : cell;
    };
    exchanges.add(one.kind, one.group, one.ranks, of_bucket(one.gradients.size()),
                  Json(one.gradients), one.elements, to_string(one.dtype), one.bytes(),
                  of_bucket(one.complete), one.sent, one.duration,
                  several ? one.time : show_as(one.time, ""),
                  several ? one.duration - one.time : Cell(), one.exposed);
  }
  return exchanges;
}

Grid skew_grid(const ImportedJob& job, const Step& step) {
  Grid grid{{{"collective over the ranks", false}, {"shortest"}, {"longest"}, {"came last"}}, {}};
  for (const auto& skew : job.observed.skew) {
    if (skew.exchange >= step.exchanges.size()) continue;
    const ObservedExchange& exchange = step.exchanges[skew.exchange];
    grid.lines.push_back(
        {{one_line(exchange.kind) + ", " + bytes_text(exchange.bytes()), seconds_text(skew.least),
          seconds_text(skew.most), "rank " + std::to_string(skew.last_rank)},
         false});
  }
  return grid;
}

Table rows_of(const ImportedJob& job) {
  using enum Kind;
  Table rows{columns(
      table_column("predicted", "strategy"), table_column("step", "step_time_s", kSeconds),
      table_column("80 % interval", "step_time_*_s", kSeconds),
      table_column("gain", "speedup", kSpeedup), table_column("gain, 80 %", "speedup_*", kSpeedup),
      page_column("measured", kSeconds), table_column("error", "error_percent", kPercent))};
  const auto tones = tones_of(job.evaluated);
  for (const measure::Row& row : job.evaluated.rows) {
    const auto gain = [&](Cell cell) {
      return row.strategy == job.evaluated.baseline ? show_as(std::move(cell), "") : cell;
    };
    const Tone tone = tones[rows.lines.size()];
    rows.add(row.strategy, row.metrics.step_time, row.step, gain(row.speedup), gain(row.gain),
             row.published ? Cell(row.published->step_time) : Cell(), row.error_percent)
        .tone = tone;
  }
  return rows;
}

std::string next_commands(const ImportedJob& job) {
  if (job.out.empty()) return "  -o FILE writes the scenario\n";
  return "  wrote      " + job.out + "\n  next       syncline run " + job.out +
         "\n             syncline tune " + job.out + " --emit pytorch\n";
}

// Returns "A step takes 196 ms, and 12 % of it waits for collectives; predicted: 200 ms (+1.9 %)."
// The prediction takes the computation from the trace, so it is left out for a single rank.
std::string step_sentence(const ImportedJob& job, const Step& step) {
  std::string text = "A step takes " + seconds_text(step.gpu);
  text += ", and " + share_text(100 * step.exposed / step.gpu) + " of it waits for collectives";
  for (const measure::Row& row : job.evaluated.rows) {
    if (job.observed.world_size < 2 || row.strategy != job.evaluated.baseline) continue;
    text += "; predicted: " + seconds_text(row.metrics.step_time);
    if (row.error_percent) text += " (" + percent_text(*row.error_percent) + ")";
    break;
  }
  return text + ".";
}

Page page_of(const ImportedJob& job) {
  Page page{one_line(job.observed.name), "", {}};
  const Step* const step = typical(job);
  if (step != nullptr && step->gpu > 0) page.add(step_sentence(job, *step));
  page.add(Listing{"text", facts(job)});
  if (step != nullptr) {
    if (step->gpu > 0) page.add(parts_grid(*step));
    const bool whole = job.observed.whole.has_value();
    if (whole) page.add(groups_of(job.observed));
    if (!step->exchanges.empty()) {
      page.add(exchanges_of(job, *step, whole));
    }
    if (!job.observed.skew.empty()) page.add(skew_grid(job, *step));
  }
  if (!job.evaluated.rows.empty()) page.add(rows_of(job));
  page.add(Items{"Notes:", job.observed.warnings});
  page.add(Items{"Assumed:", job.imported.assumed});
  page.add(Listing{"text", next_commands(job)});
  return page;
}

Table csv_of(const ImportedJob& job) {
  const Step* step = typical(job);
  return exchanges_of(job, step == nullptr ? Step() : *step);
}

Json step_json(const ImportedJob& job, const Step& step) {
  Json json{{"number", step.number}, {"cpu_s", exact(step.cpu)}, {"gpu_s", exact(step.gpu)}};
  for (const Part& part : kParts) json[part.key] = exact(step.*part.seconds);
  json["copy_kernels_s"] = exact(step.copy_kernels);
  json["idle_s"] = exact(step.idle);
  json["between_idle_s"] = exact(step.between_idle);
  json["between_host"] = Json::array();
  for (const auto& [name, time] : step.by_host) {
    json["between_host"].push_back({{"name", name}, {"time_s", exact(time)}});
  }
  json["gradients"] = step.gradients.size();
  json["gradient_bytes"] = job::gradient_bytes(step);
  json["all_reduced_bytes"] = bucket_bytes(step);
  json["exchanges"] = json_of(exchanges_of(job, step));
  return json;
}

Json json_of(const ImportedJob& job) {
  const job::Observed& observed = job.observed;
  Json json{{"file", observed.file},
            {"reader", observed.format},
            {"framework", observed.framework},
            {"backend", observed.backend},
            {"nccl", observed.nccl_version},
            {"device", observed.device},
            {"world_size", observed.world_size},
            {"ranks_read", observed.ranks.size()}};
  if (const Step* step = typical(job)) {
    Json& steps = json["steps"] = Json::array();
    for (const Step& one : observed.ranks.front().steps) {
      steps.push_back(
          {{"number", one.number}, {"cpu_s", exact(one.cpu)}, {"gpu_s", exact(one.gpu)}});
    }
    json["typical"] = step_json(job, *step);
    json["buckets"] = {{"explained", job.imported.rule.explains},
                       {"rule", job.imported.rule.words},
                       {"others", job.imported.rule.others}};
  }
  if (observed.whole) {
    json["layout"] = job::layout_text(*observed.whole, observed.world_size);
    json["groups"] = json_of(groups_of(observed));
  }
  Json& skews = json["skew"] = Json::array();
  for (const auto& skew : observed.skew) {
    skews.push_back({{"exchange", skew.exchange},
                     {"least_s", exact(skew.least)},
                     {"most_s", exact(skew.most)},
                     {"last_rank", skew.last_rank}});
  }
  json["rows"] = json_of(rows_of(job));
  json["warnings"] = observed.warnings;
  json["assumed"] = job.imported.assumed;
  json["written"] = job.out;
  json["scenario_file"] = job.imported.scenario;
  return json;
}

}  // namespace

Answer answer_of(const ImportedJob& job) {
  // The scenario's own notes have headings of their own.
  std::vector<std::string> warnings = job.evaluated.warnings;
  std::erase_if(warnings, [&](const std::string& warning) {
    const auto in = [&](const std::vector<std::string>& said) {
      return std::find(said.begin(), said.end(), warning) != said.end();
    };
    return in(job.observed.warnings) || in(job.imported.assumed);
  });
  Answer answer =
      make_answer("import", job.observed.name, job, page_of, csv_of, json_of, std::move(warnings));
  answer.figures = [&] { return figures_of(job.evaluated); };
  return answer;
}

}  // namespace syncline::reports
