// A tokenizer.json in the keys that GGUF has for tokenizers, for those who do not read tokenizer.json.
#pragma once

#include "files/gguf.h"

#include <string>
#include <utility>
#include <vector>

namespace braid::text {

// Adds tokenizer.ggml.* to metadata that hold a tokenizer.json: byte-level BPE becomes "gpt2", BPE with byte fallback "llama". Returns what
// cannot be said in these keys, a sentence each; a tokenizer of another kind adds nothing.
std::vector<std::string> add_ggml_tokenizer(std::vector<std::pair<std::string, files::GgufValue>>& metadata);

}  // namespace braid::text
