// Activations and their slopes in double: the truth that the kernels' activations are held against.
#pragma once

namespace syncline {

enum class Nonlinearity { kNone, kRelu, kGelu };

double activated(Nonlinearity kind, double z);

// d activated / dz; relu's is 0 at 0.
double activation_slope(Nonlinearity kind, double z);

}  // namespace syncline
