// The API keys that a server takes, as they are written down.
#pragma once

#include "braid/result.h"
#include "net/access/rules.h"

#include <string>
#include <string_view>
#include <vector>

namespace braid::app {

// A line for each key: NAME KEY [SETTING=VALUE]..., with words between spaces, and comments from a word that begins with #. Settings:
// requests-per-minute, tokens-per-minute, concurrent-requests (0: no limit; those of `limits` if not given), priority, best-priority and
// cache-salt. Errors name `file` and the line, and quote nothing of it: it may be a key.
Result<std::vector<net::access::ApiKey>> parse_api_keys(std::string_view text, const net::access::Limits& limits, const std::string& file);

// Those of the file, and the one in BRAID_API_KEY under the name "environment". Without a file and that: none. kInvalidArgument when the
// file cannot be read or has none.
Result<std::vector<net::access::ApiKey>> load_api_keys(const std::string& file, const net::access::Limits& limits);

}  // namespace braid::app
