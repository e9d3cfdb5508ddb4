// Everything that the NCCL backend can show on one machine with a GPU, by a program of its own that
// needs neither CMake nor the packages of the command line: `make -C backend_nccl check`.
//
//   nccl_check FILE --ranks 2,4 [--rate 1gbit] [--calibrate] ...
//
// For every number of ranks it starts that many processes (each in a network namespace with a
// shaped link, where --rate is given and the machine permits it), runs every strategy of the
// scenario, compares what the exchange left with the host executor, and times the steps beside the
// closed-form model's prediction. The scenario's cluster becomes one of as many nodes as there are
// ranks. One table on standard output; with --out one JSON of everything, and one a run as
// `syncline validate` writes it.
//
// Exit codes: 0; 1 values that are not what they should be; 2 wrong input; 3 no GPU, or a machine
// that failed.
#include <nccl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "backend_nccl/nccl_executor.h"
#include "core/error.h"
#include "core/fingerprint.h"
#include "core/input/document.h"
#include "core/input/read_scenario.h"
#include "core/run/model_executor.h"
#include "live/lab.h"
#include "live/link_calibration.h"
#include "live/local_ranks.h"
#include "live/validation_run.h"
#include "reports/format.h"
#include "reports/grid.h"
#include "reports/validation_report.h"

namespace syncline::nccl_backend {
namespace {

constexpr int kWrongValues = 1;
constexpr int kWrongInput = 2;
constexpr int kFailingMachine = 3;

struct CheckOptions {
  std::string file;
  std::vector<int> ranks;
  std::string rate;  // empty: links as they are
  std::string out;   // folder; empty: nothing is written
  std::vector<std::string> only;
  bool calibrate = false;
  bool no_check = false;
  int warmup = 2;
  int repeats = 5;
  double timeout = 60;  // seconds
  NcclSettings nccl;
};

constexpr const char* kUsage =
    "nccl_check FILE --ranks N[,N...] [--rate 1gbit] [--out FOLDER] [--only STRATEGY]...\n"
    "           [--warmup N] [--repeats N] [--timeout SECONDS] [--calibrate] [--no-check]\n"
    "           [--graph] [--matrices] [--max-ctas N]";

int number(const std::string& option, const std::string& text, int least, int most) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec != std::errc() || read.ptr != end || value < least || value > most) {
    throw InputError(option + ": found '" + text + "', expected " + std::to_string(least) + " to " +
                     std::to_string(most));
  }
  return value;
}

std::vector<int> rank_numbers(const std::string& text) {
  constexpr int kMost = 64;
  std::vector<int> list;
  std::size_t at = 0;
  for (;;) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    list.push_back(number("--ranks", text.substr(at, comma - at), 1, kMost));
    if (comma == text.size()) return list;
    at = comma + 1;
  }
}

CheckOptions options_of(const std::vector<std::string>& words) {
  constexpr int kMany = 100000;
  CheckOptions options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const auto value = [&]() -> const std::string& {
      if (i + 1 == words.size()) throw InputError(word + ": expected a value after it");
      return words[++i];
    };
    if (word == "--ranks") {
      options.ranks = rank_numbers(value());
    } else if (word == "--rate") {
      options.rate = value();
      live::lab_rate(options.rate, "--rate");
    } else if (word == "--out") {
      options.out = value();
    } else if (word == "--only") {
      options.only.push_back(value());
    } else if (word == "--warmup") {
      options.warmup = number(word, value(), 1, kMany);
    } else if (word == "--repeats") {
      options.repeats = number(word, value(), 1, kMany);
    } else if (word == "--timeout") {
      options.timeout = number(word, value(), 1, kMany);
    } else if (word == "--max-ctas") {
      options.nccl.max_ctas = number(word, value(), 1, 64);
    } else if (word == "--calibrate") {
      options.calibrate = true;
    } else if (word == "--no-check") {
      options.no_check = true;
    } else if (word == "--graph") {
      options.nccl.graph = true;
    } else if (word == "--matrices") {
      options.nccl.matrices = true;
    } else if (word.rfind("--", 0) == 0 || !options.file.empty()) {
      throw InputError("found '" + word + "', expected\n" + kUsage);
    } else {
      options.file = word;
    }
  }
  if (options.file.empty()) throw InputError(std::string("no scenario; expected\n") + kUsage);
  if (options.ranks.empty()) options.ranks = {2};
  return options;
}

// The scenario on a cluster with a node, of one GPU, for every rank.
Scenario scenario_for(input::Document document, int ranks) {
  set_key(document, "cluster.nodes", ranks);
  set_key(document, "cluster.gpus_per_node", 1);
  return parse_scenario(document);
}

std::vector<Strategy> chosen(const Scenario& scenario, const std::vector<std::string>& only) {
  std::vector<Strategy> list;
  for (const auto& strategy : scenario.strategies) {
    const bool named = std::find(only.begin(), only.end(), strategy.name) != only.end();
    if (only.empty() || named) list.push_back(strategy);
  }
  if (list.empty()) throw InputError("--only: " + scenario.name + " has no such strategy");
  return list;
}

std::string links_of(const Cluster& cluster) {
  std::string text;
  for (const auto& tier : cluster.tiers) {
    text += (text.empty() ? "" : ", ") + tier.name + " " + reports::seconds_text(tier.latency) +
            " and " + reports::bytes_text(tier.bandwidth) + "/s";
  }
  return text;
}

// Gives one executor to all rows: connecting takes longer than most of them. Shapes are the
// executor's; compute fusion changes times alone.
class SharedExecutor final : public live::LiveExecutor {
 public:
  explicit SharedExecutor(live::LiveExecutor& executor) : executor_(executor) {}
  std::string_view name() const override { return executor_.name(); }
  Seconds clock_error() const override { return executor_.clock_error(); }
  std::string hardware() const override { return executor_.hardware(); }
  run::Outcome run(const plan::Plan& plan, const run::Gradients& input, int periods) override {
    return executor_.run(plan, input, periods);
  }

 private:
  live::LiveExecutor& executor_;
};

void print_row(const measure::ValidatedRow& row) {
  std::cerr << "  " << reports::one_line(row.strategy) << ": predicted "
            << reports::seconds_text(row.predicted) << ", measured "
            << reports::seconds_text(row.median)
            << (row.values_match && !*row.values_match ? ", WRONG VALUES" : "") << std::endl;
}

// What one rank of one run does. Rank 0 leaves the report in `file`.
int run_rank(const CheckOptions& options, const live::RankEnvironment& environment,
             const std::string& file) {
  const input::Document document = input::read_document(options.file);
  live::ValidationRun run;
  run.scenario = scenario_for(document, environment.ranks);
  run.scenario.strategies = chosen(run.scenario, options.only);
  run.predictor = run::make_model_executor;
  run.warmup = options.warmup;
  run.repeats = options.repeats;
  run.check_values = !options.no_check;
  live::ControlChannelSettings settings;
  constexpr double kMilli = 1000;
  settings.timeout = std::chrono::milliseconds(static_cast<long long>(options.timeout * kMilli));
  settings.key = fingerprint(document.root.dump());
  settings.on_failure = [](const std::string& text, bool first_hand) {
    if (first_hand) std::cerr << "nccl_check: " << text << std::endl;
    _exit(kFailingMachine);
  };
  live::ControlChannel channel(environment, settings);
  try {
    measure::Validation report;
    report.backend = "nccl";
    report.executor = "model";
    if (options.calibrate) {
      live::LinkCalibrationSettings calibration;
      calibration.largest = 16 << 20;
      const live::LiveExecutorFactory factory = [&](const Workload& workload,
                                                    live::ControlChannel& here) {
        return make_nccl_executor(workload, here, options.nccl);
      };
      auto links = live::calibrate_links(channel, factory, run.scenario.cluster, calibration);
      run.scenario.cluster = links.cluster;
      report.samples = std::move(links.samples);
    }
    report.links = links_of(run.scenario.cluster);
    const auto executor = make_nccl_executor(run.scenario.workload, channel, options.nccl);
    run.backend = [&](const Workload&, live::ControlChannel&) {
      return std::make_unique<SharedExecutor>(*executor);
    };
    live::ValidationHooks hooks;
    hooks.row = [&](const measure::ValidatedRow& row) {
      print_row(row);
      std::ofstream(file) << printed(reports::answer_of(report), reports::Format::kJson,
                                     report.version)
                          << std::flush;
    };
    run_validation(run, channel, hooks, report);
    channel.barrier(live::ControlChannel::kPatient);
    return live::all_values_match(report) ? 0 : kWrongValues;
  } catch (const MachineError& error) {
    channel.fail(error.what());
    std::cerr << "nccl_check: rank " << environment.rank << ": " << error.what() << std::endl;
    _exit(kFailingMachine);
  }
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string now_in_utc() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32] = {};
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

// Everything around the runs: starting ranks, collecting what they leave.
class Check {
 public:
  Check(const CheckOptions& options, std::vector<std::string> words)
      : options_(options), words_(std::move(words)) {
    std::string name = (std::filesystem::temp_directory_path() / "nccl-check-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw MachineError("mkdtemp " + name);
    folder_ = name;
    all_["date"] = now_in_utc();
    all_["scenario"] = options.file;
    all_["driver"] = first_line("/proc/driver/nvidia/version");
    int version = 0;
    cudaRuntimeGetVersion(&version);
    all_["cuda_runtime"] = version;
    cudaDriverGetVersion(&version);
    all_["cuda_driver"] = version;
    ncclGetVersion(&version);
    all_["nccl"] = version;
    all_["runs"] = Json::array();
    grid_.columns = {{"ranks"},     {"links", false},     {"strategy", false},
                     {"predicted"}, {"measured\nmedian"}, {"measured\np95"},
                     {"error"},     {"values", false}};
  }
  ~Check() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Check(const Check&) = delete;
  Check& operator=(const Check&) = delete;

  int run() {
    int worst = 0;
    for (const int ranks : options_.ranks) {
      const std::string file = folder_ + "/" + std::to_string(ranks) + ".json";
      const int code = run_with(ranks, file);
      if (code > 128) return code;  // interrupted
      worst = std::max(worst, code);
      take(ranks, file, code);
      write();
    }
    std::cout << plain_grid(grid_);
    for (const auto& note : notes_) std::cout << "\n" << note << "\n";
    return worst;
  }

 private:
  int run_with(int ranks, const std::string& file) {
    std::cerr << reports::plural(static_cast<std::size_t>(ranks), "rank")
              << (options_.rate.empty() ? "" : " at " + options_.rate) << ":" << std::endl;
    setenv("SYNCLINE_NCCL_CHECK", file.c_str(), 1);  // to the ranks: where rank 0 reports
    links_ = "as they are";
    if (!options_.rate.empty()) {
      live::LabRun lab;
      lab.options.ranks = ranks;
      lab.options.rate = live::lab_rate(options_.rate, "--rate");
      lab.command = words_;
      lab.rules = rules();
      links_ = options_.rate;
      try {
        return code_of(live::run_lab(lab));
      } catch (const MachineError& error) {
        links_ = "as they are";
        const std::string note =
            "Links could not be shaped to " + options_.rate + ": " + error.what() +
            ". Rows measured without shaped links are not compared with a prediction.";
        if (notes_.empty() || notes_.back() != note) notes_.push_back(note);
        std::cerr << note << std::endl;
      }
    }
    return code_of(live::run_ranks(live::local_ranks(words_, ranks), rules()));
  }

  live::ProcessRules rules() const {
    live::ProcessRules rules;
    rules.patience = options_.timeout + 10;
    return rules;
  }

  static int code_of(const live::JobEnd& end) {
    const std::string failure = live::in_words(end);
    if (!failure.empty()) std::cerr << "nccl_check: " << failure << std::endl;
    return exit_code(end);
  }

  void take(int ranks, const std::string& file, int code) {
    std::ifstream text(file);
    Json report = Json::parse(text, nullptr, false);
    if (report.is_discarded()) report = Json::object();
    report["exit_code"] = code;
    report["shaped_to"] = links_;
    report["date"] = all_["date"];
    bool first = true;
    // A prediction holds for shaped links; for others there is nothing to compare it with.
    const bool shaped = links_ != "as they are";
    if (!report.contains("rows")) {
      grid_.lines.push_back({{std::to_string(ranks), links_,
                              "failed, exit code " + std::to_string(code), "", "", "", "", ""},
                             true});
    }
    for (const auto& row : report.value("rows", Json::array())) {
      const auto seconds = [&](const char* key) {
        return reports::seconds_text(row.at(key).get<double>());
      };
      const Json& match = row.at("values_match");
      const std::string verdict =
          match.is_null() ? "not checked" : (match.get<bool>() ? "equal" : "WRONG");
      grid_.lines.push_back({{first ? std::to_string(ranks) : "", first ? links_ : "",
                              reports::one_line(row.at("strategy").get<std::string>()),
                              shaped || options_.calibrate ? seconds("predicted_s") : "",
                              seconds("measured_median_s"), seconds("measured_p95_s"),
                              shaped || options_.calibrate
                                  ? reports::percent_text(row.at("error_percent").get<double>())
                                  : "",
                              verdict},
                             first && !grid_.lines.empty()});
      first = false;
    }
    if (report.contains("hardware")) {
      all_["hardware"] = report["hardware"];
      const std::string note = "Measured with " + report["hardware"].get<std::string>() + ".";
      if (std::find(notes_.begin(), notes_.end(), note) == notes_.end()) notes_.push_back(note);
    }
    all_["runs"].push_back(std::move(report));
  }

  void write() const {
    if (options_.out.empty()) return;
    std::filesystem::create_directories(options_.out);
    const auto to = [&](const std::string& name, const Json& json) {
      const std::string path = options_.out + "/" + name;
      std::ofstream file(path);
      file << json.dump(2) << "\n";
      if (!file.flush()) throw MachineError(path + ": cannot be written");
    };
    const std::string stem = std::filesystem::path(options_.file).stem().string();
    to("nccl_" + stem + ".json", all_);
    for (const auto& run : all_["runs"]) {
      if (!run.contains("ranks")) continue;
      to("nccl_" + stem + "_" + std::to_string(run["ranks"].get<int>()) + "_ranks.json", run);
    }
  }

  const CheckOptions& options_;
  const std::vector<std::string> words_;
  std::string folder_;
  std::string links_;
  Json all_;
  reports::Grid grid_;
  std::vector<std::string> notes_;
};

int run(const std::vector<std::string>& words) {
  const CheckOptions options = options_of(words);
  // Only a process that we started is a rank: a launcher's variables may be there for other
  // reasons.
  if (const char* file = std::getenv("SYNCLINE_NCCL_CHECK")) {
    const auto environment = live::read_rank_environment(live::process_environment());
    if (!environment)
      throw InputError("SYNCLINE_NCCL_CHECK: set, but the variables of a rank are not");
    return run_rank(options, *environment, file);
  }
  const input::Document document = input::read_document(options.file);
  for (const int ranks : options.ranks) {
    chosen(scenario_for(document, ranks), options.only);
  }
  const std::string reason = why_no_nccl();
  if (!reason.empty()) {
    throw MachineError(reason + "; nothing was checked (" + options.file + " is valid)");
  }
  std::vector<std::string> command = words;
  command.insert(command.begin(), std::filesystem::read_symlink("/proc/self/exe").string());
  return Check(options, std::move(command)).run();
}

}  // namespace
}  // namespace syncline::nccl_backend

int main(int count, char** words) {
  try {
    return syncline::nccl_backend::run({words + 1, words + count});
  } catch (const syncline::InputError& error) {
    std::cerr << "nccl_check: " << error.what() << std::endl;
    return syncline::nccl_backend::kWrongInput;
  } catch (const std::exception& error) {
    std::cerr << "nccl_check: " << error.what() << std::endl;
    return syncline::nccl_backend::kFailingMachine;
  }
}
