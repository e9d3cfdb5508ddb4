// New knobs: an object of two keys as a table. The table reads the object, refuses what does not
// belong there, writes it, and has its JSON schema. A strategy's knobs are such a table
// (formats/input/knobs.cc); a new one is a field in core/strategy.h and a row there.
#include <cstdio>
#include <string>

#include "core/base/error.h"
#include "formats/input/knob_table.h"

using namespace syncline;

struct WarmUp {
  enum class Shape { kLinear, kSteps } shape = Shape::kLinear;
  int stages = 4;  // of Shape::kSteps
  double seconds = 1;
};

static const input::KnobTable<WarmUp>& warm_up_knobs() {
  using Shape = WarmUp::Shape;
  static const input::KnobTable<WarmUp> table{
      "warm_up",
      [](const input::Setting&, WarmUp&) {},
      {input::knob("shape", &WarmUp::shape,
                   input::words<Shape>({{"linear", Shape::kLinear}, {"steps", Shape::kSteps}}),
                   "How the rate rises. Default linear.")
           .with(input::kDecides)  // it decides whether `stages` has a meaning
           .enable({{"steps", {"stages"}}}),
       input::knob("stages", &WarmUp::stages, input::whole<int>(1, 100),
                   "Stages of the shape \"steps\". Default 4."),
       input::knob("duration_ms", &WarmUp::seconds, input::number<double>({0, 1e6}, 1e-3),
                   "Milliseconds until the full rate. Default 1000.")
           .describe("over % ms")}};
  return table;
}

int main() {
  const Workload workload;
  const Cluster cluster;
  const input::Setting setting{workload, cluster};
  const auto spelling = input::object_of(warm_up_knobs());
  for (const char* text : {R"({})", R"({"shape": "steps", "duration_ms": 250})", R"({"stages": 2})",
                           R"({"shape": "cubic"})"}) {
    std::printf("%-40s  ", text);
    try {
      const WarmUp read = spelling.read({Json::parse(text), "example", "warm_up", setting});
      std::printf("%s%s\n", spelling.write(read).dump().c_str(),
                  input::moved_knobs(warm_up_knobs(), read).c_str());
    } catch (const InputError& error) {
      std::printf("refused\n  %s\n", error.what());
    }
  }
  const auto& stages = warm_up_knobs().knob("stages");
  std::printf("schema of stages: %s\n", stages.schema.dump().c_str());
}
