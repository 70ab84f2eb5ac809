// A new model from one that is here, or from uploaded files, with settings of its own.
#pragma once

#include "braid/model_registry.h"
#include "braid/result.h"
#include "registry/library.h"

#include <cstdint>
#include <functional>
#include <string>

namespace braid::registry {

// What this folder cannot do itself.
struct WeightTools {
  // Writes the weights at `from`, a GGUF file or a folder, to `to` as GGUF in the mix `type` ("q4_k_m"). False of `go_on` ends it.
  std::function<Result<void>(const std::string& from, const std::string& to, const std::string& type,
                             const std::function<bool(std::uint64_t done, std::uint64_t total)>& go_on)>
      quantize;
  // Whether a chat template can be used, Jinja's or Go's; may be empty.
  std::function<Result<void>(const std::string& text)> check_template = {};
};

Result<void> create_model(Library& library, const WeightTools& tools, const ModelRecipe& recipe, const ProgressSink& progress);

}  // namespace braid::registry
