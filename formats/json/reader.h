// Strict reading of one JSON object: a key that the code does not ask for by name is an error that
// suggests the nearest known one. Messages name file, path, value and limits.
//
// A reader with `Mistakes` adds a mistake that hides no other (a number, a text, an unknown key)
// and goes on with an allowed value; it throws all other mistakes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "formats/json/json.h"

namespace syncline {

// The names that fit an unknown word: every message suggests them.

// Returns the one name that the word certainly means. Either only case and punctuation differ
// ("llama-3-8b" is llama3_8b), or other programs spell it so ("bfloat16" is bf16, "ddp" is
// pytorch). Nullopt: there is none.
std::optional<std::string> same_name(std::string_view word, const std::vector<std::string>& names);

// Returns the names that fit best, by the first rule that any name fits: the same name; near a name
// that other programs use; a family: the name has all parts of the word ("a100": a100-sxm-40gb and
// others), begins with it, is it without a letter, or has no other parts; the fewest letters apart,
// if most are equal. A word that is mostly a number ("a30") has no other number near it.
std::vector<std::string> near_names(std::string_view word, const std::vector<std::string>& names);

// Returns "did you mean 'x'?", or one of several near names. Adds the factor between two units if
// the names differ by it ("1 ms is 1000 us"). Empty without near names.
std::string question_of(std::string_view word, const std::vector<std::string>& near);
// Returns " (did you mean 'x'?)": question_of() for near_names(); empty without such names.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& names);

// Several facts about a faulty file. The message is the first mistake, or the only one; `below` are
// lines to show under it: the place in the file, or further mistakes. They may quote the file.
struct InputMistakes : InputError {
  InputMistakes(const std::string& first, std::vector<std::string> lines)
      : InputError(first), below(std::move(lines)) {}
  std::vector<std::string> below;
};

// The mistakes of a file in the order of finding them, so that one does not hide the next.
class Mistakes {
 public:
  void add(const std::string& mistake);
  // Appends the mistakes of `others`, each rewritten by `told_as`.
  template <typename Words>
  void add_all(const Mistakes& others, Words told_as) {
    for (const auto& mistake : others.told_) add(told_as(mistake));
    count_ += others.count_ - others.told_.size();
  }
  std::size_t count() const { return count_; }

  // Reads a part. Adds its error, unless mistakes inside the part, or in a part that it builds upon
  // (`sound` is false), may be the reason. Returns true if the part has no mistakes.
  template <typename Read>
  bool attempt(Read read, bool sound = true) {
    const std::size_t before = count_;
    try {
      read();
    } catch (const InputError& error) {
      if (sound && count_ == before) add(error.what());
      return false;
    }
    return count_ == before;
  }

  // Throws InputError for one mistake, InputMistakes for several. Returns if there are none.
  void raise() const;

 private:
  std::vector<std::string> told_;
  std::size_t count_ = 0;
};

class Reader {
 public:
  // Reads `object`; `place` is its dotted path inside `file`, empty at the top. `mistakes` must
  // outlive the reader and all readers made from it.
  Reader(const Json& object, std::string file, std::string place, Mistakes* mistakes = nullptr);

  bool has(std::string_view key);
  // Returns the value at `key`, or nullptr if it is absent; marks the key as asked for.
  const Json* find(std::string_view key);
  const Json& require(std::string_view key);

  std::string text(std::string_view key);
  std::string text_or(std::string_view key, std::string fallback);
  bool boolean_or(std::string_view key, bool fallback);

  // Limits of a number, shown in messages. Every number must be finite.
  struct Limits {
    double min = 0;
    double max = 1e15;
    bool min_excluded = false;
  };
  double number(std::string_view key, Limits limits);
  double number_or(std::string_view key, double fallback, Limits limits);
  std::int64_t integer(std::string_view key, std::int64_t min, std::int64_t max);
  std::int64_t integer_or(std::string_view key, std::int64_t fallback, std::int64_t min,
                          std::int64_t max);
  // Returns one of `words`; the message lists them and suggests the nearest.
  std::string word_or(std::string_view key, std::string fallback,
                      const std::vector<std::string>& words);

  // Returns a reader of a nested object.
  Reader object(std::string_view key);
  // Returns readers of an array's elements; an absent key gives an empty list.
  std::vector<Reader> objects(std::string_view key);
  const Json& array(std::string_view key);

  // Throws for any key that was not asked for. Call it last. `elsewhere`: paths from here to keys
  // of other objects, which an unknown key may be meant for.
  void finish(const std::vector<std::string>& elsewhere = {});

  // Runs `read`, a part that no other part depends on. Adds its error to the mistakes, if the
  // reader has them.
  template <typename Read>
  void attempt(Read read) {
    if (mistakes_ == nullptr) return read();
    mistakes_->attempt(read);
  }

  // Throws InputError about the value at `key`.
  [[noreturn]] void fail(std::string_view key, const std::string& what) const;
  std::string place_of(std::string_view key) const;
  const std::string& file() const { return file_; }
  const std::string& place() const { return place_; }
  const Json& json() const { return object_; }
  Mistakes* mistakes() const { return mistakes_; }

 private:
  template <typename Value, typename Read>
  Value or_instead(const Value& allowed, Read read) const;

  const Json& object_;
  std::string file_;
  std::string place_;
  std::vector<std::string> asked_;
  Mistakes* mistakes_;
};

// Returns a JSON value, or its kind, as messages name it: "'abc'", "3", "an object".
std::string describe(const Json& value);

// Checks one number against limits. Throws InputError naming file and place.
double checked_number(const Json& value, const Reader::Limits& limits, const std::string& file,
                      const std::string& place);
std::int64_t checked_integer(const Json& value, std::int64_t min, std::int64_t max,
                             const std::string& file, const std::string& place);
// Returns one of `words`, with the same errors; the message lists them and suggests the nearest.
std::string checked_word(const Json& value, const std::vector<std::string>& words,
                         const std::string& file, const std::string& place);

}  // namespace syncline
