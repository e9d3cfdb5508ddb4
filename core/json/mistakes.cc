#include "core/json/mistakes.h"

namespace syncline {

void Mistakes::add(const std::string& mistake) {
  constexpr std::size_t kTold = 10;
  if (told_.size() < kTold) told_.push_back(mistake);
  ++count_;
}

void Mistakes::raise() const {
  if (count_ == 0) return;
  if (count_ == 1) throw InputError(told_.front());
  std::vector<std::string> below(told_.begin() + 1, told_.end());
  if (count_ > told_.size()) {
    below.push_back("and " + std::to_string(count_ - told_.size()) + " more");
  }
  throw InputMistakes(told_.front(), std::move(below));
}

}  // namespace syncline
