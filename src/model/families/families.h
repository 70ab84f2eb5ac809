// All families of models that this build knows.
#pragma once

#include "braid/result.h"
#include "files/gguf.h"
#include "files/hf_folder.h"
#include "model/model_shape.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace braid::model {

// kUnsupported: a sound file of an architecture, or with a feature, that this build lacks. kBadFile: a key is missing, out of
// range, or contradicts another one; the message names the key, what was found and what was expected.
Result<ModelShape> describe_model(const files::GgufFile& file);

// A folder as the file that a converter would make of it, but for its tokenizer; tensors stay where they are in the folder's mappings.
// Errors likewise.
Result<files::GgufContents> read_folder(const files::HfFolder& folder);

// Where a part of a folder's matrix lies in the file that read_folder() makes of it.
struct ModulePlace {
  std::string module;                                  // in the folder, without ".weight"
  std::string tensor;                                  // in the file, likewise
  std::int32_t expert = -1;                            // which of the tensor's matrices; -1: all of it
  std::vector<std::int32_t> order = {}, columns = {};  // as GgufTensor's
  std::vector<float> factors = {};
  float plus = 0.0F;    // to be added to every value of a vector
  bool across = false;  // the matrix has the module's rows as columns
  bool turned = false;  // the folder has the module's inputs as rows
};

// Of modules of that many [rows, columns], of norms [values, 0], by their names in the folder, of which nothing but config.json need be there.
// kBadFile, kUnsupported: the folder cannot be read, or something else than rows in another order is made of a module.
Result<std::vector<ModulePlace>> place_modules(const files::HfFolder& folder,
                                               const std::map<std::string, std::pair<std::int64_t, std::int64_t>>& modules);

// A folder's config.json that says what is said of a model of a file, as far as names and the order of rows depend on it.
Result<std::string> config_like(const ModelShape& model);

// "gemma2, gpt2, llama", for messages.
std::string known_architectures();

}  // namespace braid::model
