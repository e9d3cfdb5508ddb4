// Large inputs of one kind: pieces that nest, chain or multiply, alone and after a valid file, and
// valid files with one list, object or line grown. A reader takes time by their size, and no stack.
// SYNCLINE_FUZZ_LARGE=1 (make fuzz) gives each target a megabyte of each piece.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "tests/fuzz/fuzz_target.h"
#include "tests/support/corpus.h"

namespace syncline::fuzz {
namespace {

std::size_t large_size() {
  return std::getenv("SYNCLINE_FUZZ_LARGE") != nullptr ? std::size_t{1} << 20
                                                       : std::size_t{1} << 16;
}

// A '#' is counted up.
constexpr std::string_view kPieces[] = {"[",
                                        "]",
                                        "{",
                                        "(",
                                        "[1]",
                                        "[0-131071]",
                                        "[0-131071][]",
                                        "a.",
                                        "{\"a\":",
                                        "[{\"a\":[",
                                        "\"k#\":1,",
                                        "k#: 1, ",
                                        "k# = 1\n",
                                        "k#=\"1\" ",
                                        "- ",
                                        "? ",
                                        "${A",
                                        "$(",
                                        "$A",
                                        "`",
                                        "\"",
                                        "'",
                                        "\\",
                                        "\"\\\"",
                                        "<a>",
                                        "<a k#='1'/>",
                                        "<!ENTITY x# '&x;'>",
                                        "&x#;",
                                        "--k# 1 ",
                                        "s#,",
                                        "131072,",
                                        ";",
                                        "1e",
                                        "#",
                                        "\n",
                                        "\r\n#\r\n",
                                        "\t",
                                        " ",
                                        std::string_view("\0\0\0\0", 4),
                                        "\xff",
                                        "&a [*a]",
                                        "A=$A$A\n",
                                        "if [ $A ]; then\n",
                                        "SwitchName=s# Switches=s1#\n",
                                        "SwitchName=s# Nodes=n#x[0-131070]\n"};

std::string repeated(std::string_view piece) {
  std::string text;
  for (int number = 0; text.size() < large_size(); ++number) {
    for (const char letter : piece) {
      text += letter == '#' && piece.size() > 1 ? std::to_string(number) : std::string(1, letter);
    }
  }
  return text;
}

using Json = nlohmann::ordered_json;

// Returns the value as another entry of the same list: with another name, word or number.
Json numbered(Json value, int number) {
  if (value.is_string()) value = value.get<std::string>() + std::to_string(number);
  if (value.is_number_integer()) value = number;
  if (value.is_object() && value.contains("name")) value["name"] = numbered(value["name"], number);
  return value;
}

void grow(Json& list) {
  const Json first = list.front();
  const std::size_t each = first.dump().size() + 8;
  for (int number = 0; number < static_cast<int>(large_size() / each); ++number) {
    if (list.is_array()) {
      list.push_back(numbered(first, number));
    } else {
      list.get_ref<Json::object_t&>().emplace_back("k" + std::to_string(number), first);
    }
  }
}

// Returns the line with its first number counted up.
std::string counted(const std::string& line, int number) {
  const auto digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  const auto begin = std::find_if(line.begin(), line.end(), digit);
  return std::string(line.begin(), begin) + std::to_string(number) +
         std::string(std::find_if_not(begin, line.end(), digit), line.end());
}

// Returns up to `most` of the numbers below `count`, evenly.
std::vector<std::size_t> some_of(std::size_t count, std::size_t most) {
  std::vector<std::size_t> some;
  for (std::size_t i = 0; i < std::min(count, most); ++i) {
    some.push_back(i * count / std::min(count, most));
  }
  return some;
}

constexpr std::size_t kPlaces = 12;  // of one file that grow

// Returns copies of the file: in each, one list or object has many more entries.
std::vector<std::string> grown_json(const Json& root) {
  std::vector<std::string> places;
  const std::function<void(const Json&, const std::string&)> look = [&](const Json& value,
                                                                        const std::string& place) {
    if (!value.is_structured() || value.empty()) return;
    places.push_back(place);
    for (const auto& [key, one] : value.items()) {
      if (key.find_first_of("/~") == key.npos) look(one, place + "/" + key);
    }
  };
  look(root, "");
  std::vector<std::string> all;
  for (const std::size_t i : some_of(places.size(), kPlaces)) {
    Json copy = root;
    grow(copy[Json::json_pointer(places[i])]);
    all.push_back(copy.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  return all;
}

// Returns copies of the file: in each, one line stands many times, with other numbers.
std::vector<std::string> grown_text(const std::string& valid) {
  std::vector<std::pair<std::size_t, std::size_t>> lines;
  for (std::size_t at = 0; at < valid.size();) {
    const std::size_t end = std::min(valid.find('\n', at), valid.size() - 1) + 1;
    lines.emplace_back(at, end);
    at = end;
  }
  std::vector<std::string> all;
  for (const std::size_t i : some_of(lines.size(), kPlaces)) {
    const auto [begin, end] = lines[i];
    const std::string line = valid.substr(begin, end - begin);
    std::string text = valid.substr(0, end);
    for (int number = 0; text.size() < large_size(); ++number) text += counted(line, number);
    all.push_back(text + valid.substr(end));
  }
  return all;
}

// A reader that compares each piece with all others takes minutes for a megabyte.
void expect_read_by_its_size(const Target& target, const std::string& text,
                             const std::string& what) {
  const std::clock_t begin = std::clock();
  try {
    target.read(text);
  } catch (const InputError&) {
  }
  constexpr double kMax = 10;
  EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, kMax)
      << text.size() << " bytes of " << what;
}

class FuzzLarge : public ::testing::TestWithParam<Target> {};

TEST_P(FuzzLarge, IsReadOrRefusedByItsSize) {
  const Target target = GetParam();
  const auto corpus = test::corpus_of(std::string(target.name));
  const std::string& valid = corpus.front();
  for (const std::string_view piece : kPieces) {
    const std::string large = repeated(piece);
    for (const bool alone : {true, false}) {
      expect_read_by_its_size(target, alone ? large : valid + large,
                              "'" + std::string(piece) + (alone ? "'" : "' behind a valid file"));
    }
  }
}

TEST_P(FuzzLarge, AFileWithALongListIsReadByItsSize) {
  constexpr std::size_t kFiles = 8;
  const auto corpus = test::corpus_of(std::string(GetParam().name));
  for (const std::size_t file : some_of(corpus.size(), kFiles)) {
    const Json json = Json::parse(corpus[file], nullptr, false);
    const bool text = json.is_discarded() || !json.is_structured();
    for (const std::string& grown : text ? grown_text(corpus[file]) : grown_json(json)) {
      expect_read_by_its_size(GetParam(), grown, grown.substr(0, 300));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EachTarget, FuzzLarge, ::testing::ValuesIn(targets()),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace syncline::fuzz
