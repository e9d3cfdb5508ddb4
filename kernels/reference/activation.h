// Activations and their slopes in double: the truth that the kernels' activations are held against.
#pragma once

namespace syncline::kernels {

// kGeluTanh: gelu with tanh in place of the normal distribution (Hendrycks and Gimpel 2016), which
// is what cublasLt's epilogues compute.
enum class Nonlinearity { kNone, kRelu, kGelu, kGeluTanh };

double activated(Nonlinearity kind, double z);

// d activated / dz; relu's is 0 at 0.
double activation_slope(Nonlinearity kind, double z);

}  // namespace syncline::kernels
