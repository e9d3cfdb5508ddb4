#include <algorithm>

#include "formats/input/knobs.h"
#include "formats/input/spellings.h"

namespace syncline::input {
namespace {

constexpr double kBytesPerMegabyte = 1e6;

using Rule = Fusion::Rule;

}  // namespace

const KnobTable<Fusion::AssumedCost>& assumed_cost_knobs() {
  using Assumed = Fusion::AssumedCost;
  static const KnobTable<Assumed> table{
      "assumed_cost",
      [](const Setting&, Assumed&) {},
      {knob("ranks", &Assumed::ranks, whole<int>(2, 1 << 20), "Number of ranks that it is for.")
           .require(),
       knob("latency_us", &Assumed::latency, number<Seconds>({0, 1e9}, kMicrosecond),
            "Time of an empty all-reduce, in microseconds.")
           .require()
           .with(kWritten),
       knob("us_per_mbyte", &Assumed::seconds_per_byte,
            number<double>({0, 1e9}, kMicrosecond / kBytesPerMegabyte),
            "Microseconds for each megabyte (1000000 bytes) of payload.")
           .require()
           .with(kWritten)}};
  return table;
}

const KnobTable<BucketTraits::Cuts>& cuts_knobs() {
  using Cuts = BucketTraits::Cuts;
  static const KnobTable<Cuts> table{
      "cuts",
      [](const Setting&, Cuts&) {},
      {knob("tensor", &Cuts::tensor, whole<int>(0, 1 << 30),
            "The gradient's position, counted from 0 in backward order.")
           .require()
           .with(kWritten),
       knob("at", &Cuts::at, rising_ends(),
            "The elements before each cut, counted from 0, ascending.")
           .require()
           .with(kWritten)}};
  return table;
}

namespace {

// Returns knobs that decide which gradients share a bucket.
std::vector<Knob<Fusion>> membership_knobs() {
  return {
      knob("rule", &Fusion::rule, rules(),
           "none: each gradient alone. layer: all gradients of a layer. size: by bytes, give "
           "size_mb. count: by number of tensors, give count. index: by position, give ends. "
           "groups: as listed, give groups. one: everything in one bucket. mg_wfbp: merged "
           "greedily by ready times and costs. Default size, for a fusion that is given; without "
           "one nothing is fused.")
          .patch_schema({{"default", "size"}})
          .with(kDecides | kWritten)
          .enable({{"size", {"size_mb", "first_size_mb", "count", "close", "by_layer", "order"}},
                   {"count", {"count", "close", "by_layer", "order"}},
                   {"index", {"ends"}},
                   {"groups", {"groups", "in_turn"}},
                   {"mg_wfbp", {"min_elements", "costs"}}}),
      knob("size_mb", &Fusion::size, mebibytes(false),
           "Size of a bucket for the rule \"size\", in MiB (1048576 bytes).")
          .require(),
      knob("first_size_mb", &Fusion::first_size, mebibytes(true),
           "Size of the first bucket for the rule \"size\", in MiB. Default: size_mb. Make it "
           "smaller to start communication earlier.")
          .patch_schema({{"minimum", nullptr}, {"default", nullptr}, {"exclusiveMinimum", 0}}),
      knob("count", &Fusion::count, counts(),
           "Tensors in a bucket for the rule \"count\". With the rule \"size\" a bucket also "
           "closes once it has so many tensors.")
          .require([](const Fusion& fusion) { return fusion.rule == Rule::kCount; }),
      knob("ends", &Fusion::ends, rising_ends(),
           "For the rule \"index\": position, counted from 0 in backward order, of the last tensor "
           "of each bucket, ascending. The tensors after the last position form one more bucket.")
          .require(),
      knob("groups", &Fusion::groups, groups(true),
           "For the rule \"groups\": the tensors of each bucket by position, counted from 0 in "
           "backward order, each at most once; they need not be neighbours. Those in no group "
           "travel alone.")
          .require()};
}

// Returns knobs of the closing and release of a bucket, and of its payload.
std::vector<Knob<Fusion>> closing_knobs() {
  return {
      knob("close", &Fusion::close, closes(),
           "For the rule \"size\". after: a bucket closes once it has size_mb or more. before: "
           "it closes before the next tensor would make it exceed size_mb. Default after."),
      knob("by_layer", &Fusion::by_layer, yes_or_no(),
           "Whether whole layers are added to a bucket at a time (see layer_key) instead of "
           "single tensors. Default false."),
      knob("order", &Fusion::order,
           words<Fusion::Order>(
               {{"backward", Fusion::Order::kBackward}, {"forward", Fusion::Order::kForward}}),
           "For the rules \"size\" and \"count\": backward walks through gradients as they become "
           "ready; forward from the first layer on, so that a small bucket is left with the last "
           "layers. Default backward."),
      knob("cycle_ms", &Fusion::cycle, milliseconds(),
           "Gradients are released at ticks, one every so many milliseconds. With the rule "
           "\"size\" and close before, what is ready at a tick is packed without waiting for more "
           "(Horovod); buckets of other rules, or with a first size, a count, whole layers or "
           "another order, go at the first tick at which they are complete. The step time is the "
           "mean over where in a cycle a step begins. 0: released once ready. Default 0."),
      knob("min_elements", &Fusion::min_elements, whole<std::int64_t>(0, kMaxSteps),
           "For the rule \"mg_wfbp\": an open bucket of fewer elements takes the next gradient in "
           "any case. Default 0."),
      knob("costs", &Fusion::costs, list_of(object_of(assumed_cost_knobs()), ""),
           "For the rule \"mg_wfbp\": the assumed cost of an all-reduce by the number of ranks, as "
           "an implementation may have it written down. Default: the costs on this cluster.")
          .patch_schema({{"minItems", nullptr}, {"default", Json::array()}}),
      knob(
          "cast", &Fusion::sum_format,
          words<std::optional<DType>>({{"none", std::nullopt},
                                       {"fp32", DType::kFp32},
                                       {"fp16", DType::kFp16},
                                       {"bf16", DType::kBf16}}),
          "Format of a bucket's sums. fp32: narrower gradients are cast to fp32 in their bucket "
          "and "
          "back (MindSpore). fp16, bf16: gradients leave the backward pass so, narrower than their "
          "parameters (FSDP's reduce_dtype). Default none."),
      knob("layer_key", &Fusion::layer_key,
           words<Fusion::LayerKey>({{"last_dot", Fusion::LayerKey::kLastDot},
                                    {"first_dot", Fusion::LayerKey::kFirstDot}}),
           "Which part of a tensor's name is its layer. last_dot: up to the last '.', as in "
           "PyTorch's \"layer4.2.bn1.weight\". first_dot: up to the first '.', as in Paddle's "
           "\"fc_0.w_0\". Without a '.' the whole name. Default last_dot."),
      knob("align_bytes", &Fusion::align, whole<Bytes>(1, 1 << 20),
           "Each tensor's place in a bucket is padded to a multiple of this many bytes. Default "
           "1, no padding.")};
}

// Returns knobs of the order of buckets, and of cuts of their gradients.
std::vector<Knob<BucketTraits>> turn_knobs() {
  return {
      knob("in_turn", &BucketTraits::in_turn, yes_or_no(),
           "For the rule \"groups\": whether a bucket goes only after those before it in the list "
           "(DDP), instead of once it is ready. With gather_groups, parameters are gathered no "
           "later than those after them in that list (FSDP). Default false."),
      knob("cuts", &BucketTraits::cuts, list_of(object_of(cuts_knobs()), ""),
           "Gradients that travel in parts, each if it has a bucket to itself, and where they are "
           "cut (DeepSpeed, one above reduce_bucket_size). Default: none.")
          .patch_schema({{"minItems", nullptr}, {"default", Json::array()}})};
}

// Returns knobs that pad the places of tensors and the ends of buckets.
std::vector<Knob<BucketTraits>> padding_knobs() {
  return {
      knob("align_elements", &BucketTraits::align_elements, whole<std::int64_t>(1, 1 << 20),
           "Each tensor begins at a multiple of this many elements (Megatron's distributed "
           "optimizer: 64). Default 1."),
      knob("pad_elements", &BucketTraits::pad_elements,
           whole<std::int64_t>(1, std::int64_t{1} << 30),
           "A bucket's end is padded to a multiple of this many elements. Default 1."),
      knob("pad_rows", &BucketTraits::pad_rows, whole<std::int64_t>(1, std::int64_t{1} << 30),
           "The first dimension of each tensor is padded to a multiple of this (FSDP2: the ranks). "
           "Default 1."),
      knob("with_next", &BucketTraits::with_next, yes_or_no(),
           "Whether a bucket goes only once the gradient after its last one is ready too, as it "
           "is found full when that one no longer fits (DeepSpeed). Default false."),
      knob("sums_frozen", &BucketTraits::sums_frozen, yes_or_no(),
           "Whether listed groups with a gradient are summed with room for their frozen "
           "parameters, and the backward pass gathers no group early that it does not reach "
           "(FSDP1). Default false.")};
}

// Makes knobs of a strategy from knobs of its framework's buckets.
std::vector<Knob<Strategy>> of_framework(std::vector<Knob<BucketTraits>> knobs) {
  return of_member(&Strategy::traits, of_member(&FrameworkTraits::buckets, std::move(knobs)));
}

}  // namespace

const KnobTable<Strategy>& fusion_knobs() {
  static const KnobTable<Strategy> table{
      "fusion",
      [](const Setting&, Strategy& strategy) {
        // An object "fusion" without keys fuses by size.
        set_fusion(strategy, {});
        strategy.fusion.rule = Rule::kSize;
      },
      join_knobs(
          join_knobs(of_member(&Strategy::fusion, membership_knobs()), of_framework(turn_knobs())),
          join_knobs(of_member(&Strategy::fusion, closing_knobs()),
                     of_framework(padding_knobs())))};
  return table;
}

}  // namespace syncline::input
