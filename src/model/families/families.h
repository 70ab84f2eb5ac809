// All families of models that this build knows.
#pragma once

#include "braid/result.h"
#include "files/gguf.h"
#include "files/hf_folder.h"
#include "model/model_shape.h"

#include <string>

namespace braid::model {

// kUnsupported: a sound file of an architecture, or with a feature, that this build lacks. kBadFile: a key is missing, out of
// range, or contradicts another one; the message names the key, what was found and what was expected.
Result<ModelShape> describe_model(const files::GgufFile& file);

// A folder as the file that a converter would make of it, but for its tokenizer; tensors stay where they are in the folder's mappings.
// Errors likewise.
Result<files::GgufContents> read_folder(const files::HfFolder& folder);

// "gemma2, gpt2, llama", for messages.
std::string known_architectures();

}  // namespace braid::model
