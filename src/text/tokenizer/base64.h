// Base64 (RFC 4648), as tokenizers' files hold bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace braid::text {

// Nothing for a character that is no digit.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace braid::text
