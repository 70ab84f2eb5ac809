// What was fitted as an adapter of PEFT, which is also the checkpoint of a job; beside LoRA lies what else a fit goes on from.
#pragma once

#include "braid/result.h"
#include "braid/tunable_layer.h"
#include "net/training/head_fit.h"
#include "net/training/lora_fit.h"

#include <cstddef>
#include <string>

namespace braid::net::training {

// Any thread. kIo with what could not be written: what stood there before stays.
Result<void> write_head(const std::string& folder, const LinearHead& head);

// kInvalidArgument ("resume"): there is none of that width.
Result<LinearHead> read_head(const std::string& folder, std::size_t width);

// Likewise. LoRA is of the state's parameters, and is written before the state: what ends in between leaves one of an earlier epoch beside it.
Result<void> write_lora(const std::string& folder, const LoraOptions& options, const TunableLayer& layer, const LoraState& state);

// kInvalidArgument ("resume"): there is none of so many parameters, or of other options.
Result<LoraState> read_lora(const std::string& folder, const LoraOptions& options, std::size_t parameters);

// Whether it is there and no job has written it.
bool is_of_others(const std::string& folder);

}  // namespace braid::net::training
