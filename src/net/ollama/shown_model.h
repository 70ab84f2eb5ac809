// A model with all that is known of it, as /api/show writes it, and as a Modelfile would make it.
#pragma once

#include "braid/model_registry.h"

#include <string>

namespace braid::net::ollama {

// `verbose`: lists of its metadata and its tensors, too.
std::string shown_model(const ModelDetails& details, bool verbose);

// A line each, as in a Modelfile: "temperature 0.5".
std::string parameter_lines(const ValueDict& parameters, std::string_view before = "");

// What would make it once more.
std::string modelfile_of(const ModelDetails& details);

}  // namespace braid::net::ollama
