#include "net/ollama/own_settings.h"

#include "net/ollama/options.h"

#include <string>

namespace braid::net::ollama {
namespace {

bool is_system(const Value& message) {
  const Value* role = message.find("role");
  return role != nullptr && *role == Value("system");
}

}  // namespace

void apply_own_parameters(wish::BodyFields& fields) {
  if (fields.model.settings == nullptr) return;
  for (const auto& parameter : fields.model.settings->parameters) {
    Value one = ValueDict{parameter};
    static_cast<void>(read_options(fields, one, "options"));
  }
}

std::size_t put_own_messages(ValueList& messages, const ServedModel& model) {
  if (model.settings == nullptr) return 0;
  const std::size_t before = messages.size();
  const bool has_system = !messages.empty() && is_system(messages.front());
  messages.insert(messages.begin() + (has_system ? 1 : 0), model.settings->messages.begin(), model.settings->messages.end());
  if (!has_system && !model.settings->system.empty())
    messages.insert(messages.begin(), ValueDict{{"role", "system"}, {"content", model.settings->system}});
  return messages.size() - before;
}

}  // namespace braid::net::ollama
