#include "text/tokenizer/pipeline/word_model.h"

#include <algorithm>
#include <fmt/format.h>

namespace braid::text {
namespace {

constexpr std::uint64_t kMostTokens = std::uint64_t{1} << 24U;  // merges are ranked exactly up to here

// A word is a token, or unknown.
class WholeWordModel final : public WordModel {
 public:
  WholeWordModel(TokenMap ids, std::optional<TokenId> unknown) : ids_(std::move(ids)), unknown_(unknown) {}
  void tokenize(std::string_view word, WordScratch&, std::vector<TokenId>& out) const override {
    if (const auto id = find_token(ids_, word)) {
      out.push_back(*id);
    } else if (unknown_) {
      out.push_back(*unknown_);
    }
  }

 private:
  TokenMap ids_;
  std::optional<TokenId> unknown_;
};

std::unique_ptr<const WordModel> read_whole_word_model(const ConfigNode& node, WordModelVocabulary& vocabulary) {
  if (!read_ids(node, vocabulary)) return nullptr;
  vocabulary.unknown = find_token(vocabulary.ids, node.text_or("unk_token", "<unk>"));
  return std::make_unique<WholeWordModel>(vocabulary.ids, vocabulary.unknown);
}

// Files of old versions name no type.
std::string type_of(const ConfigNode& node) {
  if (node.find("type")) return node.text("type");
  if (node.find("merges")) return "BPE";
  if (const auto vocab = node.find("vocab"); vocab && vocab->is_array()) return "Unigram";
  return node.find("continuing_subword_prefix") ? "WordPiece" : "WordLevel";
}

}  // namespace

std::optional<TokenId> find_token(const TokenMap& tokens, std::string_view text) {
  const auto found = tokens.find(text);
  return found == tokens.end() ? std::nullopt : std::optional(found->second);
}

bool read_ids(const ConfigNode& node, WordModelVocabulary& vocabulary) {
  const auto vocab = node.find("vocab");
  if (!vocab || !vocab->is_object()) {
    node.fail(ErrorCode::kBadFile, fmt::format("'{}.vocab' is not an object of tokens and their ids", node.path()));
    return false;
  }
  const simdjson::dom::object members = vocab->value().get_object();
  vocabulary.ids.reserve(members.size());
  std::uint64_t end = 0;
  for (const auto& [text, value] : members) {
    std::uint64_t id = 0;
    if (value.get(id) != simdjson::SUCCESS || id >= kMostTokens) {
      vocab->fail(ErrorCode::kBadFile, fmt::format("the id of '{}' in '{}' is not a number below {}", text, vocab->path(), kMostTokens));
      return false;
    }
    vocabulary.ids.insert_or_assign(std::string(text), static_cast<TokenId>(id));
    end = std::max(end, id + 1);
  }
  if (end > 2 * members.size() + 100'000) {
    vocab->fail(ErrorCode::kBadFile, fmt::format("'{}' has ids up to {} for {} tokens", vocab->path(), end - 1, members.size()));
    return false;
  }
  vocabulary.texts.resize(end);
  for (const auto& [text, id] : vocabulary.ids) vocabulary.texts[static_cast<std::size_t>(id)] = text;
  return true;
}

std::unique_ptr<const WordModel> read_word_model(const ConfigNode& node, WordModelVocabulary& vocabulary) {
  const std::string type = type_of(node);
  if (node.failed()) return nullptr;
  if (type == "BPE") return read_pair_merging_model(node, vocabulary);
  if (type == "Unigram") return read_unigram_model(node, vocabulary);
  if (type == "WordPiece") return read_longest_match_model(node, vocabulary);
  if (type == "WordLevel") return read_whole_word_model(node, vocabulary);
  node.refuse_type(type, "'BPE', 'Unigram', 'WordLevel', 'WordPiece'");
  return nullptr;
}

}  // namespace braid::text
