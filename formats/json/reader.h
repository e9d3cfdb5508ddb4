// Strict reading of one JSON object: every key is asked for by name, and a key that nobody asked
// for is an error that suggests the nearest known one. Messages name file, path, value and limits.
//
// A reader that was given `Mistakes` adds to them what hides nothing else (a number, a text, a key
// that nobody knows) and goes on with a value that is allowed; everything else is thrown.
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

// Which names fit a word that is none of them: the suggestion of every message.

// The name that the word means for certain: the only one that differs from it in case and
// punctuation alone ("llama-3-8b" is llama3_8b), or that other programs spell so ("bfloat16" is
// bf16, "ddp" is pytorch). Nothing where there is none.
std::optional<std::string> same_name(std::string_view word, const std::vector<std::string>& names);

// The names that fit best, by the first of these rules under which any does: the same name; what
// other programs call something near it; a family, whose names have all parts of the word ("a100":
// a100-sxm-40gb and its kin), begin with it, are it without a letter, or have no part that the word
// has not; the fewest letters apart, while most letters stand. What is mostly a number ("a30") has
// no other number near it.
std::vector<std::string> near_names(std::string_view word, const std::vector<std::string>& names);

// "did you mean 'x'?", or one of several that are near; with the factor between two units where the
// names differ in that ("1 ms is 1000 us"). Empty where none is.
std::string question_of(std::string_view word, const std::vector<std::string>& near);
// That of the names that fit best, in brackets, after a blank.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& names);

// More than one thing to say about a file that is wrong. what() is the first mistake, or the only
// one; `below` are lines to be shown under it: the place in the file, or further mistakes. They may
// hold what the file holds.
struct InputMistakes : InputError {
  InputMistakes(const std::string& first, std::vector<std::string> lines)
      : InputError(first), below(std::move(lines)) {}
  std::vector<std::string> below;
};

// The mistakes of a file in the order in which they were found, so that one of them does not hide
// the next.
class Mistakes {
 public:
  void add(const std::string& mistake);
  // All of another's, in the words that `told_as` makes of them.
  template <typename Words>
  void add_all(const Mistakes& others, Words told_as) {
    for (const auto& mistake : others.told_) add(told_as(mistake));
    count_ += others.count_ - others.told_.size();
  }
  std::size_t count() const { return count_; }

  // Reads a part. What it throws is added, unless mistakes inside it, or in a part that it builds
  // upon (`sound` is false), may be the reason. Gives whether the part is without any.
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

  // Throws InputError for one, InputMistakes for several, nothing for none.
  void raise() const;

 private:
  std::vector<std::string> told_;
  std::size_t count_ = 0;
};

class Reader {
 public:
  // `place` is the dotted path of `object` inside `file`, empty at the top. `mistakes` must outlive
  // this and whatever is read from it.
  Reader(const Json& object, std::string file, std::string place, Mistakes* mistakes = nullptr);

  bool has(std::string_view key);
  // The value at `key`, or nullptr when it is absent; counts as asked for.
  const Json* find(std::string_view key);
  const Json& require(std::string_view key);

  std::string text(std::string_view key);
  std::string text_or(std::string_view key, std::string fallback);
  bool boolean_or(std::string_view key, bool fallback);

  // Limits of a number; the message shows them. Every number must be finite.
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
  // One of `words`; the message lists them and suggests the nearest.
  std::string word_or(std::string_view key, std::string fallback,
                      const std::vector<std::string>& words);

  // A nested object, to be read in turn.
  Reader object(std::string_view key);
  // The elements of an array; an absent key gives an empty list.
  std::vector<Reader> objects(std::string_view key);
  const Json& array(std::string_view key);

  // Fails on any key that was not asked for. Call it last. `elsewhere`: paths from here that end in
  // keys of other objects, which a key that is not known here may be meant for.
  void finish(const std::vector<std::string>& elsewhere = {});

  // Carries out `read`, a part that nothing else hangs on: what it throws is added to the mistakes,
  // if there are any to add to.
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

// A number with the kind of a JSON value: "'abc'", "3", "an object", for messages.
std::string describe(const Json& value);

// Checks one number against limits. Throws InputError naming file and place.
double checked_number(const Json& value, const Reader::Limits& limits, const std::string& file,
                      const std::string& place);
std::int64_t checked_integer(const Json& value, std::int64_t min, std::int64_t max,
                             const std::string& file, const std::string& place);
// One of `words`, likewise; the message lists them and suggests the nearest.
std::string checked_word(const Json& value, const std::vector<std::string>& words,
                         const std::string& file, const std::string& place);

}  // namespace syncline
