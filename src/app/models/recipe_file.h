// A Modelfile with the files that it names, brought to where the model is made.
#pragma once

#include "app/models/model_service.h"
#include "braid/result.h"

#include <string>

namespace braid::app {

// Reads the Modelfile at `path` ("-": standard input) and puts files that it names, relative to it, into the service.
Result<ModelRecipe> read_recipe_file(ModelService& service, const std::string& path, const ProgressSink& progress);

}  // namespace braid::app
