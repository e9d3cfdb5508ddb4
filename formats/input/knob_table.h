// Knobs as data. A table holds each knob's key, its member, spelling in JSON, meaning and
// conditions. Reading, writing, the schema for editors and the words that distinguish two objects
// all follow from the table (knobs.h has the tables).
#pragma once

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/cluster.h"
#include "core/job.h"
#include "formats/json/reader.h"

namespace syncline::input {

// The context on which limits of a knob may depend.
struct Setting {
  const Workload& workload;
  const Cluster& cluster;
};

// A value in a file, to be read.
struct Entry {
  const Json& value;
  const std::string& file;
  std::string place;
  const Setting& setting;

  Entry at(std::size_t i) const {
    return {value[i], file, place + "[" + std::to_string(i) + "]", setting};
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(file + ": " + place + ": " + what);
  }
};

// The spelling of one type's values in JSON.
template <typename V>
struct Spelling {
  Json schema;
  std::function<V(const Entry&)> read;  // throws InputError
  std::function<Json(const V&)> write;  // null: only an absent key can express the value
};

inline Spelling<bool> yes_or_no() {
  return {{{"type", "boolean"}},
          [](const Entry& entry) {
            if (!entry.value.is_boolean()) {
              entry.fail("found " + describe(entry.value) + ", expected true or false");
            }
            return entry.value.get<bool>();
          },
          [](bool value) { return Json(value); }};
}

// Returns a spelling with one word for each value of `V`; no other place lists them.
template <typename V>
Spelling<V> words(const std::vector<std::pair<std::string, V>>& spelt) {
  std::vector<std::string> names;
  for (const auto& [name, value] : spelt) names.push_back(name);
  return {{{"type", "string"}, {"enum", names}},
          [spelt, names](const Entry& entry) {
            const auto word = checked_word(entry.value, names, entry.file, entry.place);
            std::size_t i = 0;
            while (names[i] != word) ++i;
            return spelt[i].second;
          },
          [spelt](const V& value) {
            for (const auto& [name, spelt_value] : spelt) {
              if (spelt_value == value) return Json(name);
            }
            return Json();
          }};
}

// Returns the spelling of a table's row by its name; empty: none.
inline Spelling<std::string> one_of(const std::vector<std::string>& names) {
  return {{{"type", "string"}, {"enum", names}},
          [names](const Entry& entry) {
            return checked_word(entry.value, names, entry.file, entry.place);
          },
          [](const std::string& name) { return name.empty() ? Json() : Json(name); }};
}

template <typename V>
Spelling<V> whole(std::int64_t min, std::int64_t max) {
  return {{{"type", "integer"}, {"minimum", min}, {"maximum", max}},
          [min, max](const Entry& entry) {
            return static_cast<V>(checked_integer(entry.value, min, max, entry.file, entry.place));
          },
          [min](V value) { return value < static_cast<V>(min) ? Json() : Json(value); }};
}

// Returns the spelling of a number in units of `unit`.
template <typename V>
Spelling<V> number(Reader::Limits limits, double unit) {
  const char* least = limits.min_excluded ? "exclusiveMinimum" : "minimum";
  return {
      {{"type", "number"}, {least, limits.min}, {"maximum", limits.max}},
      [limits, unit](const Entry& entry) {
        return static_cast<V>(checked_number(entry.value, limits, entry.file, entry.place) * unit);
      },
      [limits, unit](V value) {
        const double written = static_cast<double>(value) / unit;
        return written > limits.min || (written == limits.min && !limits.min_excluded)
                   ? Json(written)
                   : Json();
      }};
}

// Returns the spelling of a list. `least` names the missing items; empty: they are optional.
template <typename V>
Spelling<std::vector<V>> list_of(const Spelling<V>& item, const std::string& least) {
  return {{{"type", "array"}, {"minItems", 1}, {"items", item.schema}},
          [item, least](const Entry& entry) {
            if (!entry.value.is_array()) {
              entry.fail("found " + describe(entry.value) + ", expected a list");
            }
            if (entry.value.empty() && !least.empty()) entry.fail("empty, expected " + least);
            std::vector<V> values;
            for (std::size_t i = 0; i < entry.value.size(); ++i) {
              values.push_back(item.read(entry.at(i)));
            }
            return values;
          },
          [item](const std::vector<V>& values) {
            Json list;
            for (const V& value : values) list.push_back(item.write(value));
            return list;
          }};
}

// Traits of a knob, to be combined by |.
inline constexpr unsigned kDecides = 1;          // other knobs depend on it: it is read first
inline constexpr unsigned kWritten = 2;          // written even at its default
inline constexpr unsigned kExact = 4;            // the proof of an optimum covers all its values
inline constexpr unsigned kChangesTraining = 8;  // changes results, not only times

// A value of a knob, and the keys that have a meaning only with it or with other values that list
// them too. Null: the value that an absent key means.
struct Brings {
  Json value;
  std::vector<std::string> keys;
  std::string why = {};  // reason why they have no meaning with other values

  bool lists(const std::string& key) const { return std::ranges::find(keys, key) != keys.end(); }
};

template <typename T>
struct Knob {
  std::string key;
  std::string meaning;
  Json schema;
  std::function<void(T&, const Entry&)> read;
  std::function<Json(const T&)> write;
  std::function<bool(const T&)> at_rest;  // true: the value is that of an absent key
  std::function<bool(const T&)> is_required = [](const T&) { return false; };
  // Returns the words that distinguish its value: the key, unless other words are given.
  std::function<std::string(const T&)> words;
  unsigned traits = 0;
  // Returns the name of a value that `tune` varies; null: it does not vary this knob.
  std::function<std::string(const T&)> axis;
  // Keys that have a meaning only with some of its values. If it is a deciding knob, they may not
  // be given with other values; other or deciding keys may not differ from their defaults.
  std::vector<Brings> beside;

  bool is(unsigned trait) const { return (traits & trait) != 0; }

  Knob require(std::function<bool(const T&)> when = [](const T&) { return true; }) && {
    is_required = std::move(when);
    schema.erase("default");
    return std::move(*this);
  }
  Knob rest_if(std::function<bool(const T&)> when) && {
    at_rest = std::move(when);
    return std::move(*this);
  }
  // Sets the words: "from step %" with % for the value.
  Knob describe(std::string text) && {
    words = [text = std::move(text), spell = write](const T& object) {
      const std::size_t at = text.find('%');
      const Json value = spell(object);
      const std::string spelt = value.is_string() ? value.get<std::string>() : value.dump();
      return at == text.npos ? text : text.substr(0, at) + spelt + text.substr(at + 1);
    };
    return std::move(*this);
  }
  Knob describe(std::string (*of)(const T&)) && {
    words = of;
    return std::move(*this);
  }
  // Sets keys of the schema for editors that differ from the reader; null removes a key.
  Knob patch_schema(const Json& patch) && {
    schema.merge_patch(patch);
    return std::move(*this);
  }
  Knob with(unsigned more) && {
    traits |= more;
    return std::move(*this);
  }
  Knob name_axis(std::string (*named)(const T&)) && {
    axis = named;
    return std::move(*this);
  }
  Knob enable(std::vector<Brings> rows) && {
    beside = std::move(rows);
    return std::move(*this);
  }

  // Returns the reason why a key has no meaning with this knob's value: "has no meaning with rule
  // 'one', only with 'size' or 'count'". Empty if it has one.
  std::string leaves_idle(const std::string& other, const T& object) const {
    const auto lists = [&](const Brings& row) { return row.lists(other); };
    if (std::ranges::none_of(beside, lists)) return "";
    const auto spelt = [](const Json& word) {
      return word.is_string() ? "'" + word.get<std::string>() + "'" : word.dump();
    };
    const Json value = write(object);
    std::string allowed;
    std::string why;
    for (const Brings& row : beside) {
      if (!lists(row)) continue;
      if (row.value.is_null() ? at_rest(object) : row.value == value) return "";
      if (!row.value.is_null()) {
        allowed += (allowed.empty() ? ", only with " : " or ") + spelt(row.value);
      }
      if (!row.why.empty()) why = ": " + row.why;
    }
    return "has no meaning with " + key + (value.is_string() ? " " : ": ") + spelt(value) +
           allowed + why;
  }
};

template <typename T, typename V>
Knob<T> knob(const std::string& key, V T::*member, const Spelling<V>& spelling,
             const std::string& meaning) {
  const V usual = T{}.*member;
  Knob<T> made;
  made.schema = {{"description", meaning}};
  made.schema.update(spelling.schema);
  if (const Json value = spelling.write(usual); !value.is_null()) made.schema["default"] = value;
  // In draft 7, a schema with a reference is only that reference.
  if (spelling.schema.contains("$ref")) made.schema = spelling.schema;
  made.read = [=](T& object, const Entry& entry) { object.*member = spelling.read(entry); };
  made.write = [=](const T& object) { return spelling.write(object.*member); };
  made.at_rest = [=](const T& object) { return object.*member == usual; };
  made.key = key;
  made.meaning = meaning;
  return std::move(made).describe(key + " %");
}

template <typename T>
struct KnobTable {
  std::string name;                               // name of its definition in the schema
  std::function<void(const Setting&, T&)> start;  // sets an object without any key
  std::vector<Knob<T>> knobs;

  const Knob<T>& knob(const std::string& key) const {
    return *std::ranges::find(knobs, key, &Knob<T>::key);
  }
};

// Returns the reason why a knob has no meaning with the values of deciding knobs; empty if it has
// one. For a deciding knob conflicts.cc checks this once all are read.
template <typename T>
std::string idle(const KnobTable<T>& table, const Knob<T>& knob, const T& object) {
  if (knob.is(kDecides)) return "";
  for (const Knob<T>& other : table.knobs) {
    if (!other.is(kDecides)) continue;
    if (std::string why = other.leaves_idle(knob.key, object); !why.empty()) return why;
  }
  return "";
}

// Returns the two parts of a long table as one.
template <typename T>
std::vector<Knob<T>> join_knobs(std::vector<Knob<T>> knobs, std::vector<Knob<T>> more) {
  std::move(more.begin(), more.end(), std::back_inserter(knobs));
  return knobs;
}

// Reads the table's keys into `object`. Absent keys leave their values.
template <typename T>
void read_knobs(Reader& reader, const KnobTable<T>& table, const Setting& setting, T& object) {
  const auto read = [&](const Knob<T>& knob) {
    if (knob.is_required(object) && idle(table, knob, object).empty()) reader.require(knob.key);
    if (const Json* value = reader.find(knob.key)) {
      knob.read(object, {*value, reader.file(), reader.place_of(knob.key), setting});
    }
  };
  const auto refuse_idle = [&](const Knob<T>& knob) {
    // A key that other values make meaningless is a mistake of the user.
    const std::string why = idle(table, knob, object);
    if (reader.has(knob.key) && !why.empty()) reader.fail(knob.key, why);
  };
  for (const auto& knob : table.knobs) reader.has(knob.key);  // known, in the table's order
  for (const auto& knob : table.knobs) {
    if (!knob.is(kDecides)) continue;
    refuse_idle(knob);
    read(knob);
  }
  for (const auto& knob : table.knobs) reader.attempt([&] { refuse_idle(knob); });
  for (const auto& knob : table.knobs) {
    if (!knob.is(kDecides)) reader.attempt([&] { read(knob); });
  }
}

// Returns the keys with values other than those of absent keys.
template <typename T>
Json written_knobs(const KnobTable<T>& table, const T& object) {
  Json json = Json::object();
  for (const auto& knob : table.knobs) {
    if (knob.at_rest(object) && !knob.is(kWritten)) continue;
    if (!idle(table, knob, object).empty()) continue;
    if (Json value = knob.write(object); !value.is_null()) json[knob.key] = std::move(value);
  }
  return json;
}

// Returns the spelling of an object with these keys and no others.
template <typename T>
Spelling<T> object_of(const KnobTable<T>& table) {
  return {{{"$ref", "#/definitions/" + table.name}},
          [&table](const Entry& entry) {
            Reader reader(entry.value, entry.file, entry.place);
            T object;
            table.start(entry.setting, object);
            read_knobs(reader, table, entry.setting, object);
            reader.finish();
            return object;
          },
          [&table](const T& object) { return written_knobs(table, object); }};
}

// Makes knobs of `T` from knobs of one of its members.
template <typename T, typename U>
std::vector<Knob<T>> of_member(U T::*member, std::vector<Knob<U>> knobs) {
  std::vector<Knob<T>> lifted;
  for (Knob<U>& own : knobs) {
    Knob<T> knob;
    knob.key = own.key;
    knob.meaning = own.meaning;
    knob.schema = own.schema;
    knob.read = [=, read = own.read](T& object, const Entry& entry) {
      read(object.*member, entry);
    };
    knob.write = [=, write = own.write](const T& object) { return write(object.*member); };
    knob.at_rest = [=, at_rest = own.at_rest](const T& object) { return at_rest(object.*member); };
    knob.is_required = [=, is_required = own.is_required](const T& object) {
      return is_required(object.*member);
    };
    knob.words = [=, words = own.words](const T& object) { return words(object.*member); };
    knob.traits = own.traits;
    knob.beside = own.beside;
    lifted.push_back(std::move(knob));
  }
  return lifted;
}

// Makes a knob with an object as value, the keys of `table`, all of them fields of `T`. The knob is
// at rest if each of them is as in a default object of type `T`.
template <typename T>
Knob<T> part(const std::string& key, const KnobTable<T>& table) {
  Knob<T> made;
  made.key = key;
  made.schema = {{"$ref", "#/definitions/" + table.name}};
  made.read = [&table](T& object, const Entry& entry) {
    Reader reader(entry.value, entry.file, entry.place);
    table.start(entry.setting, object);
    read_knobs(reader, table, entry.setting, object);
    reader.finish();
  };
  made.write = [&table](const T& object) { return written_knobs(table, object); };
  made.at_rest = [&table](const T& object) {
    return std::ranges::all_of(table.knobs,
                               [&](const Knob<T>& knob) { return knob.at_rest(object); });
  };
  return std::move(made).describe(key + " %");
}

// Returns " (one thing; another)": the words of each knob that is not at rest; empty: none.
template <typename T>
std::string moved_knobs(const KnobTable<T>& table, const T& object) {
  std::string text;
  for (const auto& knob : table.knobs) {
    if (knob.at_rest(object) || !idle(table, knob, object).empty()) continue;
    const std::string words = knob.words(object);
    if (!words.empty()) text += (text.empty() ? " (" : "; ") + words;
  }
  return text.empty() ? text : text + ")";
}

}  // namespace syncline::input
