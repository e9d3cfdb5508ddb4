// Chakra traces (.et): what ASTRA-sim simulates, written by chakra_converter from a linked PyTorch
// trace or from ASTRA-sim's old text. They tell compute nodes with their durations, collectives
// with their bytes, and what depends on what; gradients are dropped on the way. So each all-reduce
// or reduce-scatter becomes a step with one gradient a bucket, called "bucket 1", "bucket 2", ...:
// what a bucket would be made of, and so every other fusion, is unknown. When a bucket was ready
// follows from the durations along the dependencies (walk.h).
//
// A file is one step, unless it repeats itself: as many times as it has labels ProfilerStep#N, or
// word by word, as the converter of text writes several passes. Forward passes are known by names
// that end in FWD, as that converter gives them; elsewhere the backward pass holds them, up to the
// first bucket, and of several steps also the update before.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/job/format.h"
#include "core/job/observed.h"

namespace syncline::job::chakra {

bool recognises(const Head& head);

// One file a rank, NAME.RANK.et. Observed::timed is false where no compute node has a duration.
// Throws InputError, naming the file, for what is damaged, or has no collective that would carry
// gradients.
Observed read(const std::vector<std::string>& files);

// The same of one rank's bytes; `name` stands for the file in messages.
Observed observed_from_bytes(const std::string& name, std::string_view bytes, int rank = 0);

}  // namespace syncline::job::chakra
