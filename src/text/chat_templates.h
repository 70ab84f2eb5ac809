// The chat templates of one model: usually one, sometimes one for calls and one for documents as well.
#pragma once

#include "braid/result.h"
#include "braid/text_codec.h"
#include "files/gguf.h"
#include "text/chat_template.h"
#include "text/role_rules.h"

#include <string>
#include <vector>

namespace braid::text {

struct TemplateSource {
  std::string name;  // "default", "tool_use", "rag" …, as Hugging Face names them
  std::string text;
};

// tokenizer.chat_template and each tokenizer.chat_template.<name>. Empty when the model has none.
Result<std::vector<TemplateSource>> read_template_sources(const files::GgufFile& file);

// Immutable: any thread.
class ChatTemplates {
 public:
  struct Entry {
    TemplateSource source;
    Result<ChatTemplate> program;  // an error when the interpreter does not take it
    RoleRules roles;
  };

  ChatTemplates(std::vector<TemplateSource> sources, const std::string& bos_token, const std::string& eos_token);

  // "tool_use" for a request with tools, "rag" for one with documents, where the model has them; otherwise "default", or the first.
  // Null when there is none.
  const Entry* choose(const ChatPrompt& prompt) const;
  const std::vector<Entry>& all() const { return entries_; }

 private:
  const Entry* find(std::string_view name) const;

  std::vector<Entry> entries_;
};

}  // namespace braid::text
