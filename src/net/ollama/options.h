// What all of Ollama's generating bodies have.
#pragma once

#include "braid/request_defaults.h"
#include "braid/result.h"
#include "braid/value.h"
#include "net/wish/body_fields.h"
#include "net/wish/wish.h"

#include <string>

namespace braid::net::ollama {

// What Ollama samples with where `options` and the operator are silent.
void set_defaults(Wish& wish, const RequestDefaults& defaults);

Result<void> read_options(wish::BodyFields& fields, Value& value, const std::string& path);

// What Dialect::keep_alive has read.
Result<void> check_keep_alive(wish::BodyFields& fields, Value& value, const std::string& path);

}  // namespace braid::net::ollama
