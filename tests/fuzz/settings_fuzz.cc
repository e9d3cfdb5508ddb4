// Any bytes are settings of one framework or another, or an InputError: flags and shell scripts,
// YAML, TOML, JSON.
#include "imports/frameworks/settings.h"

#include "formats/json/text.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/json_mutator.h"

SYNCLINE_FUZZ_TARGET(settings, bytes) {
  using namespace syncline;
  namespace frameworks = job::frameworks;
  const std::string text(bytes);
  const auto attempt = [&](auto read) {
    try {
      read();
    } catch (const InputError&) {
      // The next one may read it.
    }
  };
  attempt([&] { (void)frameworks::of_megatron(frameworks::flags_of(text), "x"); });
  attempt([&] { (void)frameworks::of_torchtitan(parse_toml("x", text), "x"); });
  attempt([&] {
    const auto json = json_in(text);
    if (json && json->is_object()) (void)frameworks::of_deepspeed(*json, "x");
  });
  const Json yaml = parse_yaml("x", text);
  (void)frameworks::of_megatron(frameworks::flags_of_yaml(yaml), "x");
}
