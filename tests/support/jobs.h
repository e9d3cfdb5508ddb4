// Files that jobs left behind, what their readers say of them, and what becomes of them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>

#include "core/error.h"
#include "core/input/document.h"
#include "core/job/format.h"
#include "core/measure/study.h"
#include "core/run/executor.h"
#include "tests/support/dice.h"
#include "tests/support/scratch.h"
#include "tests/support/text.h"

namespace syncline::test {

// What a job's file is refused for: one line, which names the file; empty where it is read.
inline std::string refusal_of_job(const std::string& path) {
  try {
    (void)job::read_job({path});
  } catch (const InputError& error) {
    const std::string what = error.what();
    EXPECT_TRUE(what.starts_with(path + ": ")) << what;
    EXPECT_EQ(what.find('\n'), std::string::npos) << what;
    return what.substr(path.size() + 2);
  }
  return "";
}

class JobFiles : public testing::Test {
 protected:
  std::string written(const std::string& text, int rank = 0) {
    const std::string path = scratch_.path("rank" + std::to_string(rank) + ".json");
    write_text(path, text);
    return path;
  }
  std::string refusal(const std::string& text) { return refusal_of_job(written(text)); }

  Scratch scratch_;
};

inline bool warns(const job::Observed& observed, const std::string& part) {
  return std::ranges::any_of(observed.warnings,
                             [&](const std::string& warning) { return contains(warning, part); });
}

// The parts that a step is made of.
inline Seconds sum_of(const job::Step& step) {
  return step.broadcast + step.forward + step.backward + step.copy_out + step.exposed +
         step.stages + step.host_gap + step.update;
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

inline measure::Report evaluated(const Json& scenario) {
  measure::StudyOptions study;
  study.make_executor = run::make_model_executor;
  return measure::run_study(input::document_from_text("job.json", scenario.dump()), study);
}

}  // namespace syncline::test
