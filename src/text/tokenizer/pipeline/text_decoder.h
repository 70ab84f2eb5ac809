// From tokens back to text: the "decoder" of tokenizer.json.
#pragma once

#include "text/tokenizer/pipeline/config_node.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace braid::text {

// Immutable: any thread may use it.
class TextDecoder {
 public:
  virtual ~TextDecoder() = default;
  // Of all tokens of a text; joined they are the text. What is no UTF-8 becomes U+FFFD, as the library counts it.
  virtual void decode(std::vector<std::string>& tokens) const = 0;
  // The bytes of one token in the middle of a text, where no first or last token is treated otherwise.
  virtual std::string bytes(std::string token) const = 0;
};

// Absent: tokens have spaces between them. Null when `node` has none that is known: the fault is then in the node.
std::unique_ptr<const TextDecoder> read_text_decoder(const std::optional<ConfigNode>& node);

}  // namespace braid::text
