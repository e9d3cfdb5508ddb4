// Families of models by their model_type, each as the list of parameters that transformers gives
// it, in the order of use. tests/frameworks compares each list with transformers.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/json/reader.h"
#include "imports/models/parameters.h"
#include "imports/observed.h"

namespace syncline::job::models {

// Head of a model, by the class that its config names. kWords is of a masked model, or of an
// encoder and its decoder; kCausal of a decoder alone.
enum class End : std::uint8_t {
  kNone,
  kWords,
  kCausal,
  kClasses,    // one of a whole sample
  kTaught,     // one of a whole sample, and one as a teacher says
  kEachToken,  // one of each token
  kSpans,      // an answer's first and last token
  kChoices,    // one number a choice
  kSounds,     // one of a whole sample of sound
  kPairs,      // whether two texts follow each other
  kPretrain,   // what a family is trained for first
  kPixels,     // one of each pixel
  kBoxes,      // one of each object, and its box
  kEncoder     // the encoder alone, without a head
};

// Parameters of a model in the order of use.
class Laid {
 public:
  explicit Laid(End end = End::kNone) : end_(end), known_(end == End::kNone) {}

  void add(const std::string& name, const std::vector<std::int64_t>& shape, double multiplied = 0);
  // Adds a weight [out, in], and a bias; `share` of the tokens are multiplied by it.
  void linear(const std::string& name, std::int64_t in, std::int64_t out, bool bias,
              double share = 1);
  void norm(const std::string& name, std::int64_t width, bool bias);
  void table(const std::string& name, std::int64_t rows, std::int64_t width);
  // Adds a language head; if `tied`, the last table is multiplied as one.
  void head(const std::string& name, std::int64_t words, std::int64_t width, bool tied,
            bool bias = false);
  void append(Parameters more);

  // Returns true if the model ends so, which the caller lays. A reader that asks for no such end
  // knows none, and its class is refused.
  bool ends_in(std::initializer_list<End> ends);
  bool has_words() { return ends_in({End::kWords, End::kCausal, End::kPretrain}); }
  bool end_is_known() const { return known_; }

  Parameters all;

 private:
  End end_;
  bool known_;
};

inline constexpr std::int64_t kMaxExperts = 4096;

// Warnings of a config that settings of the job may answer. The second ends one.
inline constexpr const char* kUnreadQuantisation =
    "quantization_config is not read: all parameters are assumed to be trained, where a quantised "
    "job trains adapters alone";
inline constexpr const char* kUntoldTokens =
    " tokens (operators.sequence), which a config does not tell";
// The beginning of a warning that names the tokens by which a model's FLOPs are counted.
inline constexpr const char* kFlopsBy = "FLOPs of the weights' products with ";

// Reads keys of a config, within the limits of all models. A key that is null counts as missing.
bool has_value(Reader& reader, const char* key);
std::int64_t size(Reader& reader, const char* key, std::int64_t most);
std::int64_t size_or(Reader& reader, const char* key, std::int64_t fallback, std::int64_t most);
// Reads sizes of up to 2^24: all but counts of layers and heads.
std::int64_t width(Reader& reader, const char* key);
std::int64_t width_or(Reader& reader, const char* key, std::int64_t fallback);
std::int64_t layers(Reader& reader, const char* key);
bool flag_or(Reader& reader, const char* key, bool fallback);
// Throws InputError unless a switch is absent or has the only value that is modelled.
void expect_flag(Reader& reader, const char* key, bool known);
std::int64_t classes_of(Reader& reader, std::int64_t fallback);
std::int64_t channels_of(Reader& reader);

struct Family {
  std::string_view type;  // model_type
  void (*lay)(Reader&, Laid&);
};
const std::vector<Family>& decoders();
const std::vector<Family>& encoders();
const std::vector<Family>& towers();    // of images, of text and images, of sound
const std::vector<Family>& pyramids();  // of images in stages

// Lays the text model of a config's text_config, or of its own keys if it has none: a family, or an
// architecture of the catalogue.
void lay_text(Reader& reader, const char* usual_type, Laid& laid);
// Lays a decoder of text that attends to an encoder's output: BART's, mBART's or GPT-2's. Returns
// its width; 0: its type is none of these.
std::int64_t lay_crossing_decoder(Reader& reader, const std::string& type, Laid& laid);
// Lays Whisper's encoder, by its keys.
void lay_sound_encoder(Reader& reader, Laid& laid);
// Lays a model of one of the catalogue's shapes; returns false if its model_type is none of theirs.
bool lay_shaped(Reader& reader, const std::string& type, Laid& laid);

// Returns the letters and digits of a name, in lower case.
std::string plain_name(std::string_view name);
// Returns the config.json of models that are known by name, the checkpoint's without its maker.
const std::map<std::string, Json>& named_configs();
// Returns a model's name there: "Qwen3-8B" as "qwen3_8b"; null: none.
const std::string* find_named(std::string_view name);
// Returns the workload of a config.json. `name`: the model's, or empty.
Observed workload_of_config(const Json& json, const std::string& file, const std::string& name);

// LoRA: two matrices of `rank` next to each target, the ends of products' names. Without targets
// they are at all products but the head. With rank 0 a part of the model itself is trained.
struct Adapters {
  std::int64_t rank = 8;
  std::vector<std::string> targets{};
  std::vector<std::string> trained{};  // modules that are trained in full, such as "lm_head"
  int bits = 0;                        // of the frozen products' weights; 0: not quantised
  std::vector<std::string> begins{};   // of trained parameters' names; "$" ends a whole name
  std::vector<std::string> frozen{};   // likewise of frozen ones: all others are trained
  bool usual = false;                  // q_proj and v_proj are peft's default, by any name
  bool text_alone = false;             // what reads images is frozen, without adapters
};
// Returns the workload of these adapters of a model's workload: their gradients, next to frozen
// parameters of format `dtype`, with the FLOPs of one sample. Throws InputError if a target is none
// of the model's. Adds beginnings that no name has to `unmatched`.
Json with_adapters(const Json& workload, const Adapters& adapters, const std::string& dtype,
                   std::vector<std::string>& unmatched);

}  // namespace syncline::job::models
