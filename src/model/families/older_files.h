// Files as converters wrote them once, in today's form.
#pragma once

#include "braid/result.h"
#include "files/gguf.h"

namespace braid::model {

// DeepSeek's of before May 2025, which have one matrix for the keys and values of latents; with it beside today's two, it goes. All others
// are returned as they are. kBadFile: a key or a tensor that this takes is missing or wrong, which the message names.
Result<files::GgufFile> in_todays_form(files::GgufFile file);

}  // namespace braid::model
