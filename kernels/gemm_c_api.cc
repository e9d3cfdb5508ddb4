#include "kernels/gemm_c_api.h"

#include "kernels/c_status.h"
#include "kernels/gemm_epilogue.h"

using namespace syncline::kernels;

namespace {

cudaStream_t stream_of(void* stream) { return static_cast<cudaStream_t>(stream); }

// An unknown number passes through unchanged: the argument checks report it.
LinearShape shape_of(int type, int activation, int64_t rows, int64_t inputs, int64_t outputs) {
  return {static_cast<ElementType>(type), static_cast<Activation>(activation), rows, inputs,
          outputs};
}

GemmWorkspace workspace_of(void* memory, int64_t bytes) {
  return {memory, bytes < 0 ? 0 : static_cast<std::size_t>(bytes)};
}

}  // namespace

int64_t syncline_gemm_workspace_bytes(void) { return kGemmWorkspaceBytes; }

int64_t syncline_linear_aux_bytes(int type, int activation, int64_t rows, int64_t columns) {
  return static_cast<int64_t>(linear_aux_bytes(static_cast<ElementType>(type),
                                               static_cast<Activation>(activation), rows, columns));
}

int syncline_linear_forward(int type, int activation, int64_t rows, int64_t inputs, int64_t outputs,
                            const void* x, const void* w, const void* b, void* y, void* aux,
                            void* workspace, int64_t workspace_bytes, void* stream) {
  return c_status(linear_forward(shape_of(type, activation, rows, inputs, outputs),
                                 {x, w, b, y, aux}, workspace_of(workspace, workspace_bytes),
                                 stream_of(stream)));
}

int syncline_linear_input_gradient(int type, int activation, int64_t rows, int64_t inputs,
                                   int64_t outputs, const void* dy, const void* w, const void* aux,
                                   void* dz, void* db, void* workspace, int64_t workspace_bytes,
                                   void* stream) {
  return c_status(
      linear_input_gradient(shape_of(type, activation, rows, inputs, outputs), {dy, w, aux, dz, db},
                            workspace_of(workspace, workspace_bytes), stream_of(stream)));
}

int syncline_linear_weight_gradient(int type, int64_t rows, int64_t inputs, int64_t outputs,
                                    const void* dy, const void* x, void* dw, void* db,
                                    void* workspace, int64_t workspace_bytes, void* stream) {
  return c_status(linear_weight_gradient(shape_of(type, 0, rows, inputs, outputs), {dy, x, dw, db},
                                         workspace_of(workspace, workspace_bytes),
                                         stream_of(stream)));
}
