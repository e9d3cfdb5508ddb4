#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/built_in.h"
#include "cli/options.h"
#include "cli/verbs.h"
#include "core/input/document.h"

namespace syncline::cli {

VerbAction add_schema(CLI::App& app) {
  auto part = std::make_shared<std::string>(input::schema_parts().front());
  auto answers = std::make_shared<bool>(false);
  auto* verb =
      app.add_subcommand("schema", "Print the JSON schema, for completion and checks in an editor");
  CLI::Option* of_file = verb->add_option("part", *part, "contents of the file")
                             ->transform(one_of_words(input::schema_parts()))
                             ->capture_default_str();
  verb->add_flag("--answers", *answers, "print the schema of --format json's answers, instead")
      ->excludes(of_file);
  verb->footer(
      "Keep it next to your files, and name it in their first key:\n"
      "  syncline schema > schema.json     \"$schema\": \"schema.json\"");
  return [part, answers] {
    if (*answers) {
      std::cout << answers_schema();
    } else if (*part == input::schema_parts().front()) {
      std::cout << schema_text();
    } else {
      std::cout << input::schema_part(Json::parse(schema_text()), *part).dump(2) << "\n";
    }
    return 0;
  };
}

}  // namespace syncline::cli
