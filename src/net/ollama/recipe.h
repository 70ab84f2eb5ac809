// Bodies of /api/create, and what a Modelfile says in their form.
#pragma once

#include "braid/model_registry.h"
#include "braid/result.h"
#include "braid/value.h"

#include <string>

namespace braid::net::ollama {

// The member "model", or "name" as older clients have it.
Result<std::string> model_in(const Value& document);

// Of an object; it may be moved out of. kInvalidArgument with the field's path.
Result<ModelRecipe> read_recipe(Value& document);

}  // namespace braid::net::ollama
