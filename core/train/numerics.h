// The table of numerics: every method of every experiment trained with the same seeds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/input/document.h"
#include "core/run/jobs.h"
#include "core/train/experiment.h"
#include "core/train/seeds.h"

namespace syncline::input {
struct Document;
}

namespace syncline::train {

struct MethodResult {
  std::string name;
  std::vector<Trained> runs;  // by seed: 1, 2, ...
  // LocalSGD, samples a second, on the numerics' cluster; absent without one.
  std::optional<double> throughput;

  int diverged() const;
  // Over the seeds that did not diverge, which the caller sees to be all.
  SeedMean train_loss() const;
  SeedMean test_accuracy() const;
  double synchronisations() const;
  double sent_bytes() const;
};

struct ExperimentResult {
  Experiment experiment;
  std::vector<MethodResult> methods;

  // Of the training loss, over the first method; nothing where a seed of either diverged.
  std::optional<PairedDifference> over_first(const MethodResult& method) const;
};

struct Numerics {
  int seeds = 0;
  std::vector<ExperimentResult> experiments;
  // Where throughput is from; empty without.
  std::string workload;
  std::string cluster;
  bool calibrated = false;
  bool complete = true;  // false: interrupted, the methods whose seeds are all done
};

struct NumericsSettings {
  int seeds = 5;
  std::int64_t steps = 4000;
  int jobs = 1;
  bool curves = false;  // looks at the test set forty times in each training
  run::JobHooks hooks;
};

// The experiments of the table: DGC at dense momentum's best rate and at one that is too large, and
// LocalSGD; the latter two take half of the steps. Throughput is left out: see priced().
Numerics run_numerics(const NumericsSettings& settings);
Numerics run_numerics(const NumericsSettings& settings, std::vector<Experiment> experiments);

// With LocalSGD's throughput on the workload and cluster of a scenario. Throws InputError.
Numerics priced(Numerics numerics, const input::Document& document);

}  // namespace syncline::train
