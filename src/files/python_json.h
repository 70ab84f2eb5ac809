// JSON as Python's json module writes it: models' folders come from there.
#pragma once

#include <string>
#include <string_view>

namespace braid::files {

// The same document without what simdjson refuses: whole numbers beyond 64 bits become real ones (tokenizer_config.json has one for "no
// limit"), Infinity becomes 1e308. What is no JSON in another way stays so: NaN, which is a fault.
std::string plain_json(std::string_view text);

}  // namespace braid::files
