#include "text/chat_template.h"

#include "text/go_template/chat.h"
#include "text/jinja/from_value.h"
#include "text/jinja/program.h"

#include <utility>

namespace braid::text {

ChatTemplate::ChatTemplate(std::unique_ptr<const jinja::Program> program, std::string bos_token, std::string eos_token)
    : program_(std::move(program)), bos_token_(std::move(bos_token)), eos_token_(std::move(eos_token)) {}
ChatTemplate::ChatTemplate(std::unique_ptr<const go::ChatProgram> program) : go_(std::move(program)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<ChatTemplate> ChatTemplate::parse(std::string_view source, std::string bos_token, std::string eos_token) {
  if (go::is_go_template(source)) {
    Result<go::ChatProgram> program = go::ChatProgram::parse(source);
    if (!program) return program.error();
    return ChatTemplate(std::make_unique<const go::ChatProgram>(std::move(*program)));
  }
  auto program = jinja::Program::parse(source);
  if (!program) return program.error();
  return ChatTemplate(std::make_unique<const jinja::Program>(std::move(*program)), std::move(bos_token), std::move(eos_token));
}

// The variables that chat templates are written for. What `kwargs` names wins, but over messages, tools and
// add_generation_prompt, which the request has in fields of their own.
Result<std::string> ChatTemplate::render(const ChatPrompt& prompt) const {
  if (go_ != nullptr) return go_->render(prompt);
  jinja::Variables variables;
  if (const auto* kwargs = prompt.kwargs.get_if<ValueDict>()) {
    for (const auto& [name, value] : *kwargs) variables.emplace_back(name, jinja::to_object(value));
  }
  const auto add_default = [&](std::string name, jinja::Object value) {
    for (const auto& variable : variables)
      if (variable.first == name) return;
    variables.emplace_back(std::move(name), std::move(value));
  };
  add_default("documents", jinja::Object::None{});
  add_default("bos_token", jinja::Object::from_text(bos_token_));
  add_default("eos_token", jinja::Object::from_text(eos_token_));
  variables.emplace_back("messages", jinja::to_object(prompt.messages));
  variables.emplace_back("tools", jinja::to_object(prompt.tools));
  variables.emplace_back("add_generation_prompt", prompt.add_generation_prompt);
  for (const auto& [name, value] : variables)
    if (value.is_missing()) return invalid_argument(name + " nests too deeply for a chat template", name);
  return program_->render(std::move(variables));
}

}  // namespace braid::text
