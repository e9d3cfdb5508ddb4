#include <algorithm>
#include <array>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/built_in.h"
#include "cli/options.h"
#include "cli/verbs.h"
#include "formats/input/document.h"

namespace syncline::cli {
namespace {

// Returns a kind of reports/answers.json as JSON Schema. A kind is a type ("number or null"), a
// part of the file ("#memory"), or literal words and numbers ("run or tune"). It may also be a list
// [kind], an object {member: kind} without other members ("member!" is required, "*" is the kind of
// all others), or {"description": ..., "is": kind}.
Json schema_of(const Json& kind);

Json schema_of_word(const Json& word) {
  if (!word.is_string()) return {{"const", word}};
  const auto text = word.get<std::string>();
  if (text.starts_with("#")) return {{"$ref", "#/definitions/" + text.substr(1)}};
  constexpr std::array kTypes{"boolean", "number", "object", "string"};
  Json words = Json::array();
  for (std::size_t begin = 0, end = 0; end != text.npos; begin = end + 4) {
    end = text.find(" or ", begin);
    words.push_back(text.substr(begin, end - begin));
  }
  const bool type = std::ranges::find(kTypes, words[0].get<std::string>()) != kTypes.end();
  if (words.size() == 1) return {{type ? "type" : "const", words[0]}};
  return {{type ? "type" : "enum", words}};
}

Json schema_of_members(const Json& members) {
  Json schema{{"type", "object"}, {"additionalProperties", false}};
  for (const auto& [name, kind] : members.items()) {
    const bool required = name.ends_with("!");
    const std::string bare = name.substr(0, name.size() - (required ? 1 : 0));
    (name == "*" ? schema["additionalProperties"] : schema["properties"][bare]) = schema_of(kind);
    if (required) schema["required"].push_back(bare);
  }
  return schema;
}

Json schema_of(const Json& kind) {
  if (kind.is_array()) {
    Json list{{"type", "array"}};
    if (!kind.empty()) list["items"] = schema_of(kind[0]);
    return list;
  }
  if (!kind.is_object()) return schema_of_word(kind);
  if (!kind.contains("is")) return schema_of_members(kind);
  Json schema{{"description", kind["description"]}};
  schema.update(schema_of(kind["is"]));
  return schema;
}

// Returns the schema of all answers, which begin with the same members (reports/answer.h).
Json schema_of_answers() {
  const Json file = Json::parse(answers_text());
  Json schema{{"$schema", "http://json-schema.org/draft-07/schema#"},
              {"title", file["title"]},
              {"description", file["description"]}};
  for (const auto& [name, kind] : file["answers"].items()) {
    Json whole = kind;
    if (kind.contains("verb")) {
      whole["is"] = {{"syncline!", "#syncline"}, {"format!", "#format"}, {"verb!", kind["verb"]},
                     {"scenario", "string"},     {"doubts", {"string"}}, {"remarks", {"string"}}};
      whole["is"].update(kind["is"]);
    }
    schema["anyOf"].push_back(schema_of_word("#" + name));
    schema["definitions"][name] = schema_of(whole);
  }
  for (const auto& [name, kind] : file["parts"].items()) {
    schema["definitions"][name] = schema_of(kind);
  }
  return schema;
}

}  // namespace

VerbAction add_schema(CLI::App& verb) {
  auto part = std::make_shared<std::string>(input::schema_parts().front());
  auto answers = std::make_shared<bool>(false);
  CLI::Option* of_file = verb.add_option("part", *part, "contents of the file")
                             ->transform(one_of_words(input::schema_parts()))
                             ->capture_default_str();
  verb.add_flag("--answers", *answers, "print the schema of --format json's answers, instead")
      ->excludes(of_file);
  verb.footer(
      "Keep it next to your files, and name it in their first key:\n"
      "  syncline schema > schema.json     \"$schema\": \"schema.json\"");
  return [part, answers] {
    if (*answers) {
      std::cout << schema_of_answers().dump(1) << "\n";
    } else if (*part == input::schema_parts().front()) {
      std::cout << schema_text();
    } else {
      std::cout << input::schema_part(Json::parse(schema_text()), *part).dump(2) << "\n";
    }
    return 0;
  };
}

}  // namespace syncline::cli
