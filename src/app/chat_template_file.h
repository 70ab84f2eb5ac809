// A chat template that the user names instead of the model file's own.
#pragma once

#include "braid/result.h"
#include "text/chat_templates.h"

#include <string>
#include <vector>

namespace braid::app {

// The name of a common template, a Jinja file, or a Hugging Face tokenizer_config.json or chat_template.json whose `chat_template` is one text or a list of named
// ones. kIo or kBadFile with the file's name.
Result<std::vector<text::TemplateSource>> read_chat_template_file(const std::string& path);

}  // namespace braid::app
