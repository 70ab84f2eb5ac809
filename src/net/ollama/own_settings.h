// What a model's maker wants of it (a Modelfile), beneath what a request says.
#pragma once

#include "braid/served_model.h"
#include "braid/value.h"
#include "net/wish/body_fields.h"

#include <cstddef>

namespace braid::net::ollama {

// The model's own parameters, as if they stood in `options`; for before those of the request are read. What is none here changes nothing.
void apply_own_parameters(wish::BodyFields& fields);

// Puts the model's system prompt, where the messages do not begin with one, and its first messages before those of a request. How many.
std::size_t put_own_messages(ValueList& messages, const ServedModel& model);

}  // namespace braid::net::ollama
