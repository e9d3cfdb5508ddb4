#include "imports/format.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "formats/json/reader.h"
#include "formats/json/text.h"
#include "imports/models/parameters.h"

namespace syncline::job::models {
namespace {

constexpr std::uint64_t kLongestHeader = 100'000'000;  // the format's own limit
constexpr std::size_t kLengthBytes = 8;

std::uint64_t length_in(std::string_view bytes) {
  std::uint64_t length = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) {
    length = length << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return length;
}

std::string header_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::array<char, kLengthBytes> head{};
  if (!in.read(head.data(), head.size()))
    throw InputError(file + ": shorter than its length field");
  const std::uint64_t length = length_in({head.data(), head.size()});
  std::error_code error;
  const auto size = std::filesystem::file_size(file, error);
  if (length > kLongestHeader || error || length > size - kLengthBytes) {
    throw InputError(file + ": says that its header has " + std::to_string(length) +
                     " bytes: damaged, or cut off");
  }
  std::string header(static_cast<std::size_t>(length), '\0');
  if (!in.read(header.data(), static_cast<std::streamsize>(length))) {
    throw InputError(file + ": ends inside its header");
  }
  return header;
}

std::string dtype_of(const std::string& word) {
  if (word == "F64") return "fp64";
  if (word == "F32") return "fp32";
  if (word == "F16") return "fp16";
  return word == "BF16" ? "bf16" : "";
}

Parameter read_tensor(Reader reader, const std::string& name) {
  Parameter saved;
  saved.name = name;
  saved.dtype = dtype_of(reader.text("dtype"));
  const Json& extents = reader.array("shape");
  if (extents.size() > kMaxDimensions) reader.fail("shape", "more than 64 dimensions");
  for (const Json& extent : extents) {
    saved.shape.push_back(
        checked_integer(extent, 0, kMaxElements, reader.file(), reader.place_of("shape")));
  }
  const auto elements = elements_of(saved.shape);
  if (!elements) reader.fail("shape", "more than 2^40 elements");
  saved.elements = static_cast<double>(*elements);
  const Json& offsets = reader.array("data_offsets");
  if (offsets.size() != 2 || !offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned() ||
      offsets[0] > offsets[1]) {
    reader.fail("data_offsets", "expected where it begins and where it ends");
  }
  const std::uint64_t bytes = offsets[1].get<std::uint64_t>() - offsets[0].get<std::uint64_t>();
  const std::uint64_t each = saved.dtype == "fp64" ? 8 : saved.dtype == "fp32" ? 4 : 2;
  const std::uint64_t needed = static_cast<std::uint64_t>(*elements) * each;
  if (!saved.dtype.empty() && bytes != needed) {
    reader.fail("data_offsets", "span " + std::to_string(bytes) + " bytes, its shape needs " +
                                    std::to_string(needed));
  }
  return saved;
}

std::vector<std::string_view> parts_of(std::string_view name) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto end = name.find('.');
    parts.push_back(name.substr(0, end));
    if (end == std::string_view::npos) return parts;
    name.remove_prefix(end + 1);
  }
}

// Parts of names in the order of use. A part takes the rank of the first row that it contains, else
// `kLayers`.
constexpr int kLayers = 50;
constexpr std::pair<int, std::string_view> kRanks[] = {
    {0, "wte embed_tokens word_emb cls_token class_token"},
    {1, "patch_emb conv_proj"},
    {2, "wpe pos_emb position_emb"},
    {3, "token_type"},
    {4, "embed"},
    {5, "conv1"},
    {6, "bn1"},
    {10, "input_layernorm layernorm_before ln_1 norm1"},
    {30, "post_attention_layernorm layernorm_after ln_2 norm2"},
    {31, "conv2"},
    {32, "bn2"},
    {33, "conv3"},
    {34, "bn3"},
    {20, "q_proj query"},
    {21, "k_proj key"},
    {22, "v_proj value c_attn in_proj"},
    {23, "q_norm"},
    {24, "k_norm self"},
    {25, "attn attention"},
    {40, "gate_proj"},
    {41, "up_proj c_fc intermediate"},
    {45, "mlp"},
    {60, "downsample"},
    {70, "ln_f norm"},
    {80, "pooler"},
    {90, "head classifier fc"},
};

int rank_of(std::string_view part) {
  for (const auto& [rank, words] : kRanks) {
    for (std::string_view rest = words; !rest.empty();) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      if (part.find(rest.substr(0, end)) != std::string_view::npos) return rank;
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return kLayers;
}

bool is_number(std::string_view part) {
  return !part.empty() && std::all_of(part.begin(), part.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
  });
}

// Returns a number's digits without leading zeros. Shorter ones are smaller, at any length.
std::string_view digits_of(std::string_view number) {
  number.remove_prefix(std::min(number.find_first_not_of('0'), number.size()));
  return number;
}

// Returns a key that sorts weight before bias, layer 9 before layer 10, numbers before words.
auto place_of(std::string_view part) {
  const int kind = part == "weight" ? 0 : part == "bias" ? 1 : is_number(part) ? 2 : 3;
  const std::string_view digits = kind == 2 ? digits_of(part) : std::string_view();
  return std::tuple(rank_of(part), kind, digits.size(), digits, part);
}

// Orders tensors by the parts of their names; the first part that differs decides. REQUIRES: the
// name outlives it.
class UsePlace {
 public:
  explicit UsePlace(std::string_view name) {
    for (const std::string_view part : parts_of(name)) parts_.emplace_back(part, place_of(part));
  }
  bool before(const UsePlace& other) const {
    for (std::size_t i = 0; i < std::min(parts_.size(), other.parts_.size()); ++i) {
      if (parts_[i].first == other.parts_[i].first) continue;
      return parts_[i].second < other.parts_[i].second;
    }
    return parts_.size() < other.parts_.size();
  }

 private:
  std::vector<std::pair<std::string_view, decltype(place_of({}))>> parts_;
};

// Sorts parameters by use. Their places are found once, not at each comparison.
Parameters in_order_of_use(const Parameters& saved) {
  std::vector<std::pair<UsePlace, const Parameter*>> order;
  order.reserve(saved.size());
  for (const Parameter& each : saved) order.emplace_back(UsePlace(each.name), &each);
  std::sort(order.begin(), order.end(),
            [](const auto& a, const auto& b) { return a.first.before(b.first); });
  Parameters sorted;
  for (const auto& [place, each] : order) sorted.push_back(*each);
  return sorted;
}

// Returns the tensors that have gradients, in the order of use.
Parameters parameters_of(const std::vector<std::string>& files) {
  Parameters parameters;
  std::set<std::string> names;
  bool integers = false;
  for (const std::string& file : files) {
    const Json header = parse_json_text(file, header_of(file));
    for (const auto& [name, tensor] : header.items()) {
      if (name == "__metadata__") continue;
      Parameter saved = read_tensor(Reader(tensor, file, name), name);
      if (!names.insert(name).second) throw InputError(file + ": '" + name + "' is saved twice");
      if (names.size() > kMaxTensors) throw InputError(file + ": more than 200000 tensors");
      integers = integers || saved.dtype.empty();
      if (is_state(name, saved.shape.size()) || saved.dtype.empty() || saved.elements == 0)
        continue;
      parameters.push_back(std::move(saved));
    }
  }
  if (parameters.empty()) {
    throw InputError(files.front() + (integers ? ": its tensors are integers or of eight bits, as "
                                                 "quantised models are: none has a gradient"
                                               : ": holds no tensor"));
  }
  return in_order_of_use(parameters);
}

std::string stem_of(const std::string& file) {
  const std::filesystem::path path(file);
  const std::string stem = path.stem().string();
  const std::string folder = path.parent_path().filename().string();
  return stem.starts_with("model") && !folder.empty() && folder != "." ? folder : stem;
}

bool recognises_safetensors(const Head& head) {
  if (head.bytes.size() <= kLengthBytes) return false;
  const char first = head.bytes[kLengthBytes];
  return first == '{' &&
         (head.path.ends_with(".safetensors") || length_in(head.bytes) <= kLongestHeader);
}

Observed read_safetensors(const std::vector<std::string>& files) {
  Parameters parameters = parameters_of(files);
  Observed observed;
  observed.framework = "pytorch";
  observed.name = stem_of(files.front());
  const bool flops = guess_products(parameters, observed.warnings);
  observed.warnings.emplace_back(
      "the order of the gradients is what their names tell: such files are sorted");
  observed.workload =
      workload_of(observed.name, "the header of its .safetensors", tensors_of(parameters, flops));
  return observed;
}

}  // namespace

bool precedes(std::string_view first, std::string_view second) {
  return UsePlace(first).before(UsePlace(second));
}

const ImportFormat kSafetensors = {
    "safetensors",
    "safetensors: the header of a .safetensors file: a model's gradients and their FLOPs",
    recognises_safetensors, read_safetensors};

}  // namespace syncline::job::models
