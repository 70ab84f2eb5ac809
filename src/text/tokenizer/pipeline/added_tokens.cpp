#include "text/tokenizer/pipeline/added_tokens.h"

#include <algorithm>
#include <fmt/format.h>

namespace braid::text {
namespace {

bool ends_with_word(std::string_view text) {
  if (text.empty()) return false;
  std::size_t begin = text.size() - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xc0U) == 0x80U) --begin;
  return is_word_character(decode_utf8(text, begin).code);
}

bool begins_with_word(std::string_view text) { return !text.empty() && is_word_character(decode_utf8(text, 0).code); }

AddedToken read_token(const ConfigNode& node) {
  AddedToken token;
  token.id = static_cast<TokenId>(node.count_or("id", 0));
  token.content = node.text("content");
  token.single_word = node.flag_or("single_word", false);
  token.strips_left = node.flag_or("lstrip", false);
  token.strips_right = node.flag_or("rstrip", false);
  token.special = node.flag_or("special", false);
  token.normalized = node.flag_or("normalized", !token.special);
  return token;
}

}  // namespace

AddedTokens AddedTokens::read(const ConfigNode& document, const WordModelVocabulary& vocabulary, const Normalizer* normalizer,
                              std::vector<std::string>& warnings) {
  AddedTokens added;
  if (!document.find("added_tokens")) return added;
  auto next = static_cast<TokenId>(vocabulary.ids.size());
  std::unordered_map<std::string, TokenId> known;
  for (const ConfigNode& node : document.items("added_tokens")) {
    AddedToken token = read_token(node);
    if (node.failed()) return added;
    if (token.content.empty()) continue;
    const TokenId named = token.id;
    if (const auto same = known.find(token.content); same != known.end()) {
      token.id = same->second;
    } else if (const auto id = find_token(vocabulary.ids, token.content)) {
      token.id = *id;
    } else {
      token.id = next++;
    }
    known.emplace(token.content, token.id);
    if (token.id != named)
      warnings.push_back(fmt::format("tokenizer.json: '{}' has the id {} there, but {} by its place", token.content, named, token.id));
    added.add(std::move(token));
  }
  for (AddedToken& token : added.tokens_) {
    NormalizedText text{token.content, 0};
    if (token.normalized && normalizer != nullptr) normalizer->apply(text);
    token.normal = std::move(text.text);
    (token.normalized ? added.normalized_ : added.raw_).insert(token.normal, token.id);
  }
  return added;
}

// The last token of an id counts.
void AddedTokens::add(AddedToken token) {
  const auto [entry, is_new] = by_id_.emplace(token.id, tokens_.size());
  if (is_new) {
    tokens_.push_back(std::move(token));
  } else {
    tokens_[entry->second] = std::move(token);
  }
}

void AddedTokens::make_special(TokenId id) {
  if (const auto entry = by_id_.find(id); entry != by_id_.end()) tokens_[entry->second].special = true;
}

// The longest token at the first place where one begins, then on from its end. wanted(token, begin): whether it may stand there.
template <class Wanted>
std::vector<AddedTokens::Found> AddedTokens::find(std::string_view text, const PrefixTrie& trie, Wanted wanted) const {
  std::vector<Found> found;
  std::size_t begin = 0;  // of the text that is not in `found` yet
  for (std::size_t at = 0; at < text.size();) {
    const PrefixTrie::Match match = trie.may_begin_with(text[at]) ? trie.longest(text, at) : PrefixTrie::Match();
    if (match.token < 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[by_id_.at(match.token)];
    std::size_t start = at;
    std::size_t stop = at + match.size;
    at = stop;
    if (!wanted(token, start)) continue;
    if (token.single_word && (ends_with_word(text.substr(0, start)) || begins_with_word(text.substr(stop)))) continue;
    if (token.strips_left) start = std::max(begin_of_trailing_space(text.substr(0, start)), begin);
    if (token.strips_right) stop += end_of_leading_space(text.substr(stop));
    if (begin < start) found.push_back({begin, start, -1});
    found.push_back({start, stop, match.token});
    begin = stop;
  }
  if (begin < text.size()) found.push_back({begin, text.size(), -1});
  return found;
}

PieceList AddedTokens::cut(std::string_view text, const Normalizer* normalizer, const EncodeOptions& options) const {
  PieceList list;
  const auto wanted = [&](const AddedToken& token, std::size_t begin) {
    return !token.special || (options.parse_special && !std::ranges::binary_search(options.literal, begin));
  };
  for (const Found& part : find(text, raw_, wanted)) {
    const std::string_view piece = text.substr(part.begin, part.end - part.begin);
    if (part.token < 0) {
      append_normalized(piece, part.begin == 0 ? decode_utf8(piece, 0).size : 0, normalizer, options, list);
      continue;
    }
    list.pieces.push_back({list.text.size(), list.text.size() + piece.size(), part.token, 0});
    list.text += piece;
  }
  return list;
}

// Offsets of the text do not count here, so where some are to be literal no control token is.
void AddedTokens::append_normalized(std::string_view text, std::size_t origin, const Normalizer* normalizer, const EncodeOptions& options,
                                    PieceList& out) const {
  NormalizedText normal{std::string(text), origin};
  if (normalizer != nullptr) normalizer->apply(normal);
  const bool control = options.parse_special && options.literal.empty();
  const std::size_t offset = out.text.size();
  for (const Found& part : find(normal.text, normalized_, [&](const AddedToken&token, std::size_t) { return control || !token.special; }))
    out.pieces.push_back({offset + part.begin, offset + part.end, part.token, normal.origin - std::min(normal.origin, part.begin)});
  out.text += normal.text;
}

}  // namespace braid::text
