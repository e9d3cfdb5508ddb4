// The tuner plugin, loaded as NCCL loads it: by dlopen, the symbol of the v4 interface, a cost
// table to edit and a log to write to.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <filesystem>

#include "tests/support/scratch.h"
#include "tests/support/text.h"

namespace syncline::apply {
namespace {

// As NCCL 2.24 to 2.30 declare it.
using Logger = void (*)(int level, unsigned long flags, const char* file, int line,
                        const char* format, ...);
struct TunerV4 {
  const char* name;
  int (*init)(std::size_t ranks, std::size_t nodes, Logger log, void** context);
  int (*get_coll_info)(void* context, int collective, std::size_t bytes, int pipe_operations,
                       float** costs, int algorithms, int protocols, int registered, int* channels);
  int (*destroy)(void* context);
};

constexpr int kAllGather = 2;
constexpr int kAllReduce = 4;
constexpr int kWarning = 2;
constexpr std::size_t kAlgorithms = 7;
constexpr std::size_t kProtocols = 3;
using Costs = std::array<std::array<float, kProtocols>, kAlgorithms>;

// The build puts it beside the program.
const std::string kPlugin =
    (std::filesystem::path(SYNCLINE_BINARY).parent_path() / "libsyncline_nccl_tuner.so").string();

std::string warnings;

void log_line(int level, unsigned long, const char*, int, const char* format, ...) {
  std::array<char, 1000> line{};
  va_list values;
  va_start(values, format);
  std::vsnprintf(line.data(), line.size(), format, values);
  va_end(values);
  if (level == kWarning) warnings += std::string(line.data()) + "\n";
}

// NCCL's part: trees cost 5, 6, 7, rings 8, 9, 10; it knows nothing else here.
struct Chosen {
  std::size_t algorithm = 0;
  std::size_t protocol = 0;
  int channels = 0;

  bool operator==(const Chosen&) const = default;
};
constexpr Chosen kOwn{0, 0, 0};  // NCCL's, with as many channels as it likes
constexpr std::size_t kTree = 0;
constexpr std::size_t kRing = 1;
constexpr std::size_t kSimple = 2;

class Loaded {
 public:
  Loaded(const std::string& table, std::size_t ranks, std::size_t nodes) {
    warnings.clear();
    test::write_text(scratch_.path("table.csv"), table);
    ::setenv("SYNCLINE_NCCL_TABLE", scratch_.path("table.csv").c_str(), 1);
    library_ = ::dlopen(kPlugin.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) throw std::runtime_error(::dlerror());
    tuner_ = static_cast<const TunerV4*>(::dlsym(library_, "ncclTunerPlugin_v4"));
    EXPECT_EQ(tuner_->init(ranks, nodes, log_line, &context_), 0);
  }
  ~Loaded() {
    EXPECT_EQ(tuner_->destroy(context_), 0);
    ::dlclose(library_);
    ::unsetenv("SYNCLINE_NCCL_TABLE");
  }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;

  Chosen chosen(int collective, std::size_t bytes) {
    Costs costs;
    for (auto& row : costs) row.fill(-1);
    costs[kTree] = {5, 6, 7};
    costs[kRing] = {8, 9, 10};
    Chosen chosen;
    EXPECT_EQ(tuner_->get_coll_info(context_, collective, bytes, 1,
                                    reinterpret_cast<float**>(costs.data()), kAlgorithms,
                                    kProtocols, 0, &chosen.channels),
              0);
    float least = -1;
    for (std::size_t a = 0; a < kAlgorithms; ++a) {
      for (std::size_t p = 0; p < kProtocols; ++p) {
        const float cost = costs[a][p];
        if (cost < 0 || (least >= 0 && cost >= least)) continue;
        least = cost;
        chosen.algorithm = a;
        chosen.protocol = p;
      }
    }
    EXPECT_GE(least, 0) << "nothing is left to run";
    return chosen;
  }

 private:
  test::Scratch scratch_;
  void* library_ = nullptr;
  const TunerV4* tuner_ = nullptr;
  void* context_ = nullptr;
};

TEST(NcclTuner, TakesTheFirstLineThatFits) {
  Loaded tuner(
      "# sizes\n"
      "allreduce,0,65536,ring,any,-1,-1,-1\n\n"
      "allreduce, 65537, 1048576, tree, simple, 4, -1, -1  # with channels\n"
      "allreduce,0,-1,ring,simple,-1,2,-1\n"
      "allgather,0,-1,ring,ll128,8,-1,16\n",
      16, 2);
  EXPECT_EQ(tuner.chosen(kAllReduce, 4), (Chosen{kRing, 0, 0}));
  EXPECT_EQ(tuner.chosen(kAllReduce, 65536), (Chosen{kRing, 0, 0}));
  EXPECT_EQ(tuner.chosen(kAllReduce, 65537), (Chosen{kTree, kSimple, 4}));
  EXPECT_EQ(tuner.chosen(kAllReduce, std::size_t{1} << 40), (Chosen{kRing, kSimple, 0}));
  EXPECT_EQ(tuner.chosen(kAllGather, 1), (Chosen{kRing, 1, 8}));
  EXPECT_EQ(warnings, "");
}

TEST(NcclTuner, LeavesCallsWithoutALineToNccl) {
  Loaded tuner(
      "allreduce,100,200,ring,simple,2,-1,-1\n"
      "allreduce,0,-1,ring,simple,2,4,-1\n"
      "allreduce,0,-1,ring,simple,2,-1,8\n",
      16, 2);
  EXPECT_EQ(tuner.chosen(kAllReduce, 99), kOwn);
  EXPECT_EQ(tuner.chosen(kAllReduce, 201), kOwn);
  EXPECT_EQ(tuner.chosen(kAllGather, 150), kOwn);
  EXPECT_EQ(tuner.chosen(kAllReduce, 150), (Chosen{kRing, kSimple, 2}));
}

// What NCCL cannot run here is not brought back.
TEST(NcclTuner, DoesNotAskForWhatIsForbidden) {
  Loaded tuner("allreduce,0,-1,nvls,simple,2,-1,-1\nallreduce,0,-1,ring,any,2,-1,-1\n", 8, 1);
  EXPECT_EQ(tuner.chosen(kAllReduce, 1 << 20), kOwn);
}

TEST(NcclTuner, SaysAWrongLineAndChangesNothing) {
  for (const char* line :
       {"allreduce,0,-1,ring,simple,2,-1", "all_reduce,0,-1,ring,simple,2,-1,-1",
        "allreduce,0,-1,star,simple,2,-1,-1", "allreduce,0,-1,ring,fast,2,-1,-1",
        "allreduce,zero,-1,ring,simple,2,-1,-1", "allreduce,0,1x,ring,simple,2,-1,-1",
        "allreduce,0,-2,ring,simple,2,-1,-1", "allreduce,0,-1,ring,simple,2,-1,-1,7"}) {
    Loaded tuner("allreduce,0,-1,ring,simple,2,-1,-1\n" + std::string(line) + "\n", 8, 1);
    EXPECT_TRUE(test::contains(warnings, "table.csv:2 is no line of a table: ")) << warnings;
    EXPECT_EQ(tuner.chosen(kAllReduce, 1 << 20), kOwn) << line;
  }
}

TEST(NcclTuner, SaysWhenThereIsNoTable) {
  {
    Loaded tuner("", 8, 1);
    EXPECT_EQ(tuner.chosen(kAllReduce, 1), kOwn);
    EXPECT_EQ(warnings, "");
  }
  warnings.clear();
  void* library = ::dlopen(kPlugin.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  const auto* tuner = static_cast<const TunerV4*>(::dlsym(library, "ncclTunerPlugin_v4"));
  void* context = nullptr;
  EXPECT_EQ(tuner->init(8, 1, log_line, &context), 0);
  EXPECT_TRUE(test::contains(warnings, "SYNCLINE_NCCL_TABLE names no table")) << warnings;
  tuner->destroy(context);
  ::setenv("SYNCLINE_NCCL_TABLE", "/nowhere/table.csv", 1);
  EXPECT_EQ(tuner->init(8, 1, log_line, &context), 0);
  EXPECT_TRUE(test::contains(warnings, "/nowhere/table.csv cannot be read")) << warnings;
  tuner->destroy(context);
  ::unsetenv("SYNCLINE_NCCL_TABLE");
  ::dlclose(library);
}

}  // namespace
}  // namespace syncline::apply
