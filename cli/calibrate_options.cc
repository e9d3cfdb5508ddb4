#include "cli/calibrate.h"
#include "cli/executors.h"
#include "cli/number_option.h"
#include "cli/scenario_option.h"
#include "cli/word_option.h"
#include "core/compress/codec.h"

namespace syncline::cli {
namespace {

// Logs of collectives, and what comes of them.
void add_log_options(CLI::App& verb, CalibrateOptions& options) {
  verb.add_option("logs", options.logs,
                  "logs of one cluster, text or JSON (-J), or the folder that NCCL's Inspector "
                  "wrote; FILE@10x2: 10 nodes of 2 GPUs, where the log does not say; FILE:ring, "
                  "FILE:tree: what NCCL was forced to");
  verb.add_option("--against", options.against,
                  "logs that are not used, to be predicted at their own counts");
  verb.add_option("-o,--out", options.out, "file for the cluster (JSON)");
  verb.add_option("--svg", options.svg, "file for a plot of measured and fitted times");
  verb.add_option("--name", options.name, "name of the cluster")->capture_default_str();
  verb.add_option("--line-rate", options.line_rate,
                  "Gbit/s that a node's NICs are rated together: how much of it the logs reach")
      ->check(number_from(1e-3, 1e7));
  verb.add_option("--algorithm", options.algorithm,
                  "what NCCL was forced to in logs that do not say it themselves (FILE:ring)")
      ->transform(one_of_words({"nccl", "ring", "tree"}))
      ->capture_default_str();
  verb.add_option("--factor-from", options.factor_from,
                  "cluster of another network, calibrated with a forced tree (LOG:tree): what a "
                  "tree costs in units of what the network carries is taken from there");
}

// What a GPU of the cluster computes and moves.
void add_device_options(CLI::App& verb, CalibrateOptions& options) {
  auto* trace = verb.add_option("--trace", options.trace,
                                "CSV (wait_us,bytes) of a measured backward pass of --workload on "
                                "one GPU: the device's rate");
  verb.add_option("--throughput", options.throughput,
                  "samples a second of --workload on one GPU: the same without a trace")
      ->check(number_from(1e-9, 1e12))
      ->excludes(trace);
  verb.add_option("--workload", options.workload,
                  "workload (JSON) that --trace or --throughput were measured with");
  verb.add_option("--kernels", options.kernels,
                  "what make gpu-check wrote on one of the cluster's GPUs (JSON): the device's "
                  "memory rate, launch and gap");
  verb.add_option("--cluster", options.cluster,
                  "cluster (JSON) whose device --kernels updates, where no logs make one");
}

// Measured steps in place of logs: what the others exclude.
CLI::Option* add_steps_options(CLI::App& verb, CalibrateOptions& options) {
  CLI::Option* steps =
      verb.add_option("--steps", options.steps,
                      "instead of logs: a scenario (JSON) whose published rows are measured steps "
                      "of its own strategies; what computation and exchanges cost each other there "
                      "goes into its cluster.device");
  verb.add_option("--rows", options.rows,
                  "with --steps: the rows that are fitted, by their names, or the first N; the "
                  "rest is predicted (default: those with \"use\": \"calibrated\", else the first "
                  "two)")
      ->needs(steps);
  add_set(verb, options.set)->needs(steps);
  return steps;
}

// Ranks in place of logs: what the others exclude.
CLI::Option* add_link_options(CLI::App& verb, CalibrateOptions& options) {
  auto* live = verb.add_option("--live", options.live,
                               "instead of logs: ranks measure their own links, with this backend")
                   ->transform(one_of_words(backend_names()));
  add_ranks_options(verb, options.ranks);
  for (const char* own : {"--ranks", "--timeout", "--meet"}) verb.get_option(own)->needs(live);
  verb.add_option("--gpus-per-node", options.gpus_per_node,
                  "ranks that share a node, where links inside and between nodes differ")
      ->check(CLI::Range(1, 1024))
      ->needs(live)
      ->capture_default_str();
  std::vector<std::string> codec_words;
  for (const auto& codec : compress::codecs()) {
    if (!codec.low_rank) codec_words.emplace_back(codec.name);
  }
  verb.add_option("--codec", options.codec, "codec whose encoding time is measured as well")
      ->transform(one_of_words(codec_words))
      ->needs(live)
      ->capture_default_str();
  return live;
}

}  // namespace

void add_calibrate_options(CLI::App& verb, CalibrateOptions& options) {
  add_log_options(verb, options);
  add_device_options(verb, options);
  CLI::Option* steps = add_steps_options(verb, options);
  add_format(verb, options.format);
  add_html(verb, options.html);
  CLI::Option* live = add_link_options(verb, options);
  for (const char* other :
       {"logs", "--against", "--svg", "--line-rate", "--algorithm", "--factor-from", "--trace",
        "--throughput", "--workload", "--kernels", "--cluster"}) {
    live->excludes(verb.get_option(other));
    steps->excludes(verb.get_option(other));
  }
  live->excludes(steps);
}

}  // namespace syncline::cli
