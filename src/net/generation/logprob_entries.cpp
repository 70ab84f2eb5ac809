#include "net/generation/logprob_entries.h"

#include "net/json/write.h"

#include <cstddef>
#include <fmt/format.h>
#include <iterator>

namespace braid::net {
namespace {

// "token":…,"logprob":…,"bytes":[…]
void append_chat_token(std::string& out, const TextCodec& codec, TokenId id, float logprob, bool as_ids) {
  const std::string bytes = codec.token_bytes(id);
  out += R"("token":)";
  json::append_lossy_string(out, as_ids ? name_by_id(id) : bytes);
  out += R"(,"logprob":)";
  json::append_float(out, logprob);
  out += R"(,"bytes":[)";
  for (std::size_t i = 0; i < bytes.size(); ++i)
    fmt::format_to(std::back_inserter(out), "{}{}", i > 0 ? "," : "", static_cast<unsigned>(static_cast<unsigned char>(bytes[i])));
  out += ']';
}

}  // namespace

std::string name_by_id(TokenId id) { return fmt::format("token_id:{}", id); }

void append_logprob_entries(std::string& out, const TextCodec& codec, std::span<const Token> tokens, bool as_ids) {
  for (std::size_t entry = 0; entry < tokens.size(); ++entry) {
    const Token& token = tokens[entry];
    out += entry > 0 ? ",{" : "{";
    append_chat_token(out, codec, token.id, token.logprob, as_ids);
    out += R"(,"top_logprobs":[)";
    const std::span<const TokenLogprob> top = token.top();
    for (std::size_t i = 0; i < top.size(); ++i) {
      out += i > 0 ? ",{" : "{";
      append_chat_token(out, codec, top[i].id, top[i].logprob, as_ids);
      out += '}';
    }
    out += "]}";
  }
}

}  // namespace braid::net
