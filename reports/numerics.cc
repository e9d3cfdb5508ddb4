#include "reports/numerics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "reports/fields.h"
#include "reports/format.h"

namespace syncline::reports {
namespace {

std::string fixed(double value, const char* format) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

std::string loss_text(double loss) { return fixed(loss, "%.3f"); }

// One seed has no deviation.
std::string mean_text(const std::string& mean, const std::string& deviation, std::size_t seeds) {
  return seeds > 1 ? mean + " +- " + deviation : mean;
}

std::string verdict(const std::optional<train::PairedDifference>& over) {
  if (!over) return "";
  if (std::isinf(over->half_width)) return "one seed";
  if (over->within_noise()) return "within noise";
  return over->mean > 0 ? "worse" : "better";
}

std::string difference_text(const train::PairedDifference& over) {
  std::string mean = fixed(over.mean, "%+.3f");
  if (mean == "-0.000") mean = "+0.000";
  return std::isinf(over.half_width) ? mean : mean + " +- " + loss_text(over.half_width);
}

Grid grid_of(const train::ExperimentResult& result) {
  const bool priced =
      std::any_of(result.methods.begin(), result.methods.end(),
                  [](const train::MethodResult& row) { return row.throughput.has_value(); });
  const std::string& first = result.experiment.methods.front().name;
  Grid grid{{{"method", false},
             {"training\nloss"},
             {"over " + first + ",\n95 % interval"},
             {"", false},
             {"test\naccuracy"},
             {"synchro-\nnisations"},
             {"sent a\nworker"}},
            {}};
  if (priced) grid.columns.push_back({"throughput,\nsamples/s"});
  for (const auto& row : result.methods) {
    const auto over = result.over_first(row);
    Grid::Line line;
    const std::size_t seeds = row.runs.size();
    if (row.diverged() > 0) {
      const std::string in = "in " + std::to_string(row.diverged()) + " of ";
      line.cells = {row.name, "diverged", in + plural(seeds, "seed"), "worse", "", "", ""};
    } else {
      const train::SeedMean loss = row.train_loss();
      const train::SeedMean accuracy = row.test_accuracy();
      line.cells = {row.name,
                    mean_text(loss_text(loss.mean), loss_text(loss.deviation), seeds),
                    over ? difference_text(*over) : "",
                    verdict(over),
                    mean_text(share_text(100 * accuracy.mean),
                              fixed(100 * accuracy.deviation, "%.1f"), seeds),
                    count_text(row.synchronisations()),
                    bytes_text(row.sent_bytes())};
    }
    if (priced) line.cells.push_back(row.throughput ? throughput_text(*row.throughput) : "");
    grid.lines.push_back(std::move(line));
  }
  return grid;
}

std::string widths_text(const train::MlpShape& network) {
  std::string text;
  for (const int width : network.widths) text += (text.empty() ? "" : "-") + std::to_string(width);
  return text;
}

std::string course_text(const train::Experiment& experiment) {
  const train::Course& course = experiment.course;
  const auto& rate = course.training.learning_rate;
  std::string text = experiment.name + ": " + std::to_string(course.workers) + " workers, batch " +
                     std::to_string(course.batch) + " each, " +
                     count_text(static_cast<double>(*course.training.steps)) + " steps, momentum " +
                     plain_number(course.momentum) + ", learning rate " +
                     plain_number(rate.initial) + " times (1 - share of the steps)^" +
                     plain_number(rate.power);
  if (course.clip > 0) {
    text += ", each worker's gradient clipped to the norm " + plain_number(course.clip) +
            " over the root of the workers";
  }
  return text + "; network " + widths_text(experiment.network) + ", " +
         count_text(static_cast<double>(experiment.network.parameters())) + " parameters, " +
         count_text(experiment.task.train) + " samples.";
}

Page page_of(const train::Numerics& numerics) {
  Page page{"Numerics", "What synchronising less does to the training itself.", {}};
  for (const auto& result : numerics.experiments) {
    page.blocks.emplace_back(course_text(result.experiment));
    page.blocks.emplace_back(grid_of(result));
    if (!result.experiment.about.empty()) page.blocks.emplace_back(result.experiment.about);
  }
  page.blocks.emplace_back(
      "Losses and accuracies are measured: each method trained with " +
      plural(static_cast<std::size_t>(numerics.seeds), "seed") +
      " (task, first weights and batches), the same for all methods; +- behind a mean is the "
      "deviation of one seed, over the first method half the 95 % interval of the mean difference, "
      "seed by seed. A network this small shows how the methods work, not what they do to "
      "another network's accuracy.");
  if (!numerics.cluster.empty()) {
    page.blocks.emplace_back("Throughput is predicted by the model executor for " +
                             one_line(numerics.workload) + " on " + one_line(numerics.cluster) +
                             (numerics.calibrated ? ", calibrated as the scenario says" : "") +
                             ", with the periods of the training above.");
  }
  return page;
}

CsvTable csv_of(const train::Numerics& numerics) {
  CsvTable table{{"experiment", "method", "seed", "diverged", "train_loss", "test_loss",
                  "test_accuracy", "synchronisations", "sent_bytes"},
                 {}};
  for (const auto& result : numerics.experiments) {
    for (const auto& row : result.methods) {
      for (std::size_t seed = 0; seed < row.runs.size(); ++seed) {
        const train::Trained& run = row.runs[seed];
        const auto figure = [&](double value) { return run.diverged ? "" : exact(value).dump(); };
        table.lines.push_back({result.experiment.name, row.name, std::to_string(seed + 1),
                               run.diverged ? "1" : "0", figure(run.train.loss),
                               figure(run.test.loss), figure(run.test.accuracy),
                               std::to_string(run.synchronisations), exact(run.sent_bytes).dump()});
      }
    }
  }
  return table;
}

Json json_of(const train::Numerics& numerics) {
  Json json = Json::object();
  json["seeds"] = numerics.seeds;
  json["complete"] = numerics.complete;
  if (!numerics.cluster.empty()) {
    json["workload"] = numerics.workload;
    json["cluster"] = numerics.cluster;
  }
  json["experiments"] = Json::array();
  for (const auto& result : numerics.experiments) {
    const train::Course& course = result.experiment.course;
    Json object = {{"name", result.experiment.name},
                   {"workers", course.workers},
                   {"batch", course.batch},
                   {"steps", *course.training.steps},
                   {"learning_rate", exact(course.training.learning_rate.initial)},
                   {"methods", Json::array()}};
    for (const auto& row : result.methods) {
      Json method = {{"name", row.name}, {"diverged", row.diverged()}};
      if (row.diverged() == 0) {
        method["train_loss"] = exact(row.train_loss().mean);
        method["train_loss_deviation"] = exact(row.train_loss().deviation);
        method["test_accuracy"] = exact(row.test_accuracy().mean);
      }
      if (const auto over = result.over_first(row)) {
        method["over_first"] = exact(over->mean);
        if (!std::isinf(over->half_width)) {
          method["over_first_half_width"] = exact(over->half_width);
          method["within_noise"] = over->within_noise();
        }
      }
      method["synchronisations"] = exact(row.synchronisations());
      method["sent_bytes"] = exact(row.sent_bytes());
      if (row.throughput) method["throughput"] = exact(*row.throughput);
      method["train_losses"] = Json::array();
      for (const auto& run : row.runs) {
        method["train_losses"].push_back(run.diverged ? Json() : exact(run.train.loss));
      }
      object["methods"].push_back(std::move(method));
    }
    json["experiments"].push_back(std::move(object));
  }
  return json;
}

}  // namespace

CsvTable curves_of(const train::Numerics& numerics) {
  CsvTable table{{"strategy", "seed", "step", "loss", "accuracy"}, {}};
  std::set<std::string> known;
  for (const auto& result : numerics.experiments) {
    for (const auto& method : result.methods) {
      const bool first = known.insert(method.name).second;
      const std::string name =
          first ? method.name : method.name + " (" + result.experiment.name + ")";
      for (std::size_t i = 0; i < method.runs.size(); ++i) {
        for (const auto& [step, test] : method.runs[i].seen) {
          // A training that has lost its way goes on as no number.
          const std::string loss = std::isfinite(test.loss) ? exact(test.loss).dump() : "nan";
          table.lines.push_back({name, std::to_string(i + 1), std::to_string(step), loss,
                                 exact(test.accuracy).dump()});
        }
      }
    }
  }
  return table;
}

Answer answer_of(const train::Numerics& numerics) {
  return {"numerics", "", [&] { return page_of(numerics); }, [&] { return csv_of(numerics); },
          [&] { return json_of(numerics); }};
}

}  // namespace syncline::reports
