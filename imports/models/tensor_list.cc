#include <algorithm>
#include <array>
#include <set>

#include "core/base/error.h"
#include "formats/json/reader.h"
#include "formats/json/text.h"
#include "formats/text/files.h"
#include "formats/text/parse_number.h"
#include "formats/text/visible.h"
#include "imports/format.h"
#include "imports/models/parameters.h"

namespace syncline::job::models {
namespace {

constexpr std::string_view kBlanks = " \t\r";

// Returns a format that gradients have; empty for others, such as integers.
std::string format_of(std::string_view word) {
  if (word.starts_with("torch.")) word.remove_prefix(std::string_view("torch.").size());
  constexpr std::array<std::array<std::string_view, 4>, 4> kFormats{{
      {"fp32", "float32", "float", "F32"},
      {"bf16", "bfloat16", "BF16", "bf16"},
      {"fp16", "float16", "half", "F16"},
      {"fp64", "float64", "double", "F64"},
  }};
  for (const auto& names : kFormats) {
    if (std::ranges::find(names, word) != names.end()) return std::string(names.front());
  }
  return {};
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(kBlanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// Returns the shape "4096, 11008" or "4096x11008"; nullopt: no shape.
std::optional<std::vector<std::int64_t>> shape_in(std::string_view text) {
  std::vector<std::int64_t> shape;
  while (!(text = trimmed(text)).empty()) {
    const auto end = std::min(text.find_first_of(",x"), text.size());
    const auto extent = parse_number<std::int64_t>(trimmed(text.substr(0, end)));
    if (!extent || *extent < 0 || *extent > kMaxElements || shape.size() >= kMaxDimensions) {
      return std::nullopt;
    }
    shape.push_back(*extent);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return shape;
}

// Returns the parameter in a line of torch's print; nullopt: none.
std::optional<Parameter> parameter_in(std::string_view line) {
  const auto open = line.find_first_of("([");
  if (open == line.npos) return std::nullopt;
  std::string_view name = trimmed(line.substr(0, open));
  if (name.ends_with("torch.Size")) name = trimmed(name.substr(0, name.rfind("torch.Size")));
  while (name.ends_with(':') || name.ends_with(',')) name.remove_suffix(1);
  if (name.empty() || name.find_first_of(" \t\"'{}=<>") != name.npos) return std::nullopt;
  std::string_view rest = line.substr(open + 1);
  if (rest.starts_with('[')) rest.remove_prefix(1);  // torch.Size([
  const auto close = rest.find_first_of(")]");
  if (close == rest.npos) return std::nullopt;
  auto shape = shape_in(rest.substr(0, close));
  if (!shape) return std::nullopt;
  Parameter parameter{std::string(name), std::move(*shape)};
  rest.remove_prefix(close);
  while (!rest.empty()) {
    const auto first = rest.find_first_not_of(" \t\r)],:");
    if (first == rest.npos) break;
    rest.remove_prefix(first);
    const auto end = std::min(rest.find_first_of(" \t\r,"), rest.size());
    const std::string_view word = rest.substr(0, end);
    if (word == "False") parameter.trained = false;
    if (word.starts_with("torch.")) parameter.dtype = format_of(word);
    rest.remove_prefix(end);
  }
  return parameter;
}

// Reads a row of JSON: [name, shape], its format and whether it is trained.
Parameter parameter_of(const Json& row, const std::string& file, const std::string& place) {
  const auto fail = [&](const char* what) { throw InputError(file + ": " + place + ": " + what); };
  const bool list = row.is_array() && row.size() >= 2 && row[0].is_string() && row[1].is_array();
  if (!list) fail("expected [name, shape, dtype, requires_grad]");
  Parameter parameter{row[0].get<std::string>(), {}};
  if (row[1].size() > kMaxDimensions) fail("more than 64 dimensions");
  for (const Json& extent : row[1]) {
    parameter.shape.push_back(checked_integer(extent, 0, kMaxElements, file, place + "[1]"));
  }
  if (row.size() > 2 && row[2].is_string()) parameter.dtype = format_of(row[2].get<std::string>());
  if (row.size() > 3 && row[3].is_boolean()) parameter.trained = row[3].get<bool>();
  return parameter;
}

Parameters from_json(const std::string& file, const std::string& text) {
  const Json json = parse_json_text(file, text);
  if (json.size() > kMaxTensors) throw InputError(file + ": more than 200000 tensors");
  Parameters parameters;
  for (std::size_t i = 0; i < json.size(); ++i) {
    parameters.push_back(parameter_of(json[i], file, "[" + std::to_string(i) + "]"));
  }
  return parameters;
}

Parameters from_lines(const std::string& file, std::string_view text,
                      std::vector<std::string>& warnings) {
  Parameters parameters;
  std::size_t others = 0;
  std::string_view first_other;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    auto parameter = parameter_in(line);
    if (!parameter) {
      if (others++ == 0) first_other = line;
      continue;
    }
    if (parameters.size() >= kMaxTensors) throw InputError(file + ": more than 200000 tensors");
    parameters.push_back(std::move(*parameter));
  }
  if (others == 0) return parameters;
  constexpr std::size_t kShown = 60;
  const std::string lines = std::to_string(others) +
                            (others == 1 ? " line, '" : " lines, the first '") +
                            visible(std::string(first_other.substr(0, kShown))) + "'";
  if (others > parameters.size()) {
    throw InputError(file + ": more lines without a parameter than with one: " + lines +
                     "; torch prints a model's by `" + std::string(kPrintTensors) + "`");
  }
  warnings.push_back("left out, as no parameter: " + lines);
  return parameters;
}

// Returns the parameters that a model computes with, each once.
Parameters kept(const std::string& file, Parameters all) {
  std::set<std::string> names;
  Parameters parameters;
  for (Parameter& each : all) {
    const auto elements = elements_of(each.shape);
    if (!elements) throw InputError(file + ": '" + each.name + "' has more than 2^40 elements");
    each.elements = static_cast<double>(*elements);
    if (!names.insert(each.name).second) {
      throw InputError(file + ": '" + each.name + "' is listed twice");
    }
    if (*elements == 0 || is_state(each.name, each.shape.size())) continue;
    // Integers are weights that were quantised: computed with, never trained.
    if (each.dtype.empty()) each.trained = false;
    parameters.push_back(std::move(each));
  }
  if (std::ranges::none_of(parameters, &Parameter::trained)) {
    throw InputError(file + ": no parameter that is trained; torch prints them by `" +
                     std::string(kPrintTensors) + "`");
  }
  return parameters;
}

bool recognises_list(const Head& head) {
  std::string_view text = head.bytes;
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos) return false;
  text.remove_prefix(first);
  if (text.front() == '[') {
    const auto row = text.find_first_not_of(" \t\r\n", 1);
    if (row == text.npos || text[row] != '[') return false;
    const auto name = text.find_first_not_of(" \t\r\n", row + 1);
    return name != text.npos && text[name] == '"';
  }
  constexpr int kLines = 200;  // a program says other things first
  for (int i = 0; i < kLines && !text.empty(); ++i) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    const auto parameter = parameter_in(line);
    const bool named = parameter && parameter->name.find('.') != std::string::npos;
    const bool typed = parameter && !parameter->dtype.empty() && line.find(" torch.") != line.npos;
    if (typed || (i == 0 && named)) return true;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

// Gives integers, which are weights that were quantised to a byte or less each, the format and the
// number of elements with the same bytes. Says what is frozen.
void take_frozen(Parameters& parameters, Observed& observed) {
  std::ptrdiff_t frozen = 0, integers = 0;
  for (Parameter& each : parameters) {
    if (each.trained) continue;
    ++frozen;
    if (!each.dtype.empty()) continue;
    ++integers;
    each.dtype = "bf16";
    each.shape = {(static_cast<std::int64_t>(each.elements) + 1) / 2};
  }
  if (frozen == 0) return;
  std::string said = std::to_string(std::ssize(parameters) - frozen) + " parameters are trained, " +
                     std::to_string(frozen) + " frozen: computed, never summed";
  if (integers > 0) {
    said += "; " + std::to_string(integers) + " of them are integers, a byte each";
  }
  observed.warnings.push_back(std::move(said));
}

Observed read_list(const std::vector<std::string>& files) {
  if (files.size() > 1) throw InputError(files[1] + ": a model has one list of parameters");
  const std::string& file = files.front();
  const std::string text = read_text_file(file, "a list of parameters");
  const auto first = text.find_first_not_of(" \t\r\n");
  Observed observed;
  observed.framework = "pytorch";
  const auto slash = file.find_last_of('/');
  observed.name = file.substr(slash == file.npos ? 0 : slash + 1);
  if (const auto dot = observed.name.rfind('.'); dot != 0)
    observed.name.resize(std::min(dot, observed.name.size()));
  const bool json = first != text.npos && text[first] == '[';
  Parameters parameters =
      kept(file, json ? from_json(file, text) : from_lines(file, text, observed.warnings));
  const bool flops = guess_products(parameters, observed.warnings);
  take_frozen(parameters, observed);
  observed.workload =
      workload_of(observed.name, "a list of its parameters", tensors_of(parameters, flops));
  return observed;
}

}  // namespace

const ImportFormat kTensorList = {
    "tensors", "tensors: a model's parameters as torch prints them, a line each, or JSON",
    recognises_list, read_list};

}  // namespace syncline::job::models
