// Any bytes are settings of one framework or another, or an InputError: flags and command lines,
// YAML, TOML, JSON, protobuf's text, captured launches.
#include "imports/frameworks/settings.h"

#include "formats/json/text.h"
#include "imports/frameworks/shell.h"
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
    const auto json = try_parse_json(text);
    if (json && json->is_object()) (void)frameworks::of_deepspeed(*json, "x");
  });
  attempt([&] { (void)frameworks::of_prototxt(text, "x"); });
  attempt([&] {
    const auto json = try_parse_json(text);
    if (!json || !launch::is_capture(*json)) return;
    const auto launches = launch::launches_of(*json, "x");
    (void)frameworks::with_overrides(frameworks::training_command(launches, 0));
  });
  attempt([&] {
    const auto lines = frameworks::read_shell_lines(text);
    const auto training = frameworks::training_command(frameworks::launches_in_lines(lines), 0);
    std::vector<std::string> guessed;
    (void)frameworks::launch_settings(training.launch, "x", guessed);
    (void)frameworks::of_megatron(training.flags, "x", training.script);
  });
  attempt([&] {
    const auto json = try_parse_json(text);
    if (json && json->is_object()) (void)frameworks::of_own_settings(*json, "x");
  });
  const Json yaml = parse_yaml("x", text);
  const Json none = Json::object();
  attempt([&] { (void)frameworks::of_nemo(yaml, none, "x"); });
  attempt([&] { (void)frameworks::of_neox(yaml, none, "x"); });
  attempt([&] {
    if (frameworks::is_lightning(yaml)) (void)frameworks::of_lightning(yaml, "x");
  });
  attempt([&] {
    if (frameworks::is_composer(yaml)) (void)frameworks::of_composer(yaml, "x");
  });
  attempt([&] {
    const bool launch = frameworks::is_accelerate(yaml);
    (void)frameworks::of_hugging_face(launch ? none : yaml, launch ? yaml : none, "x");
  });
  attempt([&] {
    std::vector<std::string> said;
    if (frameworks::is_bridge_yaml(yaml)) {
      (void)frameworks::of_megatron(frameworks::flags_of_bridge(yaml, "x", said), "x");
    }
  });
  attempt([&] {
    if (frameworks::is_paddle_nlp(yaml)) (void)frameworks::of_paddle_nlp(yaml, "x");
    if (frameworks::is_mindformers(yaml)) (void)frameworks::of_mindformers(yaml, "x");
    if (frameworks::is_automodel(yaml)) (void)frameworks::of_automodel(yaml, "x");
  });
  (void)frameworks::other_framework(yaml);
  (void)frameworks::of_megatron(frameworks::flags_of_yaml(yaml), "x");
}
