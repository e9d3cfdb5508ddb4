#include "reports/import_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reports/fields.h"
#include "reports/figures.h"
#include "reports/format.h"
#include "reports/verdict.h"

namespace syncline::reports {
namespace {

using job::Exchange;
using job::Step;

// The step that stands for the job, or nullptr for a model file.
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

Bytes gradient_bytes(const Step& step) {
  Bytes bytes = 0;
  for (const auto& gradient : step.gradients) bytes += gradient.bytes();
  return bytes;
}

// Of the collectives that carry gradients.
Bytes bucket_bytes(const Step& step) {
  Bytes bytes = 0;
  for (const Exchange& exchange : step.exchanges) {
    if (!exchange.gradients.empty()) bytes += exchange.bytes();
  }
  return bytes;
}

std::string steps_text(const ImportedJob& job, const Step& step) {
  const auto& steps = job.observed.ranks.front().steps;
  std::vector<Seconds> gpu;
  std::vector<Seconds> cpu;
  for (const Step& one : steps) {
    gpu.push_back(one.gpu);
    cpu.push_back(one.cpu);
  }
  const auto [gpu_low, gpu_high] = std::minmax_element(gpu.begin(), gpu.end());
  const auto [cpu_low, cpu_high] = std::minmax_element(cpu.begin(), cpu.end());
  std::string text =
      plural(steps.size(), "step") + ": " + range_text(*gpu_low, *gpu_high) + " on the GPU";
  if (*cpu_high > 0) text += ",\n             " + range_text(*cpu_low, *cpu_high) + " on the CPU";
  if (steps.size() > 1) text += "; step " + std::to_string(step.number) + " stands for them";
  return text;
}

std::string facts(const ImportedJob& job) {
  const Step* step = typical(job);
  std::string text = "  read       " + origin(job.observed) + "\n";
  if (step == nullptr) return text;
  text += "  ranks      " + ranks_text(job.observed) + "\n";
  text += "  steps      " + steps_text(job, *step) + "\n";
  const std::string own = job::own_collectives(*step);
  if (!own.empty()) text += "  job        not plain data-parallel: " + own + " a step of its own\n";
  const Bytes told = gradient_bytes(*step);
  const Bytes sent = bucket_bytes(*step);
  text += "  gradients  " + count_text(static_cast<double>(step->gradients.size())) + ", " +
          bytes_text(static_cast<double>(told));
  if (sent > 0) text += "; all-reduced " + bytes_text(static_cast<double>(sent));
  text += sent > 0 && sent != told ? ": they do not match\n" : "\n";
  if (!job.imported.rule.words.empty()) {
    text += "  buckets    " + job.imported.rule.words + "\n";
    for (const auto& other : job.imported.rule.others) text += "             " + other + "\n";
  }
  return text;
}

// Where a step goes, in the order in which it goes there.
struct Part {
  const char* name;
  const char* key;
  Seconds Step::*seconds;
  bool inside = false;  // of the part above it
};

constexpr Part kParts[] = {
    {"broadcast of the buffers", "broadcast_s", &Step::broadcast},
    {"forward", "forward_s", &Step::forward},
    {"backward", "backward_s", &Step::backward},
    {"of it copies into buckets", "copy_in_s", &Step::copy_in, true},
    {"copies out of buckets", "copy_out_s", &Step::copy_out},
    {"waiting for collectives", "exposed_s", &Step::exposed},
    {"waiting for the host", "host_gap_s", &Step::host_gap},
    {"update", "update_s", &Step::update},
};

Grid parts_grid(const Step& step) {
  Grid grid{{{"where the step goes", false}, {"time"}, {"share"}}, {}};
  Seconds sum = 0;
  for (const Part& part : kParts) {
    const Seconds seconds = step.*part.seconds;
    if (!part.inside) sum += seconds;
    if (seconds == 0 && part.seconds != &Step::exposed) continue;
    grid.lines.push_back({{(part.inside ? "  " : "") + std::string(part.name),
                           seconds_text(seconds), share_text(100 * seconds / step.gpu)},
                          false});
  }
  grid.lines.push_back(
      {{"the step on the GPU", seconds_text(step.gpu), share_text(100 * sum / step.gpu)}, true});
  if (step.idle > 0) {
    grid.lines.push_back({{"  of it nothing runs (host)", seconds_text(step.idle),
                           share_text(100 * step.idle / step.gpu)},
                          false});
  }
  return grid;
}

std::string bucket_of(const Exchange& exchange) {
  return exchange.gradients.empty() ? "-" : std::to_string(exchange.gradients.size());
}

// A collective's true time is known once several ranks were read, else only what bounds it.
Grid exchanges_grid(const ImportedJob& job, const Step& step) {
  const bool several = job.observed.ranks.size() > 1;
  Grid grid{{{"collective", false}, {"gradients"}, {"size"}}, {}};
  grid.columns.push_back({"complete", true, 3});
  grid.columns.push_back({"sent", true, 2});
  grid.columns.push_back({"took"});
  if (several) {
    grid.columns.push_back({"truly"});
    grid.columns.push_back({"waiting", true, 1});
  }
  grid.columns.push_back({"exposed"});
  for (const Exchange& exchange : step.exchanges) {
    std::vector<std::string> cells{one_line(exchange.kind), bucket_of(exchange),
                                   bytes_text(static_cast<double>(exchange.bytes()))};
    cells.push_back(exchange.gradients.empty() ? "-" : seconds_text(exchange.complete));
    cells.push_back(seconds_text(exchange.sent));
    cells.push_back(seconds_text(exchange.duration));
    if (several) {
      cells.push_back(seconds_text(exchange.time));
      cells.push_back(seconds_text(exchange.duration - exchange.time));
    }
    cells.push_back(seconds_text(exchange.exposed));
    grid.lines.push_back({std::move(cells), false});
  }
  return grid;
}

Grid skew_grid(const ImportedJob& job, const Step& step) {
  Grid grid{{{"collective over the ranks", false}, {"shortest"}, {"longest"}, {"came last"}}, {}};
  for (const auto& skew : job.observed.skew) {
    if (skew.exchange >= step.exchanges.size()) continue;
    const Exchange& exchange = step.exchanges[skew.exchange];
    grid.lines.push_back(
        {{one_line(exchange.kind) + ", " + bytes_text(static_cast<double>(exchange.bytes())),
          seconds_text(skew.least), seconds_text(skew.most),
          "rank " + std::to_string(skew.last_rank)},
         false});
  }
  return grid;
}

Grid rows_grid(const ImportedJob& job) {
  Grid grid{{{"priced", false},
             {"step"},
             {"80 % interval"},
             {"gain"},
             {"gain, 80 %"},
             {"measured"},
             {"error"}},
            {}};
  const auto tones = tones_of(job.priced);
  for (const measure::Row& row : job.priced.rows) {
    const bool own = row.strategy == job.priced.baseline;
    const bool measured = row.published && row.published->step_time;
    grid.lines.push_back(
        {{one_line(row.strategy), seconds_text(row.metrics.step_time),
          seconds_range(row.step.low, row.step.high), own ? "" : speedup_text(row.speedup),
          own ? "" : speedup_range(row.gain.low, row.gain.high),
          measured ? seconds_text(*row.published->step_time) : "",
          row.error_percent ? percent_text(*row.error_percent) : ""},
         false,
         tones[grid.lines.size()]});
  }
  return grid;
}

std::string next_commands(const ImportedJob& job) {
  if (job.out.empty()) return "  -o FILE writes the scenario\n";
  return "  wrote      " + job.out + "\n  next       syncline run " + job.out +
         "\n             syncline tune " + job.out + " --emit pytorch\n";
}

Page page_of(const ImportedJob& job) {
  Page page{one_line(job.observed.name), "", {Listing{"text", facts(job)}}};
  if (const Step* step = typical(job)) {
    if (step->gpu > 0) page.blocks.emplace_back(parts_grid(*step));
    if (!step->exchanges.empty()) page.blocks.emplace_back(exchanges_grid(job, *step));
    if (!job.observed.skew.empty()) page.blocks.emplace_back(skew_grid(job, *step));
  }
  if (!job.priced.rows.empty()) page.blocks.emplace_back(rows_grid(job));
  if (!job.observed.warnings.empty()) {
    page.blocks.emplace_back(Items{"Mind:", job.observed.warnings});
  }
  if (!job.imported.assumed.empty()) {
    page.blocks.emplace_back(Items{"Assumed:", job.imported.assumed});
  }
  page.blocks.emplace_back(Listing{"text", next_commands(job)});
  return page;
}

CsvTable csv_of(const ImportedJob& job) {
  CsvTable table{{"kind", "group", "ranks", "gradients", "bytes", "complete_s", "sent_s",
                  "duration_s", "time_s", "exposed_s"},
                 {}};
  const Step* step = typical(job);
  if (step == nullptr) return table;
  for (const Exchange& exchange : step->exchanges) {
    std::vector<std::string> cells{exchange.kind, exchange.group, std::to_string(exchange.ranks),
                                   std::to_string(exchange.gradients.size()),
                                   std::to_string(exchange.bytes())};
    for (const Seconds seconds :
         {exchange.complete, exchange.sent, exchange.duration, exchange.time, exchange.exposed}) {
      cells.push_back(exact(seconds).dump());
    }
    table.lines.push_back(std::move(cells));
  }
  return table;
}

Json exchange_json(const Exchange& exchange) {
  return {{"kind", exchange.kind},          {"group", exchange.group},
          {"ranks", exchange.ranks},        {"gradients", exchange.gradients},
          {"elements", exchange.elements},  {"dtype", to_string(exchange.dtype)},
          {"bytes", exchange.bytes()},      {"complete_s", exact(exchange.complete)},
          {"sent_s", exact(exchange.sent)}, {"duration_s", exact(exchange.duration)},
          {"time_s", exact(exchange.time)}, {"exposed_s", exact(exchange.exposed)}};
}

Json step_json(const Step& step) {
  Json json{{"number", step.number}, {"cpu_s", exact(step.cpu)}, {"gpu_s", exact(step.gpu)}};
  for (const Part& part : kParts) json[part.key] = exact(step.*part.seconds);
  json["copy_kernels_s"] = exact(step.copy_kernels);
  json["idle_s"] = exact(step.idle);
  json["gradients"] = step.gradients.size();
  json["gradient_bytes"] = gradient_bytes(step);
  json["all_reduced_bytes"] = bucket_bytes(step);
  Json& exchanges = json["exchanges"] = Json::array();
  for (const Exchange& exchange : step.exchanges) exchanges.push_back(exchange_json(exchange));
  return json;
}

Json rows_json(const ImportedJob& job) {
  Json rows = Json::array();
  for (const measure::Row& row : job.priced.rows) {
    rows.push_back({{"strategy", row.strategy},
                    {"step_time_s", exact(row.metrics.step_time)},
                    {"step_time_low_s", exact(row.step.low)},
                    {"step_time_high_s", exact(row.step.high)},
                    {"speedup", exact(row.speedup)},
                    {"speedup_low", exact(row.gain.low)},
                    {"speedup_high", exact(row.gain.high)}});
    if (row.error_percent) rows.back()["error_percent"] = exact(*row.error_percent);
  }
  return rows;
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
    json["typical"] = step_json(*step);
    json["buckets"] = {{"explained", job.imported.rule.explains},
                       {"rule", job.imported.rule.words},
                       {"others", job.imported.rule.others}};
  }
  Json& skews = json["skew"] = Json::array();
  for (const auto& skew : observed.skew) {
    skews.push_back({{"exchange", skew.exchange},
                     {"least_s", exact(skew.least)},
                     {"most_s", exact(skew.most)},
                     {"last_rank", skew.last_rank}});
  }
  json["rows"] = rows_json(job);
  json["warnings"] = observed.warnings;
  json["assumed"] = job.imported.assumed;
  json["written"] = job.out;
  json["scenario_file"] = job.imported.scenario;
  return json;
}

}  // namespace

Answer answer_of(const ImportedJob& job) {
  // The scenario's own notes stand under headings of theirs.
  std::vector<std::string> remarks = job.priced.remarks;
  std::erase_if(remarks, [&](const std::string& remark) {
    const auto in = [&](const std::vector<std::string>& said) {
      return std::find(said.begin(), said.end(), remark) != said.end();
    };
    return in(job.observed.warnings) || in(job.imported.assumed);
  });
  return {"import",
          job.observed.name,
          [&] { return page_of(job); },
          [&] { return csv_of(job); },
          [&] { return json_of(job); },
          std::move(remarks),
          [&] { return figures_of(job.priced); }};
}

}  // namespace syncline::reports
