// The arguments of a call whose answer was cut.
#pragma once

#include <string>

namespace braid::net {

// `text` begins a JSON object, which max_tokens may have cut: closed, so that it is a whole one, without a member whose value has not
// begun.
std::string whole_object(const std::string& text);

}  // namespace braid::net
