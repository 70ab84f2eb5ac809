// What a policy's network answers: JSON, or a safetensors file.
#pragma once

#include "braid/policy.h"
#include "braid/tensor.h"
#include "net/rl/act_request.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace braid::net::rl {

struct ActAnswer {
  std::string model;
  std::string revision;
  ActionDraw draw;                // that was made
  std::span<const Tensor> drawn;  // as Predictor::act() gives them
  bool tells_states = true;       // false: they stay in a session
};

std::string act_document(const ActRequest& request, const ActAnswer& answer);
std::string act_file(const ActRequest& request, const ActAnswer& answer);

}  // namespace braid::net::rl
