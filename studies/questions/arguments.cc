#include "studies/questions/arguments.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace syncline::questions {
namespace {

Json default_of(const Argument& argument) {
  if (!argument.shown.empty()) return argument.shown;
  return std::visit(
      [](const auto* value) -> Json {
        if constexpr (requires { value->has_value(); }) {
          return value->has_value() ? Json(value->value()) : Json();
        } else if constexpr (requires { value->empty(); }) {
          return value->empty() ? Json() : Json(*value);
        } else {
          return *value;
        }
      },
      argument.value);
}

}  // namespace

std::string keyword(const Argument& argument) {
  std::string name = argument.name;
  std::ranges::replace(name, '-', '_');
  return name;
}

Json describe_arguments(const Arguments& arguments) {
  Json list = Json::array();
  for (const Argument& argument : arguments) {
    list.push_back({{"name", keyword(argument)},
                    {"option", "--" + argument.name},
                    {"default", default_of(argument)},
                    {"help", argument.help}});
  }
  return list;
}

}  // namespace syncline::questions
