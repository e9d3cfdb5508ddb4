// The table of numerics for people (text, Markdown) and for programs (CSV, JSON).
#pragma once

#include <string>

#include "core/train/numerics.h"
#include "reports/page.h"

namespace syncline {

Page numerics_page(const Numerics& numerics);

// One line a method and seed.
std::string numerics_csv(const Numerics& numerics);

// {"seeds", "complete", "workload", "cluster", "experiments": [{"name", "workers", "batch",
// "steps", "learning_rate", "methods": [{"name", "train_loss", "train_loss_deviation",
// "test_accuracy", "over_first", "over_first_half_width", "within_noise", "diverged",
// "synchronisations", "sent_bytes", "throughput", "train_losses": [...]}]}]}. What does not apply
// is left out.
std::string numerics_json(const Numerics& numerics);

}  // namespace syncline
