#include <algorithm>
#include <ctime>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <thread>

#include "cli/files.h"
#include "cli/interrupt.h"
#include "cli/ranks.h"
#include "cli/verbs.h"
#include "core/compress/codec.h"
#include "core/error.h"
#include "core/fingerprint.h"
#include "core/input/document.h"
#include "core/input/read_scenario.h"
#include "core/measure/metrics.h"
#include "core/measure/report.h"
#include "core/plan/compute_fusion.h"
#include "core/plan/planner.h"
#include "core/run/model_executor.h"
#include "live/link_calibration.h"
#include "live/value_check.h"
#include "reports/format.h"
#include "reports/trace.h"
#include "reports/validation_report.h"
#include "sim/sim_executor.h"

namespace syncline {
namespace {

struct ValidateOptions {
  std::string file;
  std::string backend = "gloo";
  RanksOptions ranks;
  std::string executor = "model";
  std::string format = "text";
  std::string out;
  std::string cluster_out;
  std::string trace;
  std::vector<std::string> only;
  bool calibrate = false;
  bool no_check = false;
  std::string values = "integers";
  int warmup = 2;
  int repeats = 9;
};

constexpr std::uint64_t kSeed = 1;

std::string printed(const Validation& validation, const std::string& format) {
  if (format == "json") return validation_json(validation);
  if (format == "markdown") return validation_markdown(validation);
  if (format == "csv") return validation_csv(validation);
  return validation_text(validation);
}

std::vector<Strategy> strategies_of(const Scenario& scenario,
                                    const std::vector<std::string>& only) {
  if (only.empty()) return scenario.strategies;
  std::vector<Strategy> chosen;
  for (const auto& name : only) {
    const auto it = std::find_if(scenario.strategies.begin(), scenario.strategies.end(),
                                 [&](const Strategy& s) { return s.name == name; });
    if (it == scenario.strategies.end()) {
      std::string names;
      for (const auto& s : scenario.strategies)
        names += (names.empty() ? "'" : ", '") + s.name + "'";
      throw InputError("--only: found '" + name + "', expected one of " + names);
    }
    chosen.push_back(*it);
  }
  return chosen;
}

std::string tier_words(const Tier& tier) {
  return one_line(tier.name) + " " + plain_number(tier.latency / kMicrosecond) + " us and " +
         plain_number(tier.bandwidth / kGigabitPerSecond) + " Gbit/s";
}

std::string links_in_words(const Cluster& cluster) {
  std::vector<std::string> words;
  for (const auto& tier : cluster.tiers) words.push_back(tier_words(tier));
  words.push_back(plain_number(cluster.collective_overhead / kMicrosecond) + " us a collective");
  if (cluster.device.memory > 0) {
    words.push_back("encoding at " + plain_number(cluster.device.memory / 1e9) + " GB/s");
  }
  return join_and(words);
}

std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  std::string line;
  while (std::getline(info, line)) {
    const auto colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) {
      return std::to_string(std::thread::hardware_concurrency()) + " x " + line.substr(colon + 2);
    }
  }
  return "processors without a name";
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &utc);
  return text;
}

// The codec that some strategy uses, whose cost on this device must be measured too.
const Codec* codec_in(const std::vector<Strategy>& strategies) {
  for (const auto& strategy : strategies) {
    if (!strategy.compression.codec.empty()) return find_codec(strategy.compression.codec);
  }
  return nullptr;
}

// The plan of a strategy and what an executor says of it.
struct Forecast {
  Plan plan;
  Timeline timeline;
  Seconds step = 0;
};

Forecast forecast(const Scenario& scenario, const Workload& workload, const Strategy& strategy,
                  Executor* executor) {
  Forecast result;
  result.plan = make_plan(workload, scenario.cluster, strategy);
  if (executor == nullptr) return result;
  const int warmup = crosses_steps(result.plan) ? 4 : 1;
  result.timeline = executor->run(result.plan, {}, 2 * warmup + 1).timeline;
  PriceBook book(scenario.cluster);
  result.step = measure(result.plan, workload, result.timeline, warmup, book).step_time;
  return result;
}

class Validator {
 public:
  Validator(const ValidateOptions& options, Document document, Meeting& meeting)
      : options_(options),
        document_(std::move(document)),
        meeting_(meeting),
        backend_(backend_named(options.backend)),
        scenario_(parse_scenario(document_)),
        strategies_(strategies_of(scenario_, options.only)) {}

  int run() {
    if (scenario_.cluster.ranks() != meeting_.ranks()) {
      throw InputError(document_.file + ": cluster: " + std::to_string(scenario_.cluster.nodes) +
                       " nodes of " + std::to_string(scenario_.cluster.gpus_per_node) + " are " +
                       std::to_string(scenario_.cluster.ranks()) + " ranks, but " +
                       std::to_string(meeting_.ranks()) + " were started");
    }
    say("met: " + plural(static_cast<std::size_t>(meeting_.ranks()), "rank"));
    Validation validation = empty_validation();
    if (options_.calibrate) calibrate(validation);
    validation.links = links_in_words(scenario_.cluster);
    for (const auto& strategy : strategies_) {
      // Rank 0's Ctrl-C ends all ranks at the same row.
      if (meeting_.from_first(interrupted() ? "stop" : "", Meeting::kPatient) == "stop") {
        validation.complete = false;
        break;
      }
      validation.rows.push_back(row(strategy, validation));
      // Nothing that was measured is lost, whatever comes next.
      if (first() && !options_.out.empty()) keep(validation);
    }
    bool right = true;
    for (const auto& line : validation.rows) right = right && line.values_match.value_or(true);
    if (first()) {
      if (!options_.out.empty()) keep(validation);
      std::cout << printed(validation, options_.format) << std::flush;
      if (!options_.trace.empty()) write_file(options_.trace, chrome_trace(traced_));
    }
    meeting_.barrier(Meeting::kPatient);
    if (!right) throw MachineError("a rank did not end with the values of the host executor");
    return validation.complete ? 0 : kInterruptedExit;
  }

 private:
  bool first() const { return meeting_.rank() == 0; }
  void say(const std::string& text) const {
    if (first()) std::cerr << text << std::endl;
  }

  // To the file, or, where that cannot be, to stdout: it was measured.
  void keep(const Validation& validation) const {
    try {
      write_file(options_.out, validation_json(validation));
    } catch (const MachineError&) {
      std::cout << printed(validation, options_.format) << std::flush;
      throw;
    }
  }

  Validation empty_validation() const {
    Validation validation;
    validation.scenario = scenario_.name;
    validation.workload = scenario_.workload.name;
    validation.cluster = scenario_.cluster.name;
    validation.backend = options_.backend;
    validation.baseline = scenario_.baseline;
    validation.executor = options_.executor;
    validation.version = version();
    validation.date = today();
    validation.ranks = meeting_.ranks();
    validation.warmup = options_.warmup;
    validation.repeats = options_.repeats;
    return validation;
  }

  void calibrate(Validation& validation) {
    say("calibrating the links");
    LinkCalibrationSettings settings;
    settings.codec = codec_in(strategies_);
    LinkCalibration calibration = calibrate_links(meeting_, backend_, scenario_.cluster, settings);
    scenario_.cluster = calibration.cluster;
    validation.samples = std::move(calibration.samples);
    say("links: " + links_in_words(scenario_.cluster));
    if (first() && !options_.cluster_out.empty()) {
      Json json = document_.root.at("cluster");
      set_measured_links(calibration, json);
      write_file(options_.cluster_out, json.dump(2) + "\n");
    }
  }

  ValidatedRow row(const Strategy& strategy, Validation& validation) {
    const auto fused =
        fused_workload(scenario_.workload, scenario_.cluster.device, strategy.compute_fusion);
    const Workload& workload = fused ? *fused : scenario_.workload;
    const ExecutorSettings settings{scenario_.cluster, scenario_.simulation, scenario_.seed};
    std::unique_ptr<Executor> predictor;
    if (first()) {
      predictor =
          options_.executor == "sim" ? make_sim_executor(settings) : make_model_executor(settings);
    }
    const Forecast foretold = forecast(scenario_, workload, strategy, predictor.get());
    if (first()) {
      say(one_line(strategy.name) + ": predicted " + seconds_text(foretold.step));
    }

    const SampleValues values =
        options_.values == "real" ? SampleValues::kReal : exact_values(foretold.plan);
    const auto rank = static_cast<std::size_t>(meeting_.rank());
    Gradients input(static_cast<std::size_t>(meeting_.ranks()));
    input[rank] = sample_gradients(workload, meeting_.rank(), meeting_.ranks(), kSeed, values);
    const auto executor = backend_(workload, meeting_);
    Outcome outcome = executor->run(foretold.plan, input, options_.warmup + options_.repeats);
    validation.hardware = executor->hardware() + ", " + processor();
    validation.clock_error = std::max(validation.clock_error, executor->clock_error());

    ValidatedRow found;
    if (first()) {
      found = compare(strategy.name, foretold.plan, foretold.step, foretold.timeline,
                      outcome.timeline, options_.warmup);
      say(one_line(strategy.name) + ": measured " + seconds_text(found.median));
      if (!options_.trace.empty()) {
        traced_.traced_workload = workload;
        traced_.traced.push_back({strategy.name + ", predicted", foretold.plan, foretold.timeline});
        traced_.traced.push_back({strategy.name + ", measured", foretold.plan, outcome.timeline});
      }
    }
    for (const auto& published : scenario_.published) {
      if (published.strategy == strategy.name) found.published_speedup = published.speedup;
    }
    if (!outcome.bytes_sent.empty()) {
      found.bytes_sent = most_sent(outcome.bytes_sent[rank]) /
                         (options_.warmup + options_.repeats) / foretold.plan.steps;
    }
    if (!options_.no_check) {
      found.values_match =
          values_match(meeting_, workload, foretold.plan, outcome.gradients[rank], kSeed, values);
    }
    return found;
  }

  double most_sent(Bytes own) {
    double most = 0;
    for (const auto& text : meeting_.gather(std::to_string(own))) {
      most = std::max(most, std::stod(text));
    }
    return most;
  }

  const ValidateOptions& options_;
  Document document_;
  Meeting& meeting_;
  LiveExecutorFactory backend_;
  Scenario scenario_;
  std::vector<Strategy> strategies_;
  Report traced_;  // timelines, if they are asked for
};

int run(const ValidateOptions& options) {
  const Document document = read_document(options.file);
  const Scenario scenario = parse_scenario(document);
  strategies_of(scenario, options.only);
  backend_named(options.backend);
  if (!options.cluster_out.empty() && !options.calibrate) {
    throw InputError("--cluster-out: expected --calibrate too, which measures what is written");
  }
  catch_interrupts();
  std::string key = document.root.dump() + options.backend + options.values;
  for (const auto& name : options.only) key += "\n" + name;
  key += std::to_string(options.warmup) + " " + std::to_string(options.repeats) +
         (options.calibrate ? " calibrate" : "") + (options.no_check ? " no check" : "");
  return with_ranks(options.ranks, fingerprint(key),
                    [&](Meeting& meeting) { return Validator(options, document, meeting).run(); });
}

}  // namespace

VerbAction add_validate(CLI::App& app) {
  auto options = std::make_shared<ValidateOptions>();
  auto* verb = app.add_subcommand(
      "validate",
      "Run a scenario's plans on real machines too, and say where prediction and "
      "measurement differ");
  verb->add_option("file", options->file, "the scenario (JSON); its sweep is left out")->required();
  verb->add_option("--backend", options->backend, "what moves the gradients")
      ->check(CLI::IsMember({"gloo", "nccl"}))
      ->capture_default_str();
  add_ranks_options(*verb, options->ranks);
  verb->add_flag("--calibrate", options->calibrate,
                 "measure the links first and predict with what was found; else the scenario's "
                 "figures stand");
  verb->add_option("--cluster-out", options->cluster_out,
                   "file for the cluster with the measured links (JSON)");
  verb->add_option("--only", options->only, "names of strategies, instead of all");
  verb->add_option("--executor", options->executor, "that predicts: model or sim")
      ->check(CLI::IsMember({"model", "sim"}))
      ->capture_default_str();
  verb->add_option("--warmup", options->warmup, "periods that are run and left out first")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  verb->add_option("--repeats", options->repeats, "periods that are measured")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  verb->add_flag("--no-check", options->no_check,
                 "do not compare the exchanged values with the host executor's");
  verb->add_option("--values", options->values,
                   "gradients made of integers, whose sums are exact, or of real numbers")
      ->check(CLI::IsMember({"integers", "real"}))
      ->capture_default_str();
  verb->add_option("--format", options->format, "what is printed")
      ->check(CLI::IsMember({"text", "markdown", "csv", "json"}))
      ->capture_default_str();
  verb->add_option("--trace", options->trace,
                   "file for a Chrome trace of every row, predicted and measured on every rank "
                   "(open in ui.perfetto.dev)");
  verb->add_option("-o,--out", options->out, "file for the report (JSON), kept current row by row");
  return [options] { return run(*options); };
}

}  // namespace syncline
