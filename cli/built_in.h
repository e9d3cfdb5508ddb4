// Facts and texts that the build puts into the program.
#pragma once

#include <string>
#include <string_view>

namespace syncline::cli {

std::string version();
// Returns the text of `syncline --version`: version, commit, compiler, backends.
std::string build_facts();

std::string_view schema_text();    // scenarios/schema.json
std::string_view answers_text();   // reports/answers.json
std::string_view record_script();  // pytorch/syncline_record.py: a job records itself
std::string_view apply_script();   // pytorch/syncline_apply.py: without a strategy
std::string_view tuner_script();   // pytorch/syncline_tuner.py: a job tunes itself

}  // namespace syncline::cli
