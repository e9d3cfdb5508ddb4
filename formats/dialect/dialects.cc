#include "formats/dialect/dialects.h"

#include "formats/dialect/megatron.h"

namespace syncline::dialect {

std::vector<Dialect> all_dialects() {
  return {paddle_dialect(),  paddle_dygraph_dialect(), mindspore_dialect(), pytorch_ddp_dialect(),
          horovod_dialect(), megatron_dialect(),       deepspeed_dialect(), hf_trainer_dialect(),
          fsdp_dialect(),    torchft_dialect(),        diloco_dialect()};
}

}  // namespace syncline::dialect
