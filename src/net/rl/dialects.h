// What language models do for a learner: whole rollouts, and the actions of policies that speak.
#pragma once

#include "net/generation/dialect.h"

#include <memory>

namespace braid::net::rl {

// POST /v1/rl/rollout: what completions and chats take, and answers in tokens: for each prompt a group of n completions.
std::unique_ptr<const Dialect> rollout();

// POST /v1/rl/act of a language model: each observation is a text, a chat or token ids; the answer to it is the action.
std::unique_ptr<const Dialect> text_policy();

}  // namespace braid::net::rl
