// A Modelfile: what a model is made of, as a text.
#pragma once

#include "braid/model_registry.h"
#include "braid/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace braid::registry {

struct Modelfile {
  std::vector<std::string> from;      // a name or a path; with a projector two of them
  std::vector<std::string> adapters;  // paths
  ModelSettings settings;
};

// FROM, PARAMETER, TEMPLATE, SYSTEM, ADAPTER, LICENSE and MESSAGE, one a line; a text in """ may have several lines, "#" begins a comment.
// kInvalidArgument with the number of the line.
Result<Modelfile> parse_modelfile(std::string_view text);

}  // namespace braid::registry
