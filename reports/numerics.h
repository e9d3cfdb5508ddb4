// The table of numerics for people (text, Markdown) and for programs (CSV, JSON).
#pragma once

#include <string>

#include "core/train/numerics.h"
#include "reports/answer.h"

namespace syncline::reports {

// CSV: one line a method and seed. JSON:
// {"seeds", "complete", "workload", "cluster", "experiments": [{"name", "workers", "batch",
// "steps", "learning_rate", "methods": [{"name", "train_loss", "train_loss_deviation",
// "test_accuracy", "over_first", "over_first_half_width", "within_noise", "diverged",
// "synchronisations", "sent_bytes", "throughput", "train_losses": [...]}]}]}. What does not apply
// is left out.
// The numerics must outlive the answer.
Answer answer_of(const train::Numerics& numerics);

// The curves of the test set as `--objective time_to_loss` takes them: strategy, seed, step, loss,
// accuracy. A method that several experiments have is named with its experiment from the second on.
CsvTable curves_of(const train::Numerics& numerics);

}  // namespace syncline::reports
