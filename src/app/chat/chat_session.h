// A chat in the terminal: what is typed is answered, or is a command that begins with "/".
#pragma once

#include "app/chat/chat_models.h"
#include "app/chat/chat_partner.h"
#include "app/chat/line_editor.h"

#include <optional>
#include <string>
#include <string_view>

namespace braid::app {

class ChatSession {
 public:
  // `folder`: for chats that are kept. The partner and the editor outlive it.
  ChatSession(ChatPartner& partner, LineEditor& editor, ChatState state, std::string folder, ChatModels models);

  // Until the end of what is typed, or /bye, or the name of another model to go on with.
  std::optional<std::string> run();

 private:
  enum class Next { kGoOn, kEnd };

  std::optional<std::string> next_text();
  void answer(const std::string& text);
  Next obey(std::string_view command);
  Result<void> set(std::string_view what);
  Result<void> set_parameter(std::string_view what);
  Result<void> show(std::string_view what) const;
  Result<void> save(std::string_view what) const;
  Result<void> load(std::string_view what);
  Result<std::string> path_of(std::string_view name) const;

  ChatPartner& partner_;
  LineEditor& editor_;
  ChatState state_;
  std::string folder_;
  ChatModels models_;
  std::optional<std::string> next_;
};

}  // namespace braid::app
