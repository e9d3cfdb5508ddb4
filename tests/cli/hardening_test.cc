// What comes from outside and is not meant well, or not meant at all: no verb is ended by it, and
// every end is said.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/expect.h"
#include "tests/support/program.h"

namespace syncline::cli {
namespace {

namespace fs = std::filesystem;
using test::kFirst;
using test::Program;
using test::Ran;
using test::syncline_run;
using test::syncline_words;
using test::text_of;
using test::write_text;
using Words = std::vector<std::string>;

const std::string kLog = SYNCLINE_SOURCE_DIR
    "/scenarios/measured/nccl-tests/a100pcie-ib-gdr_allreduce_medium_n002x1.txt";

void expect_told(const Ran& ran, int code, const std::string& part) {
  EXPECT_EQ(ran.code, code) << "signal " << ran.signal << ": " << ran.err;
  EXPECT_TRUE(test::says(ran.err, part));
  EXPECT_LT(ran.err.size(), 1000u);
}

class Hardening : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return scratch_.path(name); }
  std::string named(const std::string& name) const {
    nlohmann::ordered_json root = nlohmann::ordered_json::parse(text_of(kFirst));
    root["strategies"][0]["name"] = name;
    root["workload"]["tensors"][0]["name"] = name;
    root["baseline"] = name;
    write_text(path("named.json"), root.dump());
    return path("named.json");
  }
  test::Scratch scratch_;
};

TEST_F(Hardening, ArgumentsThatAreNoTextAreWrongInput) {
  for (const Words& arguments : {Words{"calibrate", "logs", kLog, "--name", "\xff"},
                                 {"calibrate", "logs", path("log\xff.txt")},
                                 {"tune", kFirst, "--set", "strategies.0.name=\xff"},
                                 {"run", "\xed\xa0\x80"},
                                 {"\xff"}}) {
    expect_told(syncline_run(arguments), 2, "not UTF-8");
  }
}

TEST_F(Hardening, FoldersThatCannotBeWalkedAreNamed) {
  fs::create_directories(path("published"));
  fs::create_symlink("zz.json", path("published/zz.json"));
  expect_told(syncline_run({"fidelity", "--from", scratch_.folder()}), 2, "published/zz.json: ");
  fs::remove_all(path("published"));
  fs::create_symlink("published", path("published"));
  expect_told(syncline_run({"fidelity", "--from", scratch_.folder()}), 2, "published");
}

TEST_F(Hardening, OutOfMemoryIsAFailingMachine) {
#ifdef SYNCLINE_SANITIZED
  GTEST_SKIP() << "the sanitizer's own memory is more than the limit";
#endif
  std::string text = "{\"a\": [[]";
  for (int i = 0; i < 4'000'000; ++i) text += ",[]";
  write_text(path("large.json"), text + "]}");
  const Ran ran = Program(syncline_words({"check", path("large.json")}), {}, [] {
                    const rlimit limit{300u << 20, 300u << 20};
                    ::setrlimit(RLIMIT_AS, &limit);
                  }).wait();
  expect_told(ran, 3, "out of memory");
}

TEST_F(Hardening, AnAnswerIsPrintedEvenIfAFileFails) {
  for (const Words& arguments : {Words{"run", kFirst, "--trace", "/dev/full"},
                                 {"tune", kFirst, "--budget", "20", "--svg", "/dev/full"},
                                 {"calibrate", "logs", kLog, "-o", "/dev/full"}}) {
    const Ran ran = syncline_run(arguments);
    expect_told(ran, 3, "/dev/full");
    EXPECT_GT(ran.out.size(), 200u) << arguments.front();
  }
}

TEST_F(Hardening, AnUnwritableFileIsReportedBeforeTheWork) {
  for (const Words& arguments : {Words{"run", kFirst, "--trace"},
                                 {"tune", kFirst, "--svg"},
                                 {"tune", kFirst, "--csv"},
                                 {"calibrate", "logs", kLog, "-o"}}) {
    auto whole = arguments;
    whole.push_back("/nonexistent/x");
    const Ran ran = syncline_run(whole);
    expect_told(ran, 2, "/nonexistent/x: no such folder");
    EXPECT_EQ(ran.out, "");
  }
}

// Ten mistakes of any length are told in what a person reads.
TEST_F(Hardening, ManyMistakesAreCutTogether) {
  nlohmann::ordered_json root = nlohmann::ordered_json::parse(text_of(kFirst));
  for (int i = 0; i < 1000; ++i) root[std::string(500, 'k') + std::to_string(i)] = 1;
  write_text(path("x.json"), root.dump());
  const Ran ran = syncline_run({"run", path("x.json")});
  EXPECT_EQ(ran.code, 2) << ran.err;
  EXPECT_TRUE(test::says(ran.err, "and 990 more"));
  EXPECT_LT(ran.err.size(), 2500u);
}

TEST_F(Hardening, NoOutputReplacesAnInput) {
  const std::string scenario = path("in.json"), log = path("log.txt");
  write_text(scenario, text_of(kFirst));
  write_text(log, text_of(kLog));
  fs::create_symlink("in.json", path("link"));
  for (const Words& words : {Words{"run", scenario, "--html", scenario},
                             {"run", scenario, "--trace", path("link")},
                             {"tune", scenario, "--csv", scenario},
                             {"explain", scenario, "--html", scenario},
                             {"emit", scenario, "--dialect", "pytorch", "--python", scenario},
                             {"calibrate", "logs", log, "-o", log},
                             {"compare", "true", "cat " + log, "--html", log},
                             {"capture", "-o", log, "--", "sh", log}}) {
    expect_told(syncline_run(words), 2, "was read, and would be replaced");
  }
  EXPECT_EQ(text_of(scenario), text_of(kFirst));
  EXPECT_EQ(text_of(log), text_of(kLog));
  expect_told(syncline_run({"tune", scenario, "--csv", path("x"), "--html", path("x")}), 2,
              "two outputs go there");
  EXPECT_FALSE(fs::exists(path("x")));
}

TEST_F(Hardening, SpecialFilesAreWrittenInto) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  const int reader = ::open(path("pipe").c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  EXPECT_EQ(syncline_run({"tune", kFirst, "--budget", "20", "--csv", path("pipe")}).code, 0);
  char block[64] = {};
  EXPECT_GT(::read(reader, block, sizeof block - 1), 10);
  EXPECT_TRUE(std::string(block).starts_with("bytes,step_time_s")) << block;
  ::close(reader);
  const Ran ran = syncline_run({"tune", kFirst, "--budget", "20", "--csv", "/dev/stdout"});
  EXPECT_TRUE(ran.out.starts_with("bytes,step_time_s")) << ran.out.substr(0, 100);
  EXPECT_TRUE(test::says(ran.out, "My first scenario")) << "the answer stands behind it";
}

TEST_F(Hardening, AClosedOutputIsAFailure) {
  for (const Words& arguments : {Words{"list"}, {"run", kFirst}, {"record"}}) {
    const Ran ran = Program(syncline_words(arguments), {}, [] { ::close(1); }).wait();
    expect_told(ran, 3, "standard output");
    EXPECT_EQ(Program(syncline_words(arguments), {}, [] { ::close(0), ::close(1), ::close(2); })
                  .wait()
                  .code,
              3);
  }
}

TEST_F(Hardening, AReaderWhoHasGoneIsNoError) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  Program program(syncline_words({"list"}), {}, [&] {
    ::signal(SIGPIPE, SIG_DFL);
    ::close(ends[0]);
    ::dup2(ends[1], 1);
  });
  ::close(ends[0]);
  ::close(ends[1]);
  const auto ran = program.wait();
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.err, "");
}

TEST_F(Hardening, OptionsAreNumbers) {
  for (const Words& arguments : {Words{"validate", kFirst, "--ranks", "2", "--timeout"},
                                 {"tune", kFirst, "--live", "emulated", "--noise"},
                                 {"tune", kFirst, "--live", "emulated", "--pace"},
                                 {"calibrate", "logs", kLog, "--workload", "x", "--throughput"},
                                 {"calibrate", "logs", kLog, "--line-rate"},
                                 {"lab", "--rate", "1gbit", "--patience"},
                                 {"lab", "--rate", "1gbit", "--grace"}}) {
    for (const char* value : {"nan", "-nan", "NAN", "inf", "1e999", "-1e300"}) {
      auto whole = arguments;
      whole.back() += "=" + std::string(value);
      if (whole.front() == "lab") whole.insert(whole.end(), {"--", "true"});
      expect_told(syncline_run(whole), 2, value);
    }
  }
}

// Terminals obey control characters; names may hold any.
TEST_F(Hardening, NoNameCommandsTheTerminal) {
  const std::string scenario = named(
      "a\x1b[31m\a\r\xc2\x9b"
      "31mz");
  for (const char* format : {"table", "markdown", "csv"}) {
    for (const char* verb : {"run", "plan", "buckets", "explain", "check", "tune"}) {
      std::vector<std::string> words{verb, scenario, "--format", format};
      if (words.front() == "tune") words.insert(words.end(), {"--budget", "20"});
      const Ran ran = syncline_run(words);
      EXPECT_EQ(ran.code, 0) << verb << ran.err;
      for (const char* bad : {"\x1b", "\a", "\xc2\x9b", "a\r"}) {
        EXPECT_TRUE(test::lacks(ran.out + ran.err, bad)) << verb << " " << format;
      }
    }
  }
  write_text(path("key.json"), "{\"\\u001b[2Jname\": 1}");
  EXPECT_TRUE(test::lacks(syncline_run({"check", path("key.json")}).err, "\x1b"));
}

TEST_F(Hardening, TheProgramIsBuiltHardened) {
#if defined(SYNCLINE_SANITIZED) || !defined(__OPTIMIZE__)
  GTEST_SKIP() << "not a build that is given away";
#endif
  const auto readelf = [](const std::string& what) {
    const Ran ran = Program({"readelf", "-W", what, SYNCLINE_BINARY}, {{"LC_ALL", "C"}}).wait();
    EXPECT_EQ(ran.code, 0) << ran.err;
    return ran.out;
  };
  EXPECT_TRUE(test::says(readelf("--file-header"), "DYN (")) << "no fixed address";
  const std::string segments = readelf("--program-headers");
  EXPECT_TRUE(test::says(segments, "GNU_RELRO"));
  const std::string stack = segments.substr(segments.find("GNU_STACK"));
  EXPECT_TRUE(test::lacks(stack.substr(0, stack.find('\n')), "RWE"));
  EXPECT_TRUE(test::says(readelf("--dynamic"), "BIND_NOW"));
  const std::string symbols = readelf("--dyn-syms");
  EXPECT_TRUE(test::says(symbols, "__stack_chk_fail"));
  EXPECT_TRUE(test::says(symbols, "_chk@")) << "memcpy and the like that know their bounds";
}

// Nobody writes into it, and nobody waits for that.
TEST_F(Hardening, APipeIsNoFileOfAJob) {
  ASSERT_EQ(::mkfifo(path("page.html").c_str(), 0600), 0);
  const std::string pipe = path("page.html");
  for (const Words& arguments :
       {Words{"import", pipe}, {"init", pipe, "--node", "dgx-h100"}, {"import", "/dev/zero"}}) {
    expect_told(syncline_run(arguments), 2, "a pipe or a device");
  }
}

// Of a file without a line's end, and of one of empty lines, only the beginning is looked at.
TEST_F(Hardening, AFileThatIsTooLargeIsKnownByItsSize) {
  write_text(path("zeros"), "");
  fs::resize_file(path("zeros"), std::uintmax_t{1} << 40);
  expect_told(syncline_run({"calibrate", "logs", path("zeros")}), 2, "expected at most 64 MiB");
}

TEST_F(Hardening, ControlCharactersAreNotPrintedAsTheyAre) {
  write_text(path("curves.csv"), "strategy,step,loss\na,\xff\xfe,1\n");
  const Ran ran = syncline_run({"tune", kFirst, "--objective", "time_to_loss", "--target", "1",
                                "--curves", path("curves.csv")});
  expect_told(ran, 2, "'\xef\xbf\xbd\xef\xbf\xbd'");
}

TEST_F(Hardening, APathIsCutAndTheReasonStays) {
  std::string longest = "/nowhere";
  while (longest.size() < 4000) longest += "/folder";
  for (const Words& arguments : {Words{"run", longest},
                                 {"import", longest},
                                 {"calibrate", "logs", longest},
                                 {"run", kFirst, "--trace", longest}}) {
    const Ran ran = syncline_run(arguments);
    expect_told(ran, 2, ": ");
    EXPECT_FALSE(ran.err.ends_with("...\n")) << ran.err;
    EXPECT_TRUE(test::says(ran.err, "no such f"));
  }
}

TEST_F(Hardening, EchoedInputIsShortened) {
  const std::string big(100000, 'k');
  auto root = nlohmann::ordered_json::parse(text_of(kFirst));
  root[big] = 1;
  write_text(path("key.json"), root.dump());
  write_text(path("twice.json"), "{\"" + big + "\": 1, \"" + big + "\": 1}");
  for (const Words& arguments : {Words{"check", path("key.json")},
                                 {"check", path("twice.json")},
                                 {"plan", kFirst, "--strategy", big},
                                 {"tune", kFirst, "--set", big},
                                 {"tune", kFirst, "--set", big + "=1"},
                                 {"validate", kFirst, "--only", big},
                                 {"run", kFirst, "--format", big},
                                 {"run", kFirst, "--" + big},
                                 {"run", kFirst, big},
                                 {big}}) {
    expect_told(syncline_run(arguments), 2, "kkk...");
  }
}

}  // namespace
}  // namespace syncline::cli
