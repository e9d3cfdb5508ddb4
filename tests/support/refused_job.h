// What a job's file is refused for: one line, which names the file; empty where it is read.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "core/error.h"
#include "core/job/format.h"

namespace syncline::test {

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

}  // namespace syncline::test
