#include "studies/calibrate/calibration.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "catalogue/hardware/device.h"
#include "core/base/error.h"
#include "core/base/statistics.h"
#include "core/collective/nccl.h"
#include "core/cost.h"
#include "core/cost/cost_model.h"
#include "formats/input/cost_model_json.h"
#include "formats/input/hardware_json.h"
#include "formats/input/read_cluster.h"
#include "formats/input/scenario_json.h"
#include "formats/json/reader.h"
#include "formats/scenario/scenario.h"
#include "formats/text/digits.h"
#include "studies/calibrate/device_fit.h"
#include "studies/calibrate/scale_fit.h"

namespace syncline::calibrate {
namespace {

// Returns the best rate of a table: bytes that a rank of a ring sends / time, at the largest size.
BytesPerSecond bus_rate(const cost::TableCostModel& table) {
  const double times = cost::bus_factor(table.kind, table.nodes * table.gpus_per_node);
  return times * table.max_bytes / cost::size_time(table.cost_model, table.max_bytes);
}

// Measured counts of nodes and GPUs per node, and the largest of each, perhaps of different tables.
struct Counts {
  std::set<std::pair<int, int>> measured;
  int nodes = 1;
  int gpus = 1;

  explicit Counts(const cost::MeasuredCostModel& model) {
    for (const cost::TableCostModel& table : model.tables) {
      measured.emplace(table.nodes, table.gpus_per_node);
      nodes = std::max(nodes, table.nodes);
      gpus = std::max(gpus, table.gpus_per_node);
    }
  }
};

// Returns " The logs ran with NCCL_PROTO=Simple: ...", or "". The algorithm is set per table.
std::string settings_text(const std::vector<cost::MeasuredTable>& tables) {
  std::set<std::string> stated;
  for (const cost::MeasuredTable& table : tables) {
    for (const auto& [name, value] : table.settings) {
      if (name != "NCCL_ALGO") stated.insert(name + "=" + value);
    }
  }
  if (stated.empty()) return {};
  std::string text = " The logs ran with ";
  for (const std::string& one : stated) text += (one == *stated.begin() ? "" : ", ") + one;
  return text + ": the times are those of jobs that set the same.";
}

// Returns the cluster, with the largest measured counts. Figures missing from all tables (inside a
// node, if only several nodes were measured) are assumed, as "about" says.
Json cluster_from_fit(const cost::MeasuredCostModel& model, const std::string& name,
                      const std::string& device, const std::string& settings) {
  Cluster cluster;
  cluster.name = name;
  cluster.device.name = device;
  BytesPerSecond inside = 0;
  BytesPerSecond between = 0;
  std::set<std::string> sources;
  for (const cost::TableCostModel& table : model.tables) {
    sources.insert(table.source);
    if (!cost::ring_like(table.kind)) continue;
    BytesPerSecond& rate = table.nodes == 1 ? inside : between;
    rate = std::max(rate, bus_rate(table));
  }
  const auto [measured, nodes, gpus] = Counts(model);
  cluster.nodes = nodes;
  cluster.gpus_per_node = gpus;
  cluster.source = "calibrated by syncline from measured collectives:";
  for (const std::string& file : sources) cluster.source += " " + file + ",";
  cluster.source.back() = '.';
  input::ClusterNotes notes;
  notes.about =
      "Latencies are those of a small step, bandwidths the best that was measured; "
      "the algorithm 'nccl' takes its times from the calibration below." +
      settings;
  if (gpus > 1 && inside == 0) {
    notes.about +=
        " No table of one node was given: the inside of a node is assumed as fast as its "
        "network, with NCCL's own latency.";
  }
  constexpr cost::StepPath kSmall{false, collective::NcclProtocol::kLl};  // shows latency best
  const auto add_tier = [&](const char* key, int span, Seconds latency, BytesPerSecond bandwidth) {
    cluster.tiers.push_back(
        {.name = key, .span = span, .latency = latency, .bandwidth = bandwidth});
  };
  if (gpus > 1) {
    const Seconds latency = inside > 0 ? model.node.step : cost::nccl_step_latency(kSmall, false);
    // A table of broadcasts has no rate of a ring: its own rate is used.
    BytesPerSecond rate = inside > 0 ? inside : between;
    if (rate == 0) rate = bus_rate(model.tables.front());
    add_tier("intra", gpus, latency, rate);
  }
  cluster.collective_overhead = model.node.base;
  if (nodes > 1 && model.scale) {
    const cost::StepCostModel step = cost::step_cost_model_of(*model.scale, kSmall);
    add_tier("inter", cluster.ranks(), step.latency, model.scale->prior.bandwidth);
    cluster.collective_overhead = step.base;
  } else if (nodes > 1) {
    const Seconds latency = cost::nccl_step_latency(kSmall, true);
    add_tier("inter", cluster.ranks(), latency, bus_rate(model.tables.front()));
  }
  // Without the device's rates, copies and encodings of gradients would be free.
  const hardware::KnownDevice* known = hardware::recognise_device(device);
  if (known != nullptr) {
    notes.about += " The device's own rates are what training reaches of its data sheet (" +
                   std::string(known->source) + ").";
  }
  notes.calibration = model;
  Json json = input::cluster_json(cluster, kFittedDigits, notes);
  if (known != nullptr) json["device"]["base"] = known->name;
  return json;
}

std::string counts(int nodes, int gpus) {
  return std::to_string(nodes) + (nodes == 1 ? " node x " : " nodes x ") + std::to_string(gpus) +
         (gpus == 1 ? " GPU" : " GPUs");
}

// Returns "A100" of "A100-SXM4-40GB"; empty for an unknown device.
std::string_view chip_of(const std::string& reported) {
  const hardware::KnownDevice* device = hardware::recognise_device(reported);
  if (device == nullptr) return {};
  return device->words.substr(0, device->words.find(' '));
}

// Throws InputError if the logs name different chips; their memory may differ.
void check_one_device(const std::vector<cost::MeasuredTable>& tables) {
  const cost::MeasuredTable* first = nullptr;
  for (const cost::MeasuredTable& table : tables) {
    const std::string_view chip = chip_of(table.device);
    if (chip.empty()) continue;
    if (first == nullptr) first = &table;
    if (chip == chip_of(first->device)) continue;
    throw InputError(first->source + " and " + table.source + ": the logs name different GPUs, " +
                     first->device + " and " + table.device +
                     ": two clusters (calibrate each by itself)");
  }
}

// Throws InputError for two runs of one shape with different settings: neither repeats the other.
void check_settings(const cost::MeasuredTable& a, const cost::MeasuredTable& b) {
  for (const auto& [name, value] : a.settings) {
    const auto other = b.settings.find(name);
    const bool differs = other == b.settings.end() ? name == "NCCL_PROTO" : other->second != value;
    if (!differs || name == "NCCL_ALGO") continue;
    throw InputError(a.source + ": line " + std::to_string(a.line) + ", and " + b.source +
                     ": line " + std::to_string(b.line) + ": both are " + a.test + " on " +
                     counts(a.nodes, a.gpus_per_node) + ", one with " + name + "=" + value +
                     ", the other with " +
                     (other == b.settings.end() ? "none" : name + "=" + other->second) +
                     ": calibrate each by itself");
  }
}

constexpr double kApart = 1.5;  // times: more is another cluster

// Names the tables that are `apart` times as slow as most of three or more of one shape, as those
// of a pair of nodes with a bad link among many pairs; empty: none are. `like`: a table of that
// shape.
std::string slow_ones(const std::vector<SizeFit>& fits, std::size_t like, double apart) {
  std::map<Bytes, std::vector<double>> times;
  std::vector<const SizeFit*> alike;
  for (const SizeFit& fit : fits) {
    if (!cost::same_shape(fit.measured, fits[like].measured)) continue;
    alike.push_back(&fit);
    for (const auto& point : fit.points) times[point.size].push_back(point.time);
  }
  std::string names;
  std::size_t slow = 0;
  for (const SizeFit* fit : alike) {
    std::vector<double> ratios;
    for (const auto& point : fit->points) ratios.push_back(point.time / median(times[point.size]));
    const double ratio = ratios.empty() ? 1 : median(std::move(ratios));
    if (ratio < apart) continue;
    ++slow;
    names += (names.empty() ? "" : ", ") + fit->measured.source + " is " + short_text(ratio, 2) +
             " times as slow as the median of " + std::to_string(alike.size()) + " tables";
  }
  return 2 * slow < alike.size() ? names : "";
}

// Throws InputError if tables disagree on sizes that they share.
void check_one_cluster(const std::vector<cost::MeasuredTable>& tables) {
  check_one_device(tables);
  std::vector<SizeFit> fits;
  for (const cost::MeasuredTable& table : tables) fits.push_back(points_of(table));
  for (std::size_t i = 0; i < tables.size(); ++i) {
    std::map<Bytes, Seconds> first;
    for (const auto& point : fits[i].points) first[point.size] = point.time;
    for (std::size_t j = i + 1; j < tables.size(); ++j) {
      const cost::MeasuredTable& other = tables[j];
      if (!cost::same_shape(other, tables[i])) continue;
      check_settings(tables[i], other);
      check_settings(other, tables[i]);
      std::vector<double> ratios;
      for (const auto& point : fits[j].points) {
        const auto same = first.find(point.size);
        if (same != first.end()) ratios.push_back(std::log(point.time / same->second));
      }
      if (ratios.empty()) continue;
      const double apart = std::exp(std::abs(median(ratios)));
      if (apart < kApart) continue;
      const std::string slow = slow_ones(fits, i, kApart);
      if (!slow.empty()) {
        throw InputError(slow + " of " + other.test + " on " +
                         counts(other.nodes, other.gpus_per_node) +
                         ": look at its nodes and links, and calibrate without it");
      }
      throw InputError(tables[i].source + " and " + other.source + ": both are " + other.test +
                       " on " + counts(other.nodes, other.gpus_per_node) +
                       ", their times differ by a factor of " + short_text(apart, 2) +
                       " in the median: two clusters or networks (calibrate each by itself), "
                       "or forced algorithms (say so: FILE:ring, FILE:tree)");
    }
  }
}

// Returns a sentence for each shape with tables that are slower than most of it, though not as slow
// as another cluster: they count with the others.
std::vector<std::string> slower_of_one_shape(const std::vector<cost::MeasuredTable>& tables) {
  constexpr double kSlower = 1.15;
  std::vector<SizeFit> fits;
  for (const cost::MeasuredTable& table : tables) fits.push_back(points_of(table));
  std::vector<std::string> list;
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const auto alike = [&](const auto& table) { return cost::same_shape(table, tables[i]); };
    const auto end = tables.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::any_of(tables.begin(), end, alike)) continue;
    const std::string slow = slow_ones(fits, i, kSlower);
    if (slow.empty()) continue;
    list.push_back(slow + " of " + tables[i].test + " on " +
                   counts(tables[i].nodes, tables[i].gpus_per_node) +
                   ": look at its nodes and links; counted with the others");
  }
  return list;
}

// Returns a table's points with the times that the cost model gives. Throws InputError if it cannot
// give one.
ComparedTable compared(const cost::MeasuredTable& table,
                       const std::vector<cost::MeasuredPoint>& points,
                       const cost::MeasuredCostModel& model) {
  ComparedTable result{.file = table.source,
                       .test = table.test,
                       .nodes = table.nodes,
                       .gpus_per_node = table.gpus_per_node,
                       .forced = table.forced,
                       .clean = cost::is_clean(table)};
  for (const auto& point : points) {
    const auto answer = cost::cost_model_time(model, *table.kind, static_cast<double>(point.size),
                                              table.nodes, table.gpus_per_node, table.forced);
    if (!answer) {
      throw InputError(
          table.source + ": " + table.test + " on " + counts(table.nodes, table.gpus_per_node) +
          " cannot be predicted from the tables given: " +
          (table.nodes > 1 ? "none of them is of several nodes" : "none of them is of one node") +
          ", or it is a collective that must be measured itself");
    }
    result.rows.push_back({point.size, point.time, answer->time, answer->in_range, answer->spread});
  }
  return result;
}

std::string sizes_text(const std::vector<Bytes>& sizes) {
  std::string text;
  constexpr std::size_t kMax = 6;
  for (std::size_t i = 0; i < std::min(kMax, sizes.size()); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(sizes[i]);
  }
  if (sizes.size() > kMax) text += ", ... (" + std::to_string(sizes.size()) + " in all)";
  return text;
}

// Returns the GPUs' name in the logs; empty if they have none or several.
std::string device_of(const std::vector<cost::MeasuredTable>& tables) {
  std::set<std::string> names;
  for (const cost::MeasuredTable& table : tables) {
    if (!table.device.empty()) names.insert(table.device);
  }
  return names.size() == 1 ? *names.begin() : std::string();
}

// Returns the notes on the logs, and the times that no fit uses.
std::vector<std::string> noticed_in(const std::vector<cost::MeasuredTable>& tables) {
  constexpr std::size_t kMax = 8;
  std::vector<std::string> list;
  for (const cost::MeasuredTable& table : tables) {
    for (const std::string& note : table.notes) {
      // A note on one line contains its number.
      list.push_back(table.source + ": " +
                     (note.starts_with("line ") ? std::string()
                                                : "line " + std::to_string(table.line) + ": ") +
                     note);
    }
    const std::size_t count = table.left_out.size();
    for (std::size_t i = 0; i < std::min(kMax, count); ++i) {
      list.push_back(table.source + ": " + table.left_out[i]);
    }
    if (count > kMax) {
      list.push_back(table.source + ": " + std::to_string(count - kMax) +
                     " more of its times are left out likewise");
    }
  }
  // A note on a log appears once, not for each of its tables.
  std::ranges::stable_sort(list);
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

void warn_of_counts(const cost::MeasuredCostModel& model, std::vector<std::string>& list) {
  const auto [measured, nodes, gpus] = Counts(model);
  if (measured.contains({nodes, gpus})) return;
  std::string text;
  for (const auto& [n, g] : measured) text += (text.empty() ? "" : ", ") + counts(n, g);
  list.push_back("the cluster is written as " + counts(nodes, gpus) +
                 ", the largest count of each, which no table measured (they are of " + text +
                 "): its times are extrapolated");
}

// Returns the reason why a table of three sizes or more is not clean.
std::string unclean_text(const cost::MeasuredTable& table) {
  const bool repeated = std::any_of(table.rows.begin(), table.rows.end(), [](const auto& row) {
    return row.spread > 0 || (row.out_of_place && row.in_place);
  });
  return table.source +
         (table.failed ? ": not clean: the test failed"
          : repeated
              ? ": not clean: the test's two times of each size differ by 6 % or more in the "
                "median, or by 30 % at the 90th percentile"
              : ": each size has one time: how well it repeats is not known");
}

std::vector<std::string> warnings_of(const LogCalibration& calibration,
                                     const std::vector<SizeFit>& tables) {
  std::vector<std::string> list;
  warn_of_counts(calibration.cost_model, list);
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const cost::TableCostModel& table = calibration.cost_model.tables[i];
    if (!table.clean && table.rows >= 3) list.push_back(unclean_text(tables[i].measured));
    if (table.slow > 0) {
      char share[16];
      std::snprintf(share, sizeof share, "%.0f %%", table.slow * 100);
      list.push_back(table.source + ": " + counts(table.nodes, table.gpus_per_node) + " ran " +
                     share +
                     " slower than the other counts of nodes say, a disturbed run by the look of "
                     "it: no other count is predicted from it");
    }
    if (!table.outliers.empty()) {
      list.push_back(table.source + ": left out as disturbed: " + sizes_text(table.outliers) +
                     " bytes");
    }
    if (table.left_out < 0) {
      list.push_back(
          table.source +
          ": fewer than three sizes: how well the cost model fits between them is not known");
    }
  }
  const auto& scale = calibration.cost_model.scale;
  constexpr double kWell = 0.15;
  if (scale && scale->in_sample > kWell) {
    list.emplace_back(
        "the cost model for other counts of nodes misses its own rows by more than 15 % in "
        "the median: predictions at other counts are not in range");
  }
  for (const ComparedTable& table : calibration.against) {
    if (!std::ranges::all_of(table.rows, &ComparedRow::in_range)) {
      list.push_back(table.file + ": " + counts(table.nodes, table.gpus_per_node) +
                     ": the prediction extrapolates beyond the measured range");
    }
  }
  return list;
}

}  // namespace

measure::ErrorSummary errors_of(const ComparedTable& table) {
  std::vector<double> errors;
  for (const auto& row : table.rows) errors.push_back(row.predicted / row.measured - 1);
  return measure::summary_of(errors).value_or(measure::ErrorSummary{});
}

LogCalibration calibration_of(const std::vector<cost::MeasuredTable>& tables,
                              const std::vector<cost::MeasuredTable>& against,
                              const std::string& name,
                              const std::optional<cost::TreeFactor>& tree) {
  check_one_cluster(tables);
  LogCalibration result;
  FittedTables found = calibrate(tables);
  found.cost_model.tree = tree;
  result.cluster =
      cluster_from_fit(found.cost_model, name, device_of(tables), settings_text(tables));
  // Predictions use the file's rounded figures, not those in memory.
  result.cost_model =
      input::read_cost_model(Reader(result.cluster.at("calibration"), name, "calibration"));
  double rows = 0;
  double with_left_out = 0;
  double left_out = 0;
  for (std::size_t i = 0; i < found.tables.size(); ++i) {
    const SizeFit& table = found.tables[i];
    ComparedTable& fitted =
        result.fitted.emplace_back(compared(table.measured, table.points, result.cost_model));
    fitted.form = cost::describe(result.cost_model.tables[i].cost_model);
    fitted.left_out = table.left_out;
    fitted.outliers = result.cost_model.tables[i].outliers;
    for (const auto& row : fitted.rows) {
      result.in_sample += std::abs(row.predicted / row.measured - 1);
    }
    const auto count = static_cast<double>(fitted.rows.size());
    rows += count;
    if (table.left_out >= 0) {
      with_left_out += count;
      left_out += count * table.left_out;
    }
  }
  result.in_sample /= rows;
  if (with_left_out > 0) result.left_out = left_out / with_left_out;
  for (const cost::MeasuredTable& table : against) {
    // Predictions are compared with all rows, disturbed ones too.
    const SizeFit points = points_of(table);
    std::vector<cost::MeasuredPoint> all = points.points;
    all.insert(all.end(), points.outliers.begin(), points.outliers.end());
    std::ranges::sort(all, {}, &cost::MeasuredPoint::size);
    result.against.push_back(compared(table, all, result.cost_model));
  }
  result.warnings = warnings_of(result, found.tables);
  for (std::string& sentence : slower_of_one_shape(tables)) {
    result.warnings.push_back(std::move(sentence));
  }
  for (const auto* logs : {&tables, &against}) {
    for (std::string& sentence : noticed_in(*logs)) {
      result.warnings.push_back(std::move(sentence));
    }
  }
  return result;
}

std::vector<std::string> nodes_of_gpus(const std::vector<cost::MeasuredTable>& tables) {
  std::vector<std::string> kinds;
  const hardware::KnownDevice* device = hardware::recognise_device(device_of(tables));
  if (device == nullptr) return kinds;
  const int gpus = std::ranges::max(tables, {}, &cost::MeasuredTable::gpus_per_node).gpus_per_node;
  for (const hardware::KnownNode& node : hardware::nodes()) {
    if (&hardware::device_of(node) == device && node.gpus == gpus) {
      kinds.emplace_back(node.name);
    }
  }
  return kinds;
}

void set_node(LogCalibration& calibration, const std::vector<cost::MeasuredTable>& tables,
              const std::string& node) {
  const hardware::KnownNode* known = hardware::find_node(node);
  if (known == nullptr) {
    throw InputError("--node: '" + node + "' is not known" + input::did_you_mean_node(node) +
                     "; `syncline list` names them");
  }
  calibration.node = node;
  for (std::size_t t = 0; t < calibration.fitted.size(); ++t) {
    const ComparedTable& table = calibration.fitted[t];
    const auto own = std::ranges::find_if(tables, [&](const cost::MeasuredTable& measured) {
      return measured.source == table.file && measured.nodes == table.nodes &&
             measured.gpus_per_node == table.gpus_per_node && measured.kind;
    });
    if (own == tables.end() || table.rows.empty()) continue;
    Json json{{"name", node}, {"node", node}, {"nodes", table.nodes}};
    json["gpus_per_node"] = table.gpus_per_node;
    // Fewer GPUs than a whole node use only their own ports.
    json["inter"]["nics"] = std::max(1, std::min(known->outside.count, table.gpus_per_node));
    if (table.gpus_per_node == known->gpus)
      json["inter"]["nics"] = std::max(1, known->outside.count);
    const Cluster cluster = input::read_cluster(Reader(json, "--node", ""));
    const collective::NcclCostModel model(cluster);
    for (const double wanted : {64.0 * kKiB, 1.0 * kMiB, 16.0 * kMiB, 256.0 * kMiB}) {
      const auto far = [&](const ComparedRow& row) {
        return std::fabs(std::log(static_cast<double>(row.bytes) / wanted));
      };
      const ComparedRow& row = *std::ranges::min_element(table.rows, {}, far);
      constexpr double kNear = 0.7;  // a factor of two
      if (far(row) > kNear) continue;
      collective::Collective asked{
          *own->kind, nullptr, collective::world_group(cluster.ranks()), row.bytes / 4, 4, 0, {}};
      collective::choose_algorithm(asked, collective::kNcclName, cluster);
      const std::optional<CollectiveTime> predicted = model.time(asked);
      if (!predicted || predicted->spread <= 0) continue;
      const double longer = row.measured / (predicted->time + cluster.collective_overhead);
      calibration.beside.push_back(
          {t, row.bytes, longer, normal_distribution(std::log(longer) / predicted->spread)});
    }
  }
}

std::vector<SlowSize> slow_sizes(const ComparedTable& table) {
  constexpr double kQuarterLess = 0.75;
  std::vector<SlowSize> slow;
  double best = 0;
  Bytes at = 0;
  for (const ComparedRow& row : table.rows) {
    if (row.bytes < 64 * kKiB) continue;
    const double rate = static_cast<double>(row.bytes) / row.measured;
    if (rate < kQuarterLess * best) slow.push_back({row.bytes, at, rate / best});
    if (rate <= best) continue;
    best = rate;
    at = row.bytes;
  }
  return slow;
}

void set_line_rate(LogCalibration& calibration, BytesPerSecond line) {
  if (!calibration.cost_model.scale) {
    throw InputError("--line-rate: expected a log of several nodes, whose NICs it is");
  }
  BytesPerSecond best = 0;
  for (const cost::NodeRate& rate : calibration.cost_model.scale->rates) {
    best = std::max(best, rate.bandwidth);
  }
  calibration.line = LineShare{best, line, best / line};
}

void set_device(LogCalibration& calibration, const DeviceFit& device) {
  Json fitted = device_json(device);
  Json& own = calibration.cluster["device"];
  // The log's name comes first: it gives the generation of GPU that NCCL runs on.
  if (own.contains("name")) {
    fitted["name"] = own["name"].get<std::string>() + ", " + fitted["name"].get<std::string>();
  }
  // Measured figures replace the data sheet's share that computation reaches.
  if (own.contains("base")) {
    own = input::known_device_json(*hardware::find_device(own["base"].get<std::string>()));
    own.erase("tflops");
    own.erase("half_tflops");
  }
  own.update(fitted);
  calibration.device = device;
}

}  // namespace syncline::calibrate
