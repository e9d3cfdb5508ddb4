// Files that jobs left behind, what their readers say of them, and what becomes of them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/executor.h"
#include "formats/input/document.h"
#include "imports/format.h"
#include "studies/study/study.h"
#include "tests/support/dice.h"
#include "tests/support/expect.h"
#include "tests/support/scratch.h"
#include "tests/support/text.h"

namespace syncline::test {

// Traces of real jobs.
inline std::string kineto_sample(const std::string& name) {
  return SYNCLINE_SOURCE_DIR "/tests/data/kineto/" + name;
}
inline const std::string kResNet50 = kineto_sample("resnet50_ddp_2xA100_rank0.json.gz");
inline std::vector<std::string> dlrm_files(const std::vector<int>& ranks = {0, 1, 2, 3, 4, 5, 6,
                                                                            7}) {
  std::vector<std::string> files;
  for (const int rank : ranks) {
    files.push_back(kineto_sample("dlrm_8xV100_rank" + std::to_string(rank) + ".json.gz"));
  }
  return files;
}

// Why the files of a job are refused; empty where they are read.
inline std::string refusal_of_files(const std::vector<std::string>& files) {
  return input_error([&] { (void)job::read_job(files); });
}

// The same of one file: one line, which names it.
inline std::string refusal_of_job(const std::string& path) {
  const std::string what = refusal_of_files({path});
  if (what.empty()) return "";
  EXPECT_TRUE(what.starts_with(path + ": ")) << what;
  EXPECT_EQ(what.find('\n'), std::string::npos) << what;
  return what.substr(path.size() + 2);
}

class JobFiles : public testing::Test {
 protected:
  std::string written(const std::string& text, int rank = 0) {
    const std::string path = scratch_.path("rank" + std::to_string(rank) + ".json");
    write_text(path, text);
    return path;
  }
  std::string refusal(const std::string& text) { return refusal_of_job(written(text)); }
  void expect_refusal(const std::string& text, const std::string& part) {
    const std::string said = refusal(text);
    EXPECT_TRUE(contains(said, part)) << said;
  }

  Scratch scratch_;
};

inline bool warns(const job::Observed& observed, const std::string& part) {
  return any_contains(observed.warnings, part);
}

// The parts that a step is made of.
inline Seconds sum_of(const job::Step& step) {
  return step.broadcast + step.forward + step.backward + step.copy_out + step.exposed +
         step.stages + step.host_gap + step.update + step.between;
}

// Wherever it stands, which it does.
inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  std::size_t found = 0;
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size()), ++found) {
    text.replace(at, from.size(), to);
  }
  EXPECT_GT(found, 0u) << from;
  return text;
}

// With up to so many of its letters changed to some of these.
inline std::string damaged(std::string text, Dice& dice, int most,
                           std::initializer_list<char> letters) {
  for (int k = dice.between(1, most); k > 0; --k) {
    const auto at = static_cast<std::size_t>(dice.between(0, static_cast<int>(text.size()) - 1));
    text[at] = dice.pick<char>(letters);
  }
  return text;
}

inline Scenario scenario_in(const Json& json) {
  return input::parse_scenario(input::document_from_text("job.json", json.dump()));
}

inline measure::Report evaluated(const Json& scenario) {
  measure::StudyOptions study;
  study.make_executor = run::make_model_executor;
  return measure::run_study(input::document_from_text("job.json", scenario.dump()), study);
}

}  // namespace syncline::test
