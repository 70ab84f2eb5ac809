// The body of POST /v1/rl/act that is about a network: JSON, or a safetensors file.
#pragma once

#include "braid/policy.h"
#include "braid/result.h"
#include "braid/served_model.h"
#include "braid/tensor.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace braid::net::rl {

struct ActRequest {
  const ServedNetwork* network = nullptr;
  std::vector<std::optional<Tensor>> inputs;  // [the network's]: observations, and states where they are given
  bool gives_states = false;                  // hidden_states is there
  bool deterministic = false;
  std::optional<std::vector<std::uint64_t>> seeds;  // one for all rows, or one for each
  std::optional<std::int64_t> step;
  std::optional<std::int32_t> priority;
  std::string session;  // empty: none
  std::chrono::seconds time_to_live{300};
  bool resets_session = false;
  bool ends_session = false;
  bool packed = false;
  bool as_file = false;  // the answer is a safetensors file, as the request was
};

// Nullopt: it names no network, and there may be language models (`may_generate`). kInvalidArgument with the path of what is wrong. What is
// immutable of the networks: any thread.
Result<std::optional<ActRequest>> read_act(const ModelDirectory& models, bool may_generate, std::string& body);

}  // namespace braid::net::rl
