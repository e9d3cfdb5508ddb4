// Products with cublasLt's epilogues on a cublasLt that is emulated in host memory: every check
// that a GPU runs, and that the heuristics are asked once for each product.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "kernels/check/check.h"
#include "kernels/gemm_epilogue.h"
#include "tests/kernels/emulated/cublas_lt.h"

namespace syncline::kernels {

namespace {

constexpr std::size_t kRows = 9;
constexpr std::size_t kInputs = 5;
constexpr std::size_t kHidden = 131;

struct alignas(256) Workspace {
  std::byte bytes[1024];
};

class EmulatedGemm : public testing::Test {
 protected:
  std::vector<float> x_ = random_elements<float>(kRows * kInputs, 1);
  std::vector<float> w_ = random_elements<float>(kHidden * kInputs, 2);
  std::vector<float> b_ = random_elements<float>(kHidden, 3);
  std::vector<float> h_ = std::vector<float>(kRows * kHidden);
  Workspace memory_;
  GemmWorkspace workspace_{&memory_, sizeof memory_};
};

TEST_F(EmulatedGemm, EveryCheckPasses) {
  Checks checks(false);
  check_gemm(checks);
  EXPECT_GE(checks.cases().size(), 200U);
  for (const CheckedCase& checked : checks.cases()) {
    EXPECT_TRUE(checked.passed) << checked.name << ": " << checked.detail;
  }
}

TEST_F(EmulatedGemm, AChoiceIsKeptPerDeviceShapeAndWorkspace) {
  LinearShape shape{ElementType::kFp32, Activation::kIdentity, 3, kInputs, kHidden};
  const auto asked = [&] {
    const int before = emulated.asked;
    const auto status = linear_forward(shape, {x_.data(), w_.data(), b_.data(), h_.data(), nullptr},
                                       workspace_, nullptr);
    EXPECT_EQ(status.text, "");
    return emulated.asked - before;
  };
  EXPECT_EQ(asked(), 1);
  EXPECT_EQ(emulated.workspace_limit, sizeof memory_);
  EXPECT_EQ(asked(), 0);
  shape.rows = 4;
  EXPECT_EQ(asked(), 1);
  shape.activation = Activation::kRelu;
  EXPECT_EQ(asked(), 1);
  workspace_ = {};
  EXPECT_EQ(asked(), 1);
  EXPECT_EQ(emulated.workspace_limit, 0U);
  cudaSetDevice(1);
  EXPECT_EQ(asked(), 1);
  EXPECT_EQ(asked(), 0);
  cudaSetDevice(0);
  EXPECT_EQ(asked(), 0);
}

TEST_F(EmulatedGemm, AMissingCublasLtKernelNamesTheCall) {
  const LinearShape shape{ElementType::kFp32, Activation::kRelu, 2, kInputs, kHidden};
  const LinearForward arrays{x_.data(), w_.data(), b_.data(), h_.data(), nullptr};
  for (const bool not_supported : {false, true}) {
    emulated.has_kernels = false;
    emulated.says_not_supported = not_supported;
    const auto status = linear_forward(shape, arrays, workspace_, nullptr);
    emulated.has_kernels = true;
    EXPECT_EQ(status.text,
              "cublasLtMatmulAlgoGetHeuristic(D 131 x 2, A 5 x 131, B 5 x 2, epilogue RELU_BIAS): "
              "no kernel of cublasLt does this within 1024 bytes of workspace");
  }
  EXPECT_TRUE(linear_forward(shape, arrays, workspace_, nullptr).ok());  // a failure is not kept
  // What a call refuses comes back with its name.
  emulated.refused = CUDA_R_16BF;
  LinearShape other = shape;
  other.type = ElementType::kBf16;
  EXPECT_EQ(linear_forward(other, arrays, workspace_, nullptr).text,
            "cublasLtMatrixLayoutCreate: invalid value");
  emulated.refused = CUDA_R_64F;
}

}  // namespace
}  // namespace syncline::kernels
