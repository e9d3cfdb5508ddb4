#include "core/json/text.h"

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/json/mistakes.h"
#include "core/json/syntax.h"
#include "core/visible.h"

namespace syncline {
namespace {

// Values from the parser's events, in time that is linear in the text: neither the parser's own
// callbacks nor its ordered objects are, which look through all that came before at each key and
// each end.
class StrictValues {
 public:
  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(Json::number_integer_t value) { return add(value); }
  bool number_unsigned(Json::number_unsigned_t value) { return add(value); }
  bool number_float(Json::number_float_t value, const std::string&) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(Json::binary_t&) { return false; }  // no text holds any
  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    Level& level = open_.back();
    auto& members = members_of(*level.value);
    // The parser keeps the last of repeated keys in silence; a second key is somebody's mistake.
    if (is_known(level, members, name) && !repeated_) repeated_ = name;
    members.emplace_back(std::move(name), Json());
    return true;
  }

  template <typename Error>
  bool parse_error(std::size_t, const std::string&, const Error& error) {
    throw error;
  }

  bool too_deep() const { return too_deep_; }
  const std::optional<std::string>& repeated() const { return repeated_; }
  Json take() { return std::move(root_); }

 private:
  // An object or list that is not closed yet, and the keys of an object of many.
  struct Level {
    Json* value;
    std::unordered_set<std::string> keys;
  };
  using Members = std::vector<Json::object_t::value_type>;

  // What the ordered object is, without its search for an equal key.
  static Members& members_of(Json& object) { return object.get_ref<Json::object_t&>(); }

  static bool is_known(Level& level, const Members& members, const std::string& name) {
    constexpr std::size_t kFew = 16;  // up to here a look at all of them is quicker
    if (members.size() < kFew) {
      return std::any_of(members.begin(), members.end(),
                         [&](const auto& member) { return member.first == name; });
    }
    if (level.keys.empty()) {
      for (const auto& member : members) level.keys.insert(member.first);
    }
    return !level.keys.insert(name).second;
  }

  // Where the next value goes.
  Json& place(Json value) {
    if (open_.empty()) return root_ = std::move(value);
    Json& parent = *open_.back().value;
    if (parent.is_object()) return members_of(parent).back().second = std::move(value);
    auto& list = parent.get_ref<Json::array_t&>();
    list.push_back(std::move(value));
    return list.back();
  }

  bool add(Json value) {
    place(std::move(value));
    return true;
  }

  // The depth is bounded as whatever walks through a value calls itself for each level.
  bool open(Json value) {
    constexpr std::size_t kDeepest = 64;
    too_deep_ = open_.size() == kDeepest;
    if (too_deep_) return false;
    open_.push_back({&place(std::move(value)), {}});
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  Json root_;
  std::vector<Level> open_;
  std::optional<std::string> repeated_;
  bool too_deep_ = false;
};

// The parser's own words for a number that no double holds, without its numbering.
std::string overflow_text(const std::string& text, const std::string& what) {
  const std::size_t open = what.find('\'');
  const std::size_t close = what.rfind('\'');
  if (open == std::string::npos || close <= open + 1) return "not valid JSON: " + what;
  const std::string number = what.substr(open + 1, close - open - 1);
  return "the number " + number + " at " + position_text(text, text.find(number) + 1) +
         " is too large";
}

}  // namespace

Json parse_json_text(const std::string& name, const std::string& text) {
  StrictValues values;
  try {
    Json::sax_parse(text, &values);
    if (values.too_deep()) throw InputError(name + ": nested more than 64 levels deep");
    if (const auto& key = values.repeated()) {
      throw InputError(name + ": key '" + shortened(*key) + "' is given twice");
    }
    return values.take();
  } catch (const Json::parse_error& error) {
    if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
      throw InputError(name + ": empty file, expected a JSON object");
    }
    const bool behind_key =
        std::string_view(error.what()).find("expected ':'") != std::string::npos;
    if (const auto mistake = syntax_mistake(text, error.byte, behind_key)) {
      const std::string what = name + ": not valid JSON: " + mistake->what;
      if (mistake->byte == 0) throw InputError(what);
      throw InputMistakes(what, shown_place(text, mistake->byte));
    }
    std::string what = error.what();
    const auto colon = what.rfind("; ");
    what = colon != std::string::npos ? what.substr(colon + 2) : what;
    throw InputMistakes(name + ": not valid JSON at " + position_text(text, error.byte) +
                            (error.byte >= text.size() ? " (the file ends too early)" : "") + ": " +
                            what,
                        shown_place(text, error.byte));
  } catch (const Json::exception& error) {
    throw InputError(name + ": " + overflow_text(text, error.what()));
  }
}

std::optional<Json> json_in(const std::string& text) {
  StrictValues values;
  try {
    Json::sax_parse(text, &values);
  } catch (const Json::exception&) {
    return std::nullopt;
  }
  if (values.too_deep()) return std::nullopt;
  return values.take();
}

Json read_json_file(const std::string& path) {
  return parse_json_text(path, read_text_file(path, "a JSON file"));
}

std::string plain_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  // A whole cluster or workload goes by its name.
  if (value.is_object() && value.contains("name") && value["name"].is_string()) {
    return value["name"].get<std::string>();
  }
  return value.dump();
}

}  // namespace syncline
