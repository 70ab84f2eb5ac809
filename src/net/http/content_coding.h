// Bodies that come compressed (RFC 9110, 8.4).
#pragma once

#include "braid/result.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace braid::net::http {

inline constexpr std::string_view kContentCodings = "gzip, deflate, zstd";  // as Accept-Encoding names them

// The body of a request that has a Content-Encoding. kTooLarge when more than `most` bytes come out, of which no more are made;
// kUnsupportedMedia when the coding is another than these or a list of several; kInvalidArgument when the body is not in it. Any thread.
Result<std::string> decode_body(std::string_view body, std::string_view coding, std::size_t most);

// Whether there is anything to decode.
bool is_coded(std::string_view coding);

}  // namespace braid::net::http
