// Which tokens a prompt and an answer may have, and how they are told. The names are vLLM's.
#include "net/json/fields.h"
#include "net/wish/parameters.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <limits>
#include <string>
#include <utility>

namespace braid::net::wish {
namespace {

using json::at_index;

constexpr std::size_t kMaxBadWords = 1024;
constexpr std::size_t kMaxBadWordBytes = 256;

Result<void> read_allowed_tokens(BodyFields& fields, Value& value, const std::string& path) {
  Result<std::vector<TokenId>> ids = read_token_ids(value, path, fields.model);
  if (!ids) return ids.error();
  if (ids->empty()) return invalid_argument(fmt::format("'{}' is empty: no token could come", path), path);
  fields.wish.allowed_tokens = std::move(*ids);
  return {};
}

Result<void> read_bad_words(BodyFields& fields, Value& value, const std::string& path) {
  const auto* list = value.get_if<ValueList>();
  if (list == nullptr) return json::wrong_type(path, "an array of strings", value);
  if (list->size() > kMaxBadWords)
    return invalid_argument(fmt::format("'{}' has {} words, at most {} may be given", path, list->size(), kMaxBadWords), path);
  for (std::size_t i = 0; i < list->size(); ++i) {
    const std::string item_path = at_index(path, i);
    Result<std::string> word = json::read_string((*list)[i], item_path);
    if (!word) return word.error();
    if (word->empty() || word->size() > kMaxBadWordBytes)
      return invalid_argument(fmt::format("'{}' must have from 1 to {} bytes", item_path, kMaxBadWordBytes), item_path);
    fields.bad_words.push_back(std::move(*word));
  }
  return {};
}

Result<void> read_truncate(BodyFields& fields, Value& value, const std::string& path) {
  const Result<std::int64_t> count = json::read_integer(value, path, -1);
  if (!count) return count.error();
  if (*count == 0) return invalid_argument(fmt::format("'{}' must be -1 or at least 1", path), path);
  fields.wish.prompt_tail = static_cast<std::int32_t>(std::min<std::int64_t>(*count, std::numeric_limits<std::int32_t>::max()));
  return {};
}

Result<void> read_add_special(BodyFields& fields, Value& value, const std::string& path) {
  const Result<bool> wanted = json::read_bool(value, path);
  if (!wanted) return wanted.error();
  fields.wish.add_special = *wanted;
  return {};
}

Result<void> read_skip_special(BodyFields& fields, Value& value, const std::string& path) {
  const Result<bool> skip = json::read_bool(value, path);
  if (!skip) return skip.error();
  fields.wish.control_text = !*skip;
  return {};
}

constexpr std::array kTokens = {
    Parameter{"allowed_token_ids", read_allowed_tokens},
    Parameter{"bad_words", read_bad_words},
    Parameter{"truncate_prompt_tokens", read_truncate},
    Parameter{"add_special_tokens", read_add_special},
    Parameter{"skip_special_tokens", read_skip_special},
    Parameter{"spaces_between_special_tokens", FlagRule{&Wish::control_spaces}},
    Parameter{"return_tokens_as_token_ids", FlagRule{&Wish::tokens_as_ids}},
};

}  // namespace

std::span<const Parameter> token_parameters() { return kTokens; }

// As at the beginning of a word and within one.
Result<void> encode_bad_words(BodyFields& fields) {
  auto& sequences = fields.wish.banned_sequences;
  for (const std::string& word : fields.bad_words) {
    for (const std::string& text : {word, " " + word}) {
      Result<std::vector<TokenId>> ids = inner_tokens(text, *fields.model.codec);
      if (!ids) return ids.error();
      if (!ids->empty() && std::find(sequences.begin(), sequences.end(), *ids) == sequences.end()) sequences.push_back(std::move(*ids));
    }
  }
  return {};
}

}  // namespace braid::net::wish
