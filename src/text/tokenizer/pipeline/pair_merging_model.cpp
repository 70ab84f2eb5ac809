#include "text/tokenizer/pipeline/pair_merging_model.h"

#include "text/tokenizer/unicode.h"

#include <array>
#include <fmt/format.h>
#include <utility>

namespace braid::text {
namespace {

class PairMergingModel final : public WordModel {
 public:
  explicit PairMergingModel(PairMergingRules rules) : rules_(std::move(rules)) {
    common_.fill(kNoPiece);
    for (char32_t code = 0; code < common_.size(); ++code) {
      std::string text;
      append_utf8(text, code);
      common_[code] = find_token(rules_.ids, text).value_or(kNoPiece);
    }
    for (unsigned byte = 0; byte < 256; ++byte) byte_tokens_[byte] = find_token(rules_.ids, fmt::format("<0x{:02X}>", byte)).value_or(-1);
  }

  void tokenize(std::string_view word, WordScratch& scratch, std::vector<TokenId>& out) const override {
    if (rules_.whole_words_first)
      if (const auto id = find_token(rules_.ids, word)) return out.push_back(*id);
    split_characters(word, scratch.pieces);
    rules_.merges.merge(scratch.pieces, scratch.merges);
    for (const Piece& piece : scratch.pieces)
      if (piece.size > 0) out.push_back(piece.id);
  }

 private:
  // A character that is no token becomes its bytes, or unknown; an unknown one stands behind bytes that follow it, as in the library.
  void split_characters(std::string_view word, std::vector<Piece>& pieces) const {
    pieces.clear();
    bool unknown = false;  // one is still to be added
    const auto add = [&](TokenId id) { pieces.push_back({id, 0, 1}); };
    for (std::size_t at = 0; at < word.size();) {
      const Utf8Char c = decode_utf8(word, at);
      const std::size_t end = at + c.size;
      if (const PieceId id = piece_of(c.code, word.substr(at, c.size), at == 0, end == word.size()); id != kNoPiece) {
        if (std::exchange(unknown, false)) add(*rules_.unknown);
        add(id);
      } else if (!add_bytes(spelling(word.substr(at, c.size), at == 0, end == word.size()), pieces) && rules_.unknown) {
        if (unknown && !rules_.fuse_unknown) add(*rules_.unknown);
        unknown = true;
      }
      at = end;
    }
    if (unknown) add(*rules_.unknown);
  }

  std::string spelling(std::string_view character, bool first, bool last) const {
    std::string text = first ? std::string() : rules_.prefix;
    text += character;
    if (last) text += rules_.suffix;
    return text;
  }

  PieceId piece_of(char32_t code, std::string_view character, bool first, bool last) const {
    const bool plain = (first || rules_.prefix.empty()) && (!last || rules_.suffix.empty());
    if (plain && code < common_.size()) return common_[code];
    return (plain ? find_token(rules_.ids, character) : find_token(rules_.ids, spelling(character, first, last))).value_or(kNoPiece);
  }

  bool add_bytes(std::string_view text, std::vector<Piece>& pieces) const {
    if (!rules_.byte_fallback) return false;
    for (const char byte : text)
      if (byte_tokens_[static_cast<unsigned char>(byte)] < 0) return false;
    for (const char byte : text) pieces.push_back({byte_tokens_[static_cast<unsigned char>(byte)], 0, 1});
    return true;
  }

  PairMergingRules rules_;
  std::array<TokenId, 256> byte_tokens_{};  // -1: none
  std::array<PieceId, 0x800> common_{};     // of characters of one or two bytes, which need no hashing
};

// A merge is two texts, or one with a space between them.
std::optional<std::pair<std::string_view, std::string_view>> pair_of(simdjson::dom::element merge) {
  std::string_view line;
  if (merge.get(line) == simdjson::SUCCESS) {
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos) return std::nullopt;
    return std::pair(line.substr(0, space), line.substr(space + 1));
  }
  simdjson::dom::array parts;
  std::string_view left;
  std::string_view right;
  if (merge.get(parts) != simdjson::SUCCESS || parts.size() != 2 || parts.at(0).get(left) != simdjson::SUCCESS ||
      parts.at(1).get(right) != simdjson::SUCCESS)
    return std::nullopt;
  return std::pair(left, right);
}

struct RankedMerge {
  TokenId left, right, merged;
};

std::vector<RankedMerge> read_merges(const ConfigNode& node, const PairMergingRules& rules) {
  std::vector<RankedMerge> merges;
  simdjson::dom::array array;
  const auto member = node.find("merges");
  if (!member || member->value().get(array) != simdjson::SUCCESS) {
    node.fail(ErrorCode::kBadFile, fmt::format("'{}.merges' is not an array", node.path()));
    return merges;
  }
  for (const simdjson::dom::element merge : array) {
    std::string_view line;
    if (merge.get(line) == simdjson::SUCCESS && line.starts_with("#version")) continue;
    const auto pair = pair_of(merge);
    if (!pair || pair->second.size() < rules.prefix.size()) {
      member->fail(ErrorCode::kBadFile, fmt::format("merge {} of '{}' is not two tokens", merges.size(), member->path()));
      return merges;
    }
    const auto left = find_token(rules.ids, pair->first);
    const auto right = find_token(rules.ids, pair->second);
    const auto merged = find_token(rules.ids, std::string(pair->first).append(pair->second.substr(rules.prefix.size())));
    if (!left || !right || !merged) {
      member->fail(ErrorCode::kBadFile, fmt::format("merge {} of '{}', '{}' and '{}', is not of tokens of the vocabulary", merges.size(),
                                                    member->path(), pair->first, pair->second));
      return merges;
    }
    merges.push_back({*left, *right, *merged});
  }
  return merges;
}

}  // namespace

std::unique_ptr<const WordModel> make_pair_merging_model(PairMergingRules rules) {
  return std::make_unique<PairMergingModel>(std::move(rules));
}

std::unique_ptr<const WordModel> read_pair_merging_model(const ConfigNode& node, WordModelVocabulary& vocabulary) {
  if (!read_ids(node, vocabulary)) return nullptr;
  PairMergingRules rules;
  rules.ids = vocabulary.ids;
  rules.prefix = node.text_or("continuing_subword_prefix", "");
  rules.suffix = node.text_or("end_of_word_suffix", "");
  rules.byte_fallback = node.flag_or("byte_fallback", false);
  rules.fuse_unknown = node.flag_or("fuse_unk", false);
  rules.whole_words_first = node.flag_or("ignore_merges", false);
  if (node.find("unk_token")) rules.unknown = vocabulary.unknown = find_token(rules.ids, node.text("unk_token"));
  const std::vector<RankedMerge> merges = read_merges(node, rules);
  if (node.failed()) return nullptr;
  rules.merges.reserve(merges.size());
  // Of two merges of a pair the library takes the later, this table the first that it is given.
  for (std::size_t rank = merges.size(); rank-- > 0;)
    rules.merges.add(merges[rank].left, merges[rank].right, -static_cast<float>(rank), merges[rank].merged);
  return make_pair_merging_model(std::move(rules));
}

}  // namespace braid::text
