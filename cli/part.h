// `run --part`: which part of a sweep this process is to price.
#pragma once

#include <string>

#include "core/measure/study.h"

namespace syncline::cli {

// "3/8", or "auto": what Open MPI (OMPI_COMM_WORLD_RANK, _SIZE) or a Slurm array
// (SLURM_ARRAY_TASK_ID, _MIN, _COUNT) says. Throws InputError for anything else.
measure::Part part_of(const std::string& text);

}  // namespace syncline::cli
