#include "core/base/shared.h"

#include <gtest/gtest.h>

#include <vector>

namespace syncline {
namespace {

using Numbers = Shared<std::vector<int>>;

TEST(Shared, CopiesAreOneValueUntilOneIsEdited) {
  Numbers first(std::vector{1, 2, 3});
  Numbers second = first;
  EXPECT_EQ(&*first, &*second);
  second.edit().push_back(4);
  EXPECT_EQ(*first, (std::vector{1, 2, 3}));
  EXPECT_EQ(*second, (std::vector{1, 2, 3, 4}));
}

TEST(Shared, ALoneValueIsEditedInPlace) {
  Numbers numbers(std::vector{1});
  const auto* before = &*numbers;
  EXPECT_EQ(&numbers.edit(), before);
}

TEST(Shared, AnEditedEmptyOneLeavesOthersEmpty) {
  Numbers edited;
  edited.edit().push_back(1);
  EXPECT_TRUE(Numbers()->empty());
  EXPECT_EQ(edited->size(), 1u);
}

TEST(Shared, AMovedOneIsStillThere) {
  Numbers numbers(std::vector{1});
  const Numbers other = std::move(numbers);
  EXPECT_EQ(*numbers, *other);  // NOLINT(bugprone-use-after-move): the law
}

}  // namespace
}  // namespace syncline
