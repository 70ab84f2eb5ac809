// What a GGUF file or a folder of the hub says about the model in it.
#pragma once

#include "braid/model_registry.h"
#include "braid/result.h"

#include <string>

namespace braid::registry {

struct WeightsFacts {
  ModelFacts facts;
  std::string licence;        // its name or text; empty: not said
  std::string chat_template;  // empty: none
  std::uint64_t bytes = 0;    // of all files
};

// Reads the beginning of the files, and checks that they are whole: a file that is still being written is kBadFile.
Result<WeightsFacts> read_weights(const std::string& path);

// All metadata of it, as JSON; lists of more than 32 elements are null unless `verbose`. With `verbose` also its tensors.
Result<ValueDict> read_metadata(const std::string& path, bool verbose, ValueList& tensors);

// From a template's text what a model can do besides answering.
void add_template_abilities(std::string_view text, ModelFacts& facts);

}  // namespace braid::registry
