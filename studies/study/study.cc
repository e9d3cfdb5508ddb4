#include "studies/study/study.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <utility>

#include "core/base/error.h"
#include "formats/input/document.h"
#include "formats/scenario/scenario.h"
#include "studies/rows/fitting.h"
#include "studies/rows/row_evaluator.h"
#include "studies/study/study_calibration.h"
#include "studies/warnings/warnings.h"

namespace syncline::measure {
namespace {

// Figures as bytes, concatenated, written and read in the same order.
class RowBytes {
 public:
  RowBytes() = default;
  explicit RowBytes(const std::string& bytes) : bytes_(bytes), reads_(true) {}

  template <typename Figure>
  void travel(Figure& figure) {
    static_assert(std::is_trivially_copyable_v<Figure>, "figures travel as they lie in memory");
    if (reads_) {
      std::memcpy(&figure, taken(sizeof figure), sizeof figure);
    } else {
      bytes_.append(reinterpret_cast<const char*>(&figure), sizeof figure);
    }
  }

  template <typename... Figures>
  void travel_all(Figures&... figures) {
    (travel(figures), ...);
  }
  void travel(std::string& text) {
    std::size_t size = text.size();
    travel(size);
    if (reads_) {
      text.assign(taken(size), size);
    } else {
      bytes_ += text;
    }
  }
  template <typename Part, typename Travel>
  void travel(std::vector<Part>& parts, const Travel& each) {
    std::size_t count = parts.size();
    travel(count);
    for (std::size_t i = 0; i < count; ++i) each(reads_ ? parts.emplace_back() : parts[i]);
  }
  // Writes or reads the text up to the end.
  void rest(std::string& text) {
    if (reads_) {
      text = bytes_.substr(at_);
    } else {
      bytes_ += text;
    }
  }

  bool done() const { return at_ == bytes_.size(); }
  std::string written() { return std::move(bytes_); }

 private:
  const char* taken(std::size_t size) {
    if (bytes_.size() - at_ < size)
      throw MachineError("figures from another process are cut short");
    at_ += size;
    return bytes_.data() + at_ - size;
  }

  std::string bytes_;
  std::size_t at_ = 0;
  bool reads_ = false;
};

void travel(Row& row, RowBytes& bytes) {
  bytes.travel_all(row.metrics, row.memory, row.rounding_error, row.speedup, row.rate,
                   row.sensitivity, row.step, row.gain);
  const auto pair = [&](auto& each) { bytes.travel_all(each.first, each.second); };
  bytes.travel(row.buckets, pair);
  bytes.travel(row.fabric_jobs.jobs,
               [&](FabricJobs::Job& job) { bytes.travel_all(job.name, job.alone, job.together); });
  bytes.travel(row.fabric_jobs.hot, pair);
  bytes.rest(row.executor);
}

// Adds the error of the refit that left the row out.
void add_left_out_error(const std::vector<Split>& splits, Row& row) {
  for (const auto& split : splits) {
    for (const auto& left : split.rows) {
      if (row.strategy == left.strategy && row.sweep == left.sweep) {
        row.left_out_error_percent = left.error_percent;
      }
    }
  }
}

std::vector<std::string> sources_of(const Scenario& scenario) {
  std::vector<std::string> sources;
  const auto add = [&](const std::string& source) {
    if (!source.empty() && std::ranges::count(sources, source) == 0) sources.push_back(source);
  };
  add(scenario.workload.source);
  add(scenario.cluster.source);
  for (const auto& row : scenario.published) add(row.source);
  return sources;
}

// Returns the names of the strategies that become rows.
std::unordered_set<std::string_view> names_of_rows(const Scenario& scenario,
                                                   const StudyOptions& options) {
  std::unordered_set<std::string_view> names(options.only.begin(), options.only.end());
  if (names.empty()) {
    for (const auto& strategy : scenario.strategies) names.insert(strategy.name);
    return names;
  }
  names.insert(scenario.baseline);
  for (const auto& row : scenario.published) {
    if (row.calibrated) names.insert(row.strategy);
  }
  return names;
}

// Returns a report without its rows.
Report head_of(const input::Document& document, const Scenario& scenario,
               const StudyOptions& options) {
  Report report;
  report.scenario = scenario.name;
  report.about = scenario.about;
  report.workload = scenario.workload.name;
  report.cluster = scenario.cluster.name;
  report.executor = options.executor;
  report.baseline = scenario.baseline;
  report.seed = scenario.seed;
  report.sources = sources_of(scenario);
  report.out_of_range = scenario.calibration.out_of_range;
  const auto names = names_of_rows(scenario, options);
  for (const auto& strategy : scenario.strategies) {
    const bool inexact = !strategy.compression.codec.empty() || strategy.local_sgd.enabled;
    if (!inexact || !names.contains(strategy.name)) continue;
    report.inexact.push_back(strategy.name);
    if (strategy.local_sgd.enabled && strategy.local_sgd.outer.any()) {
      report.outer.push_back(strategy.name);
    }
  }
  report.traced_workload = scenario.workload;
  report.shortage = memory_shortage(document, scenario).words();
  return report;
}

// Keys of the requested rows in the report's order: point by point, the strategies at each.
// Computed on demand, as there may be millions.
class RowKeys {
 public:
  RowKeys(const Scenario& scenario, const StudyOptions& options)
      : sweep_(scenario), part_(options.part) {
    const auto names = names_of_rows(scenario, options);
    for (const auto& strategy : scenario.strategies) {
      if (names.contains(strategy.name)) strategies_.push_back(strategy.name);
    }
  }

  std::size_t of_a_point() const { return strategies_.size(); }
  std::size_t size() const {
    return (sweep_.size() + part_.count - part_.number) / part_.count * strategies_.size();
  }
  RowKey operator[](std::size_t index) const {
    const std::size_t point = part_.number - 1 + index / strategies_.size() * part_.count;
    return {sweep_.point(point), strategies_[index % strategies_.size()]};
  }

 private:
  Sweep sweep_;
  Part part_;
  std::vector<std::string> strategies_;
};

// Evaluates rows, here or in other processes, and passes them on in order.
class RowWork {
 public:
  RowWork(const input::Document& document, const Scenario& scenario, const StudyOptions& options,
          Report& report)
      : scenario_(scenario),
        options_(options),
        report_(report),
        keys_(scenario, options),
        evaluator_(document, report.fitted, options.make_executor, report.fit_errors) {}

  // Returns true if all rows were evaluated. Traced rows are evaluated here, since plans and
  // timelines are not sent between processes; the options place the others.
  bool all() {
    const std::size_t traced = options_.trace ? keys_.of_a_point() : 0;
    if (!here(0, traced, true)) return false;
    return options_.parallel_map ? elsewhere(traced) : here(traced, keys_.size(), false);
  }

 private:
  // Evaluates rows one by one; false if interrupted.
  bool here(std::size_t first, std::size_t end, bool trace) {
    for (std::size_t i = first; i < end; ++i) {
      if (options_.interrupted()) return false;
      Traced traced;
      hand_over(evaluator_.cost(keys_[i], trace ? &traced : nullptr));
      if (trace) report_.traced.push_back(std::move(traced));
      options_.progress(i + 1, keys_.size());
    }
    return true;
  }

  // Evaluates rows from `first` on by options.parallel_map. Results of evaluation arrive as bytes;
  // the document's facts are added here.
  bool elsewhere(std::size_t first) {
    std::size_t next = first;
    const auto take = [&](const std::string& bytes) {
      const RowKey key = keys_[next++];
      Row row = row_from_bytes(bytes);
      row.strategy = key.strategy;
      row.sweep = key.point;
      row.published = find_published(scenario_, key);
      if (const auto error = relative_error(row)) row.error_percent = *error * 100;
      hand_over(std::move(row));
    };
    run::JobHooks hooks;
    hooks.interrupted = options_.interrupted;
    hooks.progress = [&](std::size_t done, std::size_t wanted) {
      options_.progress(first + done, first + wanted);
    };
    hooks.name = [&](std::size_t index) { return name_of(keys_[first + index]); };
    hooks.take = take;
    const auto cost = [&](std::size_t index) {
      return row_bytes(evaluator_.cost(keys_[first + index]));
    };
    if (first == keys_.size()) return true;
    for (const auto& bytes : options_.parallel_map(keys_.size() - first, cost, hooks)) take(bytes);
    return next == keys_.size();
  }

  void hand_over(Row row) {
    add_left_out_error(report_.splits, row);
    if (options_.take_row) {
      options_.take_row(std::move(row));
    } else {
      report_.rows.push_back(std::move(row));
    }
  }

  const Scenario& scenario_;
  const StudyOptions& options_;
  Report& report_;
  const RowKeys keys_;
  RowEvaluator evaluator_;  // each evaluating process has its own copy
};

// Computes the scaling efficiency of rows that differ only in nodes. Each rank has the same work.
void add_efficiency(std::vector<Row>& rows) {
  const auto key = [](const Row& row) {
    std::string text = row.strategy;
    for (const auto& [path, value] : row.sweep) {
      if (path != "cluster.nodes") text += "\n" + path + "=" + value.dump();
    }
    return text;
  };
  std::map<std::string, std::vector<Row*>> alike;
  for (Row& row : rows) alike[key(row)].push_back(&row);
  for (auto& [name, list] : alike) {
    const Row& fewest =
        **std::ranges::min_element(list, {}, [](const Row* row) { return row->rate.ranks; });
    const double each = fewest.metrics.throughput / static_cast<double>(fewest.rate.ranks);
    for (Row* row : list) {
      const double own = row->metrics.throughput / static_cast<double>(row->rate.ranks);
      if (list.size() > 1 && each > 0) row->rate.efficiency = own / each;
    }
  }
}

}  // namespace

Report run_study(const input::Document& document, const StudyOptions& options) {
  const Scenario scenario = input::parse_scenario(document);
  Report report = head_of(document, scenario, options);
  // Every point is validated before the first evaluation: a mistake in the last one costs no time.
  report.warnings =
      warnings_of(document, scenario, Sweep(scenario), options.interrupted, options.judging);
  report.complete = !options.interrupted();
  if (!report.complete) return report;
  options.judged();
  if (!scenario.calibration.parameters.empty()) {
    calibrate_study(document, scenario, options.make_executor, options.interrupted, report);
  }
  report.complete = RowWork(document, scenario, options, report).all();
  add_efficiency(report.rows);
  return report;
}

std::string row_bytes(Row row) {
  RowBytes bytes;
  travel(row, bytes);
  return bytes.written();
}

Row row_from_bytes(const std::string& bytes) {
  RowBytes read(bytes);
  Row row;
  travel(row, read);
  return row;
}

std::string metrics_bytes(const Metrics& metrics) {
  return {reinterpret_cast<const char*>(&metrics), sizeof metrics};
}

std::vector<Metrics> metrics_from_bytes(const std::string& bytes) {
  std::vector<Metrics> list;
  for (RowBytes read(bytes); !read.done();) read.travel(list.emplace_back());
  return list;
}

}  // namespace syncline::measure
