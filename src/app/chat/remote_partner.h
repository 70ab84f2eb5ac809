// A model of a server, in a chat at the terminal.
#pragma once

#include "app/chat/chat_partner.h"
#include "app/options.h"

#include <memory>
#include <string>

namespace braid::app {

// That of the options.
std::unique_ptr<ChatPartner> remote_partner(const std::string& url, const RunOptions& options);

}  // namespace braid::app
