// What a chat template makes of roles, found out by rendering it, and conversations in the form that it takes.
#pragma once

#include "braid/value.h"
#include "text/chat_template.h"

namespace braid::text {

struct RoleRules {
  bool system = true;            // it has a system message in front
  bool systems_anywhere = true;  // and others behind it, or later
  bool neighbours = true;        // two messages of a user may follow each other
  bool answer_first = true;      // the assistant may speak before any user
};

// Renders a few short conversations. A template that fails even for one user's message keeps all its freedom.
RoleRules find_role_rules(const ChatTemplate& chat_template);

// Joins what the template does not take apart: system and developer messages into one in front, or into the first user's message, and
// neighbours of one role. Where the assistant may not begin, a user's message without words comes first. `messages` are those of a
// ChatPrompt.
void follow_role_rules(const RoleRules& rules, Value& messages);

}  // namespace braid::text
