// The text side of a Hugging Face folder, as the metadata that a GGUF file has for it.
#pragma once

#include "braid/result.h"
#include "files/gguf.h"
#include "files/hf_folder.h"

#include <string>
#include <utility>
#include <vector>

namespace braid::text {

// Adds the tokenizer's file and tokenizer_config.json as they are, chat templates, end tokens and sampling defaults. kBadFile names the file that is damaged;
// kUnsupported: the folder has no tokenizer.
Result<void> add_folder_text(const files::HfFolder& folder, std::vector<std::pair<std::string, files::GgufValue>>& metadata);

}  // namespace braid::text
