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
  wish.tells_revisions = true;
  wish.scores_text_only = false;
}

namespace {

// What was loaded has no revision of its own.
const std::string& told(const std::string& revision, const ServedModel& model) { return revision.empty() ? model.fingerprint : revision; }

template <class Value, class NumberOf>
void append_each(std::string& out, std::span<const Value> values, NumberOf number_of) {
  out += '[';
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ',';
    json::append_float(out, number_of(values[i]));
  }
  out += ']';
}

}  // namespace

const std::string& revision_of(const ServedModel& model) { return told(model.adapter.revision, model); }

const std::string& revision_of(std::span<const Token> tokens, const ServedModel& model) {
  const auto last = std::find_if(tokens.rbegin(), tokens.rend(), [](const Token& token) { return token.revision() != nullptr; });
  return last != tokens.rend() ? told(*last->revision(), model) : revision_of(model);
}

void append_revisions(std::string& out, std::span<const Token> tokens, const ServedModel& model) {
  const std::string* revision = &revision_of(model);
  std::size_t begin = 0;
  const auto append = [&](std::size_t end) {
    fmt::format_to(std::back_inserter(out), R"({}{{"revision":{},"begin":{},"end":{}}})", begin > 0 ? "," : "", json::quoted(*revision),
                   begin, end);
    begin = end;
  };
  out += '[';
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].revision() == nullptr) continue;
    if (i > 0) append(i);
    revision = &told(*tokens[i].revision(), model);
  }
  append(tokens.size());
  out += ']';
}

void append_numbers(std::string& out, std::span<const float> numbers) {
  append_each(out, numbers, [](float number) { return number; });
}

void append_ids(std::string& out, std::span<const TokenId> ids) { fmt::format_to(std::back_inserter(out), "[{}]", fmt::join(ids, ",")); }

void append_logprobs(std::string& out, std::span<const Token> tokens) {
  append_each(out, tokens, [](const Token& token) { return token.logprob; });
}

void append_drawn_logprobs(std::string& out, std::span<const Token> tokens) {
  append_each(out, tokens, [](const Token& token) { return token.drawn_logprob(); });
}

}  // namespace braid::net::rl
