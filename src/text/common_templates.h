// Chat templates by name, for models whose file has none.
#pragma once

#include "text/chat_templates.h"
#include "text/tokenizer/vocabulary.h"

#include <optional>
#include <string_view>
#include <vector>

namespace braid::text {

// "chatml", "llama3", …; nullopt for another name.
std::optional<TemplateSource> common_template(std::string_view name);
std::vector<std::string_view> common_template_names();

// ChatML where the vocabulary has its tokens, else "plain".
std::string_view fitting_template(const Vocabulary& vocabulary);

}  // namespace braid::text
