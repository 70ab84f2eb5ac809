// The models of the registry, for a chat at the terminal.
#pragma once

#include "app/chat/chat_partner.h"
#include "app/options.h"
#include "braid/result.h"

#include <string>
#include <utility>

namespace braid::app {

// Through the server that runs, or without one.
class ChatModels {
 public:
  // `talks_with`: one of them, or empty; `before`: what its maker has every chat begin with, where that is no part of the chat's own messages.
  ChatModels(const RunOptions& options, std::string talks_with, ValueList before)
      : data_(options.data), host_(options.host), talks_with_(std::move(talks_with)), before_(std::move(before)) {}

  // A model like the one that is talked with, which begins with this chat.
  Result<void> make(const std::string& name, const ChatState& state) const;
  // kNotFound with the nearest names.
  Result<void> check(const std::string& name) const;

 private:
  DataOptions data_;
  std::string host_;
  std::string talks_with_;
  ValueList before_;
};

}  // namespace braid::app
