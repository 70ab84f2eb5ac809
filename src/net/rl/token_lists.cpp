#include "net/rl/token_lists.h"

#include "net/json/write.h"

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>

namespace braid::net::rl {

void want_tokens(Wish& wish) {
  wish.return_token_ids = true;
  wish.sampling.top_logprobs = std::max(wish.sampling.top_logprobs, 0);
  wish.sampling.drawn_logprob = true;
  wish.scores_text_only = false;
}

const std::string& revision_of(const ServedModel& model) { return model.adapter.index != 0 ? model.adapter.revision : model.fingerprint; }

void append_numbers(std::string& out, std::span<const float> numbers) {
  out += '[';
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) out += ',';
    json::append_float(out, numbers[i]);
  }
  out += ']';
}

void append_ids(std::string& out, std::span<const TokenId> ids) { fmt::format_to(std::back_inserter(out), "[{}]", fmt::join(ids, ",")); }

void append_logprobs(std::string& out, std::span<const Token> tokens, float Token::*which) {
  out += '[';
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) out += ',';
    json::append_float(out, tokens[i].*which);
  }
  out += ']';
}

}  // namespace braid::net::rl
