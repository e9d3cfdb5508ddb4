// The formats that a job can be imported from. Each lives in a folder of its own and is one row.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "imports/observed.h"

namespace syncline::job {

// The beginning of a file, by which formats recognise it.
struct Head {
  std::string path;  // as the user named it
  bool directory = false;
  std::string bytes;  // the first 64 KiB, unpacked if gzip packed them
};

struct ImportFormat {
  std::string_view name;     // "kineto"
  std::string_view summary;  // one line for `syncline list`
  bool (*recognises)(const Head& head);
  // Reads all files of one job (one in all, or one per rank). Throws InputError for damaged or
  // foreign files and for too few facts, with the file and how to record it instead.
  Observed (*read)(const std::vector<std::string>& files);
};

std::span<const ImportFormat> formats();

namespace kineto {

// PyTorch's Kineto traces, as torch.profiler exports them: one file a rank.
extern const ImportFormat kFormat;

}  // namespace kineto

namespace models {

// The header of a .safetensors file: eight bytes of length, then JSON with each tensor's format and
// shape (https://github.com/huggingface/safetensors). The weights after it are never read. One
// file, or all parts of one model. Tensors become gradients; statistics, masks, positions and
// integers are left out. FLOPs are those of the weights' products with kTokens tokens, for one
// sample. Headers that are too long, damaged, or lie about their sizes are refused.
extern const ImportFormat kSafetensors;
inline constexpr std::int64_t kTokens = 1024;

// A list of parameters as torch prints them (kPrintTensors), a line each or JSON, in the order of
// use. Parameters without requires_grad have FLOPs and no gradient.
extern const ImportFormat kTensorList;
inline constexpr std::string_view kPrintTensors =
    "for n, p in model.named_parameters(): print(n, tuple(p.shape), p.dtype, p.requires_grad)";

// Returns true if a model uses parameter `first` before `second`, as far as names tell: files list
// them by name. Embeddings come before layers, layers go by number, attention comes before the
// feed-forward half, heads come last; otherwise by the alphabet.
bool precedes(std::string_view first, std::string_view second);

// Hugging Face's config.json: the sizes of a model, from which its operators are generated if it is
// of a family of catalogue/architectures, else its parameters alone. Other types are refused by
// their names, as are sizes that are missing or make no sense.
extern const ImportFormat kConfig;

}  // namespace models

// Reads the files by the format of the first; the others must be of the same. Throws InputError
// with the names of known formats if none recognises it.
Observed read_job(const std::vector<std::string>& files);

}  // namespace syncline::job
