// Every row that main hands in.
#pragma once

namespace syncline::cli {

// Sets the tables of frameworks, predictors and backends, and the function for --objective.
void hand_in_all();

}  // namespace syncline::cli
