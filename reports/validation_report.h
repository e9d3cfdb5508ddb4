// Predicted and measured figures compared: the answers of `syncline validate` and `fidelity`.
#pragma once

#include <string>
#include <vector>

#include "core/cluster.h"
#include "formats/json/json.h"
#include "reports/answer.h"
#include "studies/fidelity/cases.h"
#include "studies/fidelity/fidelity.h"
#include "studies/fidelity/validation.h"

namespace syncline::reports {

Answer answer_of(const measure::Validation& validation);

// Returns latency and bandwidth of each tier, and the overheads of a collective and of encoding.
std::string links_in_words(const Cluster& cluster);

// Returns only the samples by which links were calibrated; JSON holds the cluster too.
Answer links_answer(const measure::Validation& validation, const Json& cluster);

// Returns the rows of several live runs in one table: predicted, then measured.
Answer answer_of(const std::vector<measure::LiveFile>& files);

// Returns the fidelity page: every published table with the errors of its calibrated and of its
// predicted rows, and one line overall (fidelity.cc). Tables are grouped by set, in the given
// order.
Answer answer_of(const std::vector<measure::FidelityTable>& tables);

// Published pairs of settings, and published memory (studies/fidelity/cases.h): cases_report.cc.
Answer answer_of(const std::vector<measure::PairCase>& pairs);
Answer answer_of(const std::vector<measure::MemoryCase>& cases);

// Returns charts of predicted over measured times, by row and by kind of operation.
std::vector<Illustration> figures_of(const measure::Validation& validation);
std::vector<Illustration> figures_of(const std::vector<measure::LiveFile>& files);

// Returns a chart of the errors of every table.
std::vector<Illustration> figures_of(const std::vector<measure::FidelityTable>& tables);

}  // namespace syncline::reports
