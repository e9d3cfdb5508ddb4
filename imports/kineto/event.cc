#include "imports/kineto/trace.h"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <utility>

namespace syncline::job::kineto {
namespace {

namespace ondemand = simdjson::ondemand;

std::string_view without_quotes(std::string_view token) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!token.empty() && blank(token.back())) token.remove_suffix(1);
  if (token.size() >= 2 && token.front() == '"') token = token.substr(1, token.find('"', 1) - 1);
  return token;
}

// Reads a number, in old torches a string ("stream 7").
std::int64_t integer(std::string_view token, std::int64_t otherwise) {
  token = without_quotes(token);
  token.remove_prefix(std::min(token.find_first_of("-0123456789"), token.size()));
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
  return error == std::errc() ? value : otherwise;
}

// Reads microseconds to three decimals, exactly: dates are too long for a double.
Nanoseconds nanoseconds(std::string_view token) {
  constexpr std::int64_t kMax = 4'000'000'000'000'000;  // microseconds: a century
  token = without_quotes(token);
  const bool negative = token.starts_with('-');
  if (negative) token.remove_prefix(1);
  std::int64_t whole = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), whole);
  if (error != std::errc() || whole > kMax || whole < 0)
    throw simdjson::simdjson_error(simdjson::NUMBER_ERROR);
  std::string_view rest(end, static_cast<std::size_t>(token.data() + token.size() - end));
  std::int64_t fraction = 0;
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    for (std::int64_t digit = 100; !rest.empty() && rest[0] >= '0' && rest[0] <= '9'; digit /= 10) {
      fraction += digit * (rest[0] - '0');
      rest.remove_prefix(1);
    }
  }
  if (!rest.empty()) {  // an exponent, which no torch writes
    const double value = std::strtod(std::string(token).c_str(), nullptr);
    if (!(value <= static_cast<double>(kMax)))
      throw simdjson::simdjson_error(simdjson::NUMBER_ERROR);
    return static_cast<Nanoseconds>(negative ? -1e3 * value : 1e3 * value);
  }
  const Nanoseconds value = 1000 * whole + fraction;
  return negative ? -value : value;
}

bool same(std::string_view a, std::string_view lower) {
  return std::ranges::equal(
      a, lower, {}, [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
}

// Returns the accelerator of libkineto's categories, neither CUDA nor ROCm; empty: no such one.
std::string_view accelerator_of(std::string_view word) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"mtia_", "MTIA"},
      {"hpu_", "HPU (Gaudi)"},
      {"glow_", "Glow"},
      {"privateuse1_", "PrivateUse1"}};
  for (const auto& [begin, name] : kNames) {
    if (word.starts_with(begin)) return name;
  }
  return {};
}

Category category_of(std::string_view word) {
  if (!accelerator_of(word).empty()) return Category::kAccelerator;
  if (same(word, "cpu_op") || same(word, "operator") || same(word, "user_annotation")) {
    return Category::kHost;
  }
  if (same(word, "kernel")) return Category::kKernel;
  if (same(word, "gpu_memcpy") || same(word, "memcpy")) return Category::kCopy;
  if (same(word, "gpu_memset") || same(word, "memset")) return Category::kFill;
  if (word.ends_with("untime") || word.ends_with("driver")) return Category::kRuntime;
  if (word == "python_function") return Category::kPython;
  return Category::kOther;
}

// Reads a list of shapes. A tensor list among them adds its shapes one after the other.
void read_shapes(ondemand::array list, std::vector<std::vector<std::int64_t>>& shapes, int depth) {
  std::vector<std::int64_t> shape;
  bool lists = false;
  for (ondemand::value element : list) {
    if (element.type() == ondemand::json_type::array) {
      lists = true;
      if (depth < 4) read_shapes(element.get_array(), shapes, depth + 1);
    } else {
      shape.push_back(integer(element.raw_json_token(), -1));
    }
  }
  if (!lists && depth > 0) shapes.push_back(std::move(shape));
}

void read_type(ondemand::value value, std::string& type) {
  if (value.type() != ondemand::json_type::array) return;
  for (ondemand::value element : value.get_array()) {
    const std::string_view word = without_quotes(element.raw_json_token());
    if (!word.empty() && word != "Scalar" && word != "TensorList") {
      type = word;
      return;
    }
  }
}

std::string text(ondemand::value value) {
  if (value.type() != ondemand::json_type::string) return "";
  return std::string(std::string_view(value));
}

// Reads "[0, 1, 2]", "[0, 1, ..., ...]", or the same as a list.
void read_ranks(ondemand::value value, Event& event) {
  constexpr std::size_t kMaxRanks = 1U << 20;
  if (value.type() == ondemand::json_type::array) {
    for (ondemand::value element : value.get_array()) {
      if (event.group_ranks.size() >= kMaxRanks) return;
      const std::string_view token = without_quotes(element.raw_json_token());
      event.group_ranks_cut |= token == "...";
      if (token != "...") event.group_ranks.push_back(integer(token, -1));
    }
    return;
  }
  if (value.type() != ondemand::json_type::string) return;
  std::string_view list = value.get_string();
  event.group_ranks_cut = list.find("...") != std::string_view::npos;
  while (event.group_ranks.size() < kMaxRanks) {
    list.remove_prefix(std::min(list.find_first_of("-0123456789"), list.size()));
    if (list.empty()) return;
    event.group_ranks.push_back(integer(list, -1));
    list.remove_prefix(1);
    list.remove_prefix(std::min(list.find_first_not_of("0123456789"), list.size()));
  }
}

// Arguments that are a number or a text.
constexpr std::pair<std::string_view, std::int64_t Event::*> kNumbers[] = {
    {"correlation", &Event::correlation},
    {"stream", &Event::stream},
    {"device", &Event::device},
    {"bytes", &Event::bytes},
    {"size", &Event::bytes},  // of AMD's calls until 2024
    {"In msg nelems", &Event::in_elements},
    {"Out msg nelems", &Event::out_elements},
    {"Group size", &Event::group_size}};
constexpr std::pair<std::string_view, std::string Event::*> kTexts[] = {
    {"Collective name", &Event::collective},
    {"dtype", &Event::dtype},
    {"Process Group Name", &Event::group},
    {"Process Group Description", &Event::group_description}};

void read_argument(std::string_view key, ondemand::value value, Event& event) {
  static const Event kUntold;
  for (const auto& [name, number] : kNumbers) {
    if (key != name) continue;
    event.*number = integer(value.raw_json_token(), kUntold.*number);
    return;
  }
  for (const auto& [name, words] : kTexts) {
    if (key != name) continue;
    event.*words = text(value);
    return;
  }
  if (key == "Process Group Ranks") {
    read_ranks(value, event);
  } else if (same(key, "input dims")) {
    if (value.type() == ondemand::json_type::array) read_shapes(value.get_array(), event.shapes, 0);
  } else if (same(key, "input type")) {
    read_type(value, event.type);
  }
}

void clear(Event& event) {
  event.category = Category::kOther;
  event.annotation = false;
  event.name.clear();
  event.process.clear();
  event.thread.clear();
  event.start = event.duration = 0;
  event.correlation = event.stream = event.device = -1;
  event.bytes = event.in_elements = event.out_elements = event.group_size = 0;
  event.shapes.clear();
  event.group_ranks.clear();
  event.group_ranks_cut = false;
  for (std::string* word :
       {&event.type, &event.collective, &event.dtype, &event.group, &event.group_description}) {
    word->clear();
  }
}

// Returns true if an event of the host can concern synchronisation.
bool matters(std::string_view name) {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  return name.starts_with("nccl:") || name.starts_with("gloo:") || name.starts_with("c10d::") ||
         name.starts_with("ProfilerStep") || name.starts_with("Optimizer.step") ||
         name == "record_param_comms" || name == "DistributedDataParallel.forward" ||
         has("AccumulateGrad") || has("evaluate_function") || has("reducer::") ||
         has("FullyShardedDataParallel") || name.starts_with("FSDP") || has("DeepSpeed") ||
         has("deepspeed") || has("Megatron") || has("deep_ep") || has("dualpipe") ||
         has("DualPipe") || has("PipelineStage") || name.ends_with("__next__") ||
         name == "aten::item";
}

bool needed(const Event& event, bool named) {
  if (event.category == Category::kOther || event.category == Category::kAccelerator) return false;
  if (event.category == Category::kHost) {
    return !named || event.annotation || matters(event.name);
  }
  return event.category != Category::kPython || !named;
}

// Reads an event; false: the fields so far show that the rest does not matter.
bool read_fields(ondemand::object object, Event& event) {
  bool timed = false;
  bool lasting = false;
  bool named = false;
  bool of_a_category = false;
  for (auto field : object) {
    const std::string_view key = field.unescaped_key();
    if (key == "ph") {
      if (std::string_view(field.value()) != "X") return false;
    } else if (key == "cat") {
      const std::string_view word = field.value();
      event.category = category_of(word);
      if (event.category == Category::kAccelerator) event.accelerator = accelerator_of(word);
      event.annotation = same(word, "user_annotation");
      of_a_category = true;
    } else if (key == "name") {
      event.name = std::string_view(field.value());
      named = true;
    } else if (key == "pid") {
      event.process = without_quotes(field.value().raw_json_token());
    } else if (key == "tid") {
      event.thread = without_quotes(field.value().raw_json_token());
    } else if (key == "ts") {
      event.start = nanoseconds(field.value().raw_json_token());
      timed = true;
    } else if (key == "dur") {
      event.duration = nanoseconds(field.value().raw_json_token());
      lasting = true;
    } else if (key == "args") {
      ondemand::value arguments = field.value();
      if (arguments.type() != ondemand::json_type::object) continue;
      for (auto argument : arguments.get_object()) {
        read_argument(argument.unescaped_key(), argument.value(), event);
      }
    }
    if (of_a_category && !needed(event, named)) return false;
  }
  // As in HTA, events without a duration or a category are no work.
  return timed && lasting && of_a_category && named;
}

bool read_text(ondemand::parser& parser, std::string_view text, Event& event) {
  ondemand::document document =
      parser.iterate(text.data(), text.size(), text.size() + simdjson::SIMDJSON_PADDING);
  return read_fields(document.get_object(), event);
}

// Returns the text with an empty description, and padding for the parser: libkineto writes a group
// without one as a colon and no value. Empty: the fault is another.
std::string mended(std::string_view text) {
  constexpr std::string_view kKey = "\"Process Group Description\":";
  const std::size_t at = text.find(kKey);
  if (at == std::string_view::npos) return "";
  const std::size_t value = text.find_first_not_of(' ', at + kKey.size());
  if (value == std::string_view::npos || text[value] != ',') return "";
  std::string whole(text.substr(0, value));
  whole.append("\"\"").append(text.substr(value)).append(simdjson::SIMDJSON_PADDING, ' ');
  return whole;
}

}  // namespace

EventReading read_event(std::string_view text, Event& event) {
  thread_local ondemand::parser parser;
  clear(event);
  if (!text.starts_with('{')) return EventReading::kSkipped;
  try {
    if (!read_text(parser, text, event)) return EventReading::kSkipped;
  } catch (const simdjson::simdjson_error&) {
    const std::string again = mended(text);
    if (again.empty()) return EventReading::kDamaged;
    clear(event);
    try {
      const std::string_view whole(again.data(), again.size() - simdjson::SIMDJSON_PADDING);
      if (!read_text(parser, whole, event)) return EventReading::kSkipped;
    } catch (const simdjson::simdjson_error&) {
      return EventReading::kDamaged;
    }
  }
  // libkineto clamps them too.
  if (event.duration < 0) event.duration = 0;
  if (event.stream < 0) event.stream = integer(event.thread, 0);
  if (event.device < 0) event.device = integer(event.process, 0);
  return EventReading::kRead;
}

}  // namespace syncline::job::kineto
