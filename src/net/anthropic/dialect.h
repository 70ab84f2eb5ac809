// Anthropic's Messages as a dialect.
#pragma once

#include "net/generation/dialect.h"

#include <memory>

namespace braid::net::anthropic {

extern const Voice kVoice;

std::unique_ptr<const Dialect> messages();

}  // namespace braid::net::anthropic
