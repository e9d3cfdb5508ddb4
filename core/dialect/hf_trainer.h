// Hugging Face's Trainer: what its TrainingArguments make of DistributedDataParallel, or the
// DeepSpeed configuration inside them. Keys that are about anything else are passed over.
// Source: transformers/trainer.py (the keyword arguments for DistributedDataParallel),
// transformers PR #14756 (ddp_bucket_cap_mb).
#pragma once

#include "core/dialect/dialect.h"

namespace syncline::dialect {

Dialect hf_trainer_dialect();

}  // namespace syncline::dialect
