// What PEFT calls tensors: "base_model.model." and a module of the base, then which part of it.
#pragma once

#include "braid/result.h"
#include "files/byte_source.h"
#include "model/adapters/peft_config.h"
#include "model/adapters/stored_adapter.h"

#include <map>
#include <string>

namespace braid::model {

struct PeftModule {
  StoredMatrix stored;  // without a name
  bool is_table = false;
  std::string parameter = {};  // of the module, that it is about instead of a layer's matrix; empty: none
};

// By the modules' names in the base's own code, or, of a parameter with a matrix for each expert, by its own. Of each all parts are there, and
// its rank is the configuration's. They lie in the source.
Result<std::map<std::string, PeftModule>> read_peft_modules(const PeftConfig& config, const files::ByteSource& source);

}  // namespace braid::model
