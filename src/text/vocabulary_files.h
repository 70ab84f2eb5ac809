// Folders whose tokenizer is vocab.json and merges.txt, as transformers' older code saves those of GPT-2 and Qwen 2.
#pragma once

#include "braid/result.h"
#include "files/hf_folder.h"

#include <optional>
#include <string>

namespace braid::text {

// The tokenizer.json that transformers would make of them; nothing: the folder has no such files. kUnsupported: tokenizer_config.json names
// another class; kBadFile with the file that is damaged.
Result<std::optional<std::string>> tokenizer_json_of(const files::HfFolder& folder);

}  // namespace braid::text
