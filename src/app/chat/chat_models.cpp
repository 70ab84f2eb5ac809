#include "app/chat/chat_models.h"

#include "app/models/model_service.h"

#include <memory>

namespace braid::app {

Result<void> ChatModels::make(const std::string& name, const ChatState& state) const {
  if (talks_with_.empty()) return invalid_argument("a model is made of a chat with one that `braid list` knows");
  const Result<std::unique_ptr<ModelService>> service = find_model_service(data_, host_);
  if (!service) return service.error();
  ModelRecipe recipe{.model = name, .from = talks_with_};
  recipe.settings.system = state.system;
  recipe.settings.parameters = state.parameters;
  recipe.settings.messages = before_;
  for (const Value& message : state.messages) {  // a model keeps words, not images
    const Value* role = message.find("role");
    const Value* content = message.find("content");
    if (role != nullptr && content != nullptr) recipe.settings.messages.push_back(ValueDict{{"role", *role}, {"content", *content}});
  }
  return (*service)->create(recipe, [](const TransferProgress&) { return true; });
}

Result<void> ChatModels::check(const std::string& name) const {
  const Result<std::unique_ptr<ModelService>> service = find_model_service(data_, host_);
  if (!service) return service.error();
  const Result<Value> shown = (*service)->show(name, false);
  return shown ? Result<void>() : shown.error();
}

}  // namespace braid::app
