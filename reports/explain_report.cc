#include "reports/run_report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/plan.h"
#include "reports/decisions.h"
#include "reports/explain_report.h"
#include "reports/format.h"
#include "reports/memory_text.h"
#include "reports/run_rows.h"
#include "reports/table.h"
#include "reports/verdict.h"
#include "studies/study/study_calibration.h"
#include "studies/warnings/warnings.h"

namespace syncline::reports {
namespace {

// Returns the number of collectives per step, the number of buckets and their sizes.
std::string traffic_sentence(const plan::Plan& plan, const measure::Metrics& metrics) {
  double least = 0, most = 0;
  std::size_t encoded = 0;
  for (std::size_t b = 0; b < plan.buckets.size(); ++b) {
    const auto bytes = static_cast<double>(plan.buckets[b].bytes);
    least = b == 0 ? bytes : std::min(least, bytes);
    most = std::max(most, bytes);
    encoded += plan.buckets[b].codec != nullptr;
  }
  std::string text =
      collectives_text(metrics.collectives) + ": " + plural(plan.buckets.size(), "bucket");
  if (plan.steps > 1) text += " every " + std::to_string(plan.steps) + " steps";
  // A training of several phases: the buckets are those of its first.
  if (measure::collectives_per_step(plan) != metrics.collectives) text += " at first";
  text += plan.buckets.size() == 1 ? ", of " + bytes_text(most)
                                   : ", the smallest of " + bytes_text(least) +
                                         " and the largest of " + bytes_text(most);
  if (encoded > 0) text += "; " + std::to_string(encoded) + " of them compressed";
  return text;
}

// Returns how much of the communication is hidden, how much exposed.
std::string overlap_sentence(const plan::Plan& plan, const measure::Metrics& metrics) {
  if (plan.streams == 1) return "everything runs on one stream: no communication is hidden";
  if (plan.roles > 1) {
    return seconds_text(metrics.communication) +
           " of communication per step; the stage that computes most stands still for " +
           seconds_text(metrics.exposed) + ", waiting for collectives and for other stages";
  }
  const Seconds hidden = std::max(0.0, metrics.communication - metrics.exposed);
  const double share = metrics.communication > 0 ? 100 * hidden / metrics.communication : 100;
  return plural(plan::communication_streams(plan), "communication stream") + "; " +
         share_text(share) + " of " + seconds_text(metrics.communication) +
         " of communication is hidden by computation, " + seconds_text(metrics.exposed) +
         " per step is exposed";
}

// Returns the step's bottleneck and, in brackets, its share.
std::string bottleneck_text(const measure::Bottleneck& bottleneck, const Jitter& jitter) {
  const auto share = [&](Seconds part) { return share_text(100 * part / bottleneck.step); };
  const std::string_view what = bottleneck.what();
  std::string text = std::string(what) + " (";
  if (what == "stragglers") {
    text += share(bottleneck.stragglers) + " of each step is waiting for slower ranks)";
    if (!jitter.guessed) return text;
    return text + ". That ranks differ by " + share_text(100 * jitter.relative) +
           " is assumed: how a rank's computation varies from step to step in profiles of a job "
           "tells it (cluster.jitter.relative, its deviation over its mean)";
  }
  if (what == "handling gradients") {
    return text + share(bottleneck.comm_overhead) +
           " of each step is copying or encoding them, or waiting for the host)";
  }
  for (const auto& [word, seconds] : bottleneck.cuts()) {
    if (what == word) return text + share(seconds) + " of each step)";
  }
  if (what == "computation") {
    const bool little = bottleneck.communication() < 0.01 * bottleneck.step;
    return text + "communication costs " +
           (little ? "less than 1 %" : share(bottleneck.communication()) + " of each step") + ")";
  }
  return text + share_text(100 * bottleneck.start_up_share) + " of collective time is latency)";
}

// Returns one line of a strategy's block: a keyword and its text.
std::string line(std::string_view word, const std::string& text) {
  constexpr std::size_t kWidth = 15;  // of the longest keyword, and two blanks on either side
  std::string start = "  " + std::string(word);
  start.resize(kWidth, ' ');
  return start + text + "\n";
}

// Returns the shares of a step of a job with other parallelism than data parallelism.
std::string whole_job_line(const measure::Explained& one) {
  const measure::Bottleneck& bottleneck = *one.bottleneck;
  const auto share = [&](std::string_view word, Seconds part) {
    return ", " + std::string(word) + " " + share_text(100 * part / bottleneck.step);
  };
  std::string text = "computation " + share_text(100 * bottleneck.compute / bottleneck.step);
  for (const auto& [word, seconds] : bottleneck.cuts()) {
    if (seconds > 0) text += share(word, seconds);
  }
  text += share("data parallelism", bottleneck.communication() + bottleneck.comm_overhead);
  if (bottleneck.stragglers > 0) text += share("slower ranks", bottleneck.stragglers);
  if (bottleneck.overhead > 0) text += share("the host", bottleneck.overhead);
  if (!one.doubled) return line("step", text);
  const double longer = 100 * (one.doubled->step / bottleneck.step - 1);
  return line("step", text) +
         line("doubled",
              "twice the nodes with the same layout: " + seconds_text(one.doubled->step) + ", " +
                  share_text(longer) + " longer, data parallelism " +
                  share_text(100 * (one.doubled->communication() + one.doubled->comm_overhead) /
                             one.doubled->step));
}

// Returns the fabric's most loaded link, and the changes that would relieve it.
std::string hot_link_lines(const measure::HotLink& hot) {
  std::string text = line("hot link", hot.name + ": " + seconds_text(hot.busy) +
                                          " per step, the busiest port " + seconds_text(hot.ports));
  for (const auto& [words, step] : hot.cooler) {
    text += line(&words == &hot.cooler.front().first ? "cooler" : "",
                 words + ": " + seconds_text(step) + " per step");
  }
  return text;
}

std::string exchange_lines(const measure::Explained& one, const Cluster& cluster) {
  const measure::Metrics& metrics = one.evaluated.metrics;
  const measure::Bottleneck& bottleneck = *one.bottleneck;
  std::string text = line("traffic", traffic_sentence(one.evaluated.plan, metrics)) +
                     line("overlap", overlap_sentence(one.evaluated.plan, metrics)) +
                     line("bottleneck", bottleneck_text(bottleneck, cluster.jitter)) +
                     line("lower bound", seconds_text(metrics.lower_bound) +
                                             " per step for this algorithm, with any fusion");
  if (one.hot_link) text += hot_link_lines(*one.hot_link);
  if (cluster.step_overhead() > 0) {
    text += line("overhead", seconds_text(cluster.step_overhead()) +
                                 " per step on the host, for data-parallel execution");
  }
  const plan::Plan& plan = one.evaluated.plan;
  const Seconds buffers = plan::time_before_forward(plan) / plan.steps - cluster.step_overhead();
  if (buffers > 1e-3 * kMicrosecond) {
    text += line("buffers", seconds_text(buffers) +
                                " per step until those of rank 0 are with all (broadcast_buffers)");
  }
  return text;
}

std::string training_words(measure::TrainingChange training) {
  if (training == measure::TrainingChange::kSame) return "";
  return training == measure::TrainingChange::kRounded ? "; rounds gradients"
                                                       : "; changes the training";
}

// Returns "5.1 % shorter"; a change that makes the job fit may take longer.
std::string gain_words(const measure::Advice& advice) {
  const double gain = advice.gain_percent();
  return gain < 0 ? share_text(-gain) + " longer" : share_text(gain) + " shorter";
}

// Returns the memory of a rank of each stage, the first stage's first.
std::string stages_line(const Scenario& scenario, const Strategy& strategy) {
  std::string text;
  for (const measure::Memory& memory : measure::memory_by_stage(scenario, strategy)) {
    text += (text.empty() ? "" : ", ") + measure::gigabytes(memory.total());
  }
  return line("stages", text + " GB per GPU");
}

// True if several of the strategies have this note, which is then said once, at the end.
bool is_shared(const std::string& note, const measure::Explanation& explanation) {
  return std::ranges::count_if(explanation.strategies, [&](const measure::Explained& one) {
           return one.advised && std::ranges::count(one.strategy.notes, note) > 0;
         }) > 1;
}

std::string block(const measure::Explained& one, const measure::Explanation& explanation) {
  const Scenario& scenario = explanation.scenario;
  const Cluster& cluster = scenario.cluster;
  const Strategy& strategy = one.strategy;
  std::string text = strategy.name;
  if (!strategy.dialect.empty()) text += " (" + strategy.dialect + ")";
  text += ": " + seconds_text(one.evaluated.metrics.step_time) +
          " per step (80 %: " + seconds_range(one.interval.low, one.interval.high) + ")";
  const double throughput = one.evaluated.metrics.throughput;
  if (!std::isnan(throughput)) text += ", " + throughput_text(throughput) + " samples/s";
  text += "\n";
  if (one.bottleneck && scenario.workload.parallel.whole_job()) text += whole_job_line(one);
  text += one.bottleneck ? exchange_lines(one, cluster) : "  one rank has nothing to communicate\n";
  text += line("memory", memory_sentence(measure::memory_of(scenario, strategy)));
  if (scenario.workload.parallel.pipeline > 1) text += stages_line(scenario, strategy);
  if (!one.advised) return text;
  for (const auto& note : strategy.notes) {
    const bool here = !measure::tells_ignored(note) && !is_shared(note, explanation);
    if (here) text += line("note", note);
  }
  if (!one.advice.empty()) return text;
  return text + line("advice", "no single change gains " + share_text(measure::kMinAdvicePercent));
}

Page page_of(const measure::Explanation& explanation) {
  const Scenario& scenario = explanation.scenario;
  Page page{scenario.name,
            scenario.workload.name + " on " + scenario.cluster.name +
                (scenario.others.empty() ? "" : ", next to other jobs") +
                ", predicted by the model executor" +
                (scenario.calibration.parameters.empty()
                     ? ""
                     : " with parameters fitted to the scenario's published rows"),
            {}};
  const std::string& shortage = explanation.shortage;
  const measure::Explained* best = fastest_of(explanation);
  const bool fits = best == nullptr || measure::memory_of(scenario, best->strategy).fits();
  if (!shortage.empty() && fits) page.add("Does not fit: " + shortage + ".");
  std::vector<Strategy> advised;
  for (const auto& one : explanation.strategies) {
    page.add(Listing{"text", block(one, explanation)});
    if (!one.advice.empty()) page.add(decisions_of(one.advice, false));
    if (one.advised) advised.push_back(one.strategy);
  }
  page.add(Items{"Notes:", measure::strategy_notes(advised, 2)});
  return page;
}

// Returns "other buckets (bucket_cap_mb: 25 -> 50)": a change with its settings, if these are
// short.
std::string change_words(const measure::Advice& advice) {
  constexpr std::size_t kShort = 120;
  const std::string set = one_line(advice.set_with);
  return one_line(advice.change) + (set.empty() || set.size() > kShort ? "" : " (" + set + ")");
}

// Returns a first sentence on the network: measured steps wait for it or not, or it cannot carry
// the training. Else empty.
std::string network_opening(const measure::Explanation& explanation,
                            const measure::Explained& best) {
  const measure::Metrics& metrics = best.evaluated.metrics;
  if (const auto fit = measure::network_fit_of(explanation.scenario)) {
    const auto& all = explanation.strategies;
    const auto named = [&](const measure::Explained& one) {
      return one.strategy.name == explanation.scenario.baseline;
    };
    const auto baseline = std::ranges::find_if(all, named);
    return network_sentence(*fit, baseline == all.end() ? metrics : baseline->evaluated.metrics) +
           " ";
  }
  if (!best.bottleneck || !measure::waits_for_network(metrics)) return "";
  return "The network cannot carry this training: " +
         share_text(100 * metrics.exposed / metrics.step_time) + " of each step waits for it. ";
}

// Returns the fastest strategy of those that fit, its bottleneck, and the best change.
std::string verdict_of(const measure::Explanation& explanation) {
  if (explanation.strategies.empty()) return "";
  const measure::Explained& best = *fastest_of(explanation);
  if (!measure::memory_of(explanation.scenario, best.strategy).fits()) {
    std::string text = "Nothing here fits in memory: " + explanation.shortage + ".";
    if (best.advice.empty()) return text;
    const measure::Advice& change = best.advice.front();
    return text + " A change that fits: " + change_words(change) + ", " +
           measure::gigabytes(change.memory.total()) + " GB and " +
           seconds_text(change.metrics.step_time, kSaidDigits) + " per step" +
           training_words(change.training) + ".";
  }
  const std::size_t count = explanation.strategies.size();
  std::string text = network_opening(explanation, best) + quoted_name(best.strategy.name);
  text += count == 1 ? " takes " : " is the fastest of " + std::to_string(count) + " strategies: ";
  text += seconds_text(best.evaluated.metrics.step_time, kSaidDigits) + " per step";
  const std::string range = seconds_range(best.interval.low, best.interval.high);
  if (!range.empty()) text += " (80 %: " + range + ")";
  if (best.bottleneck) text += ", bound by " + std::string(best.bottleneck->what());
  text += ".";
  if (best.advice.empty()) return text;
  // As in `tune`: changes that the framework can set and that keep the training come first.
  using measure::TrainingChange;
  const auto same = std::ranges::find_if(best.advice, [](const measure::Advice& one) {
    return one.training == TrainingChange::kSame && !one.outside;
  });
  const measure::Advice& change = same == best.advice.end() ? best.advice.front() : *same;
  return text + " The best change" +
         (change.training == TrainingChange::kSame ? " with the same training" : "") +
         " makes it " + gain_words(change) + ": " + change_words(change) +
         training_words(change.training) + ".";
}

Table rows_of(const measure::Explanation& explanation) {
  Table rows{columns(data_column("strategy"), data_column("step_time_s"),
                     data_column("lower_bound_s"), data_column("bound_by"), data_column("change"),
                     data_column("change_step_time_s"), data_column("gain_percent"),
                     data_column("step_time_*_s"), data_column("memory_bytes"),
                     data_column("speedup_*"), data_column("decided"), data_column("training"),
                     data_column("change_memory_bytes"), data_column("set_with"))};
  for (const auto& one : explanation.strategies) {
    const measure::Metrics& metrics = one.evaluated.metrics;
    const auto add = [&](const measure::Advice* change) {
      const auto cell = [&](auto of) { return change != nullptr ? Cell(of(*change)) : Cell(); };
      using Change = const measure::Advice&;
      rows.add(one.strategy.name, metrics.step_time, metrics.lower_bound,
               one.bottleneck ? one.bottleneck->what() : "",
               cell([](Change row) { return row.change; }),
               cell([](Change row) { return row.metrics.step_time; }),
               cell([](Change row) { return row.gain_percent(); }), one.interval,
               measure::memory_of(explanation.scenario, one.strategy).total(),
               cell([](Change row) { return row.gain; }),
               cell([](Change row) { return decided_word(row.gain); }),
               cell([](Change row) { return measure::word_of(row.training); }),
               cell([](Change row) { return row.memory.total(); }),
               cell([](Change row) { return row.set_with; }));
    };
    for (const auto& advice : one.advice) add(&advice);
    if (one.advice.empty()) add(nullptr);
  }
  return rows;
}

Json shares_json(const measure::Bottleneck& bottleneck) {
  const auto share = [&](Seconds part) { return exact(part / bottleneck.step); };
  Json shares{
      {"computation", share(bottleneck.compute)}, {"stragglers", share(bottleneck.stragglers)},
      {"overhead", share(bottleneck.overhead)},   {"handling", share(bottleneck.comm_overhead)},
      {"latency", share(bottleneck.start_up)},    {"bandwidth", share(bottleneck.transfer)}};
  for (const auto& [word, seconds] : bottleneck.cuts()) {
    if (seconds > 0) shares[std::string(word)] = share(seconds);
  }
  return shares;
}

Json strategy_json(const measure::Explained& one, const Scenario& scenario) {
  Json object{{"name", one.strategy.name}};
  put_predicted(object, one.evaluated.metrics);
  object["step_time_low_s"] = exact(one.interval.low);
  object["step_time_high_s"] = exact(one.interval.high);
  object["memory_bytes"] = memory_json(measure::memory_of(scenario, one.strategy));
  if (scenario.workload.parallel.pipeline > 1) {
    for (const measure::Memory& memory : measure::memory_by_stage(scenario, one.strategy)) {
      object["memory_by_stage"].push_back(memory_json(memory));
    }
  }
  if (!one.strategy.dialect.empty()) object["dialect"] = one.strategy.dialect;
  if (one.bottleneck) {
    object["bound_by"] = one.bottleneck->what();
    object["shares"] = shares_json(*one.bottleneck);
  }
  if (one.hot_link) {
    const measure::HotLink& hot = *one.hot_link;
    Json cooler = Json::array();
    for (const auto& [words, step] : hot.cooler) {
      cooler.push_back({{"change", words}, {"step_time_s", exact(step)}});
    }
    object["hot_link"] = {{"name", hot.name},
                          {"sort", hot.sort},
                          {"busy_s", exact(hot.busy)},
                          {"ports_s", exact(hot.ports)},
                          {"cooler", std::move(cooler)}};
  }
  for (const auto& load : one.links) {
    object["links"].push_back({{"switch", load.name},
                               {"sort", load.sort},
                               {"out_s", exact(load.out)},
                               {"in_s", exact(load.in)}});
  }
  if (!one.strategy.notes.empty()) object["notes"] = one.strategy.notes;
  object["advice"] = json_of(decisions_of(one.advice, false));
  for (std::size_t i = 0; i < one.advice.size(); ++i) {
    Json& row = object["advice"][i];
    row["gain_percent"] = exact(one.advice[i].gain_percent());
    row["changes_training"] = one.advice[i].training != measure::TrainingChange::kSame;
  }
  return object;
}

Json json_of(const measure::Explanation& explanation) {
  Json strategies = Json::array();
  const Scenario& scenario = explanation.scenario;
  for (const auto& one : explanation.strategies) {
    strategies.push_back(strategy_json(one, scenario));
  }
  return {{"strategies", std::move(strategies)},
          {"provenance",
           {{"executor", "model"},
            {"workload", scenario.workload.name},
            {"cluster", scenario.cluster.name}}}};
}

}  // namespace

const measure::Explained* fastest_of(const measure::Explanation& explanation) {
  const auto order = [&](const measure::Explained& one) {
    const bool fits = measure::memory_of(explanation.scenario, one.strategy).fits();
    return std::pair(!fits, one.evaluated.metrics.step_time);
  };
  const auto& all = explanation.strategies;
  const auto best = std::ranges::min_element(all, {}, order);
  return best == all.end() ? nullptr : &*best;
}

Answer answer_of(const measure::Explanation& explanation) {
  Answer answer = make_answer("explain", explanation.scenario.name, explanation, page_of, rows_of,
                              json_of, explanation.warnings, figures_of);
  answer.lead = verdict_of(explanation);
  return answer;
}

}  // namespace syncline::reports
