// More than one thing to say about a file that is wrong.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"

namespace syncline {

// what() is the first mistake, or the only one; `below` are lines to be shown under it: the place
// in the file, or further mistakes. They may hold what the file holds.
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

}  // namespace syncline
