// How long a model stays loaded, as Ollama's clients say it.
#pragma once

#include "braid/model_host.h"
#include "braid/result.h"
#include "braid/value.h"

#include <optional>
#include <string>
#include <string_view>

namespace braid::net::wish {

// 300, 1.5h, 5m30s, -1m: numbers with units, as Go writes them; a number alone is seconds. Negative: for ever. Nothing: it is none.
std::optional<KeepAlive> parse_keep_alive(std::string_view text);

// The same of a number or a text; nothing of null.
Result<std::optional<KeepAlive>> read_keep_alive(const Value& value, const std::string& path);

// Of an object's member `keep_alive`.
Result<std::optional<KeepAlive>> keep_alive_of(const Value& body);

}  // namespace braid::net::wish
