#include "text/chat_templates.h"

#include <string_view>
#include <utility>

namespace braid::text {

Result<std::vector<TemplateSource>> read_template_sources(const files::GgufFile& file) {
  std::vector<TemplateSource> sources;
  const auto unnamed = file.string_or("tokenizer.chat_template", "");
  if (!unnamed) return unnamed.error();
  if (!unnamed->empty()) sources.push_back({"default", *unnamed});
  constexpr std::string_view kNamed = "tokenizer.chat_template.";
  for (const auto& [key, value] : file.metadata()) {
    if (!key.starts_with(kNamed)) continue;
    auto named = file.string_or(key, "");
    if (!named) return named.error();
    sources.push_back({key.substr(kNamed.size()), std::move(*named)});
  }
  return sources;
}

ChatTemplates::ChatTemplates(std::vector<TemplateSource> sources, const std::string& bos_token, const std::string& eos_token) {
  for (TemplateSource& source : sources) {
    Result<ChatTemplate> program = ChatTemplate::parse(source.text, bos_token, eos_token);
    const RoleRules roles = program && !program->is_go() ? find_role_rules(*program) : RoleRules{};
    entries_.push_back({std::move(source), std::move(program), roles});
  }
}

const ChatTemplates::Entry* ChatTemplates::find(std::string_view name) const {
  for (const Entry& entry : entries_)
    if (entry.source.name == name) return &entry;
  return nullptr;
}

const ChatTemplates::Entry* ChatTemplates::choose(const ChatPrompt& prompt) const {
  if (entries_.empty()) return nullptr;
  const Entry* chosen = nullptr;
  const Value* documents = prompt.kwargs.find("documents");
  if (!prompt.tools.is_null()) chosen = find("tool_use");
  if (chosen == nullptr && documents != nullptr && !documents->is_null()) chosen = find("rag");
  if (chosen == nullptr) chosen = find("default");
  return chosen != nullptr ? chosen : &entries_.front();
}

}  // namespace braid::text
