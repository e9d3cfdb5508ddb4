// What was predicted beside what was measured: the answers of `syncline validate` and `fidelity`.
#pragma once

#include <string>
#include <vector>

#include "core/cluster.h"
#include "formats/json/json.h"
#include "reports/answer.h"
#include "studies/fidelity/fidelity.h"
#include "studies/fidelity/validation.h"

namespace syncline::reports {

Answer answer_of(const measure::Validation& validation);

// Latency and bandwidth of each tier, and what a collective and encoding cost besides.
std::string links_in_words(const Cluster& cluster);

// Only the samples by which links were calibrated; JSON holds the cluster too.
Answer links_answer(const measure::Validation& validation, const Json& cluster);

// The rows of several live runs in one table: what was predicted, then measured.
Answer answer_of(const std::vector<measure::LiveFile>& files);

// Returns the fidelity page: every published table with the errors of its calibrated and of its
// predicted rows, and one line overall (fidelity.cc). Tables are grouped by set, in the order
// given.
Answer answer_of(const std::vector<measure::FidelityTable>& tables);

// Measured against predicted, row by row and by kind of operation.
std::vector<Illustration> figures_of(const measure::Validation& validation);
std::vector<Illustration> figures_of(const std::vector<measure::LiveFile>& files);

// Returns the errors of every table.
std::vector<Illustration> figures_of(const std::vector<measure::FidelityTable>& tables);

}  // namespace syncline::reports
