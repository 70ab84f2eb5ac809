#include "text/tokenizer/vocabulary.h"

#include "text/tokenizer/token_roles.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace braid::text {
namespace {

// Splitting a token into pairs takes time quadratic in its length.
constexpr std::size_t kMaxTokenBytes = 2048;

class VocabularyReader {
 public:
  explicit VocabularyReader(const files::GgufFile& file) : file_(file) {}

  Result<Vocabulary> read() {
    read_kind();
    if (!error_) read_entries();
    if (!error_) read_special_tokens();
    if (!error_) read_flags();
    if (!error_) collect_end_of_generation();
    if (!error_) read_infill();
    if (error_) return std::move(*error_);
    return std::move(vocabulary_);
  }

 private:
  void fail(ErrorCode code, const std::string& sentence) {
    if (!error_) error_ = Error{code, file_.name() + ": " + sentence, {}};
  }

  template <class T>
  T take(Result<T> value) {
    if (value) return std::move(*value);
    if (!error_) error_ = value.error();
    return T{};
  }

  void read_kind() {
    const std::string model = take(file_.string_or("tokenizer.ggml.model", ""));
    if (error_) return;
    if (model == "llama") {
      vocabulary_.kind = TokenizerKind::kSentencePiece;
    } else if (model == "t5") {
      vocabulary_.kind = TokenizerKind::kUnigram;
    } else if (model == "gpt2" || model == "gemma4" || model == "whitespace") {
      read_word_rules(model == "gemma4" ? model : std::string());
    } else if (model == "bert") {
      vocabulary_.kind = TokenizerKind::kWordPiece;
    } else if (model.empty()) {
      fail(ErrorCode::kBadFile, "found no 'tokenizer.ggml.model', expected the model to contain its tokenizer");
    } else {
      fail(ErrorCode::kUnsupported,
           fmt::format("found tokenizer model '{}', expected one of 'llama', 'gpt2', 'bert', 't5', 'gemma4', 'whitespace'", model));
    }
  }

  void read_word_rules(std::string name) {
    if (name.empty()) name = take(file_.string_or("tokenizer.ggml.pre", ""));
    if (error_) return;
    if (name.empty()) {
      vocabulary_.warnings.push_back("the model does not name its pre-tokenizer (tokenizer.ggml.pre): 'default' is used and may be wrong");
      name = "default";
    }
    const auto rules = word_rules_named(name);
    if (!rules) return fail(rules.error().code, rules.error().message);
    vocabulary_.words = **rules;
    vocabulary_.kind = (*rules)->plain_text ? TokenizerKind::kCharacterPair : TokenizerKind::kBytePair;
  }

  // Null when absent; an error when present with another type.
  template <class Item>
  const std::vector<Item>* array(std::string_view key) {
    const files::GgufValue* value = file_.find(key);
    if (value == nullptr) return nullptr;
    const auto* array = std::get_if<files::GgufArray>(value);
    const auto* items = array != nullptr ? std::get_if<std::vector<Item>>(&array->items) : nullptr;
    if (items == nullptr) fail(ErrorCode::kBadFile, fmt::format("metadata key '{}' is not an array of the expected type", key));
    return items;
  }

  void read_entries() {
    const auto* texts = array<std::string>("tokenizer.ggml.tokens");
    const auto* scores = array<double>("tokenizer.ggml.scores");
    const auto* types = array<std::int64_t>("tokenizer.ggml.token_type");
    if (error_) return;
    if (texts == nullptr || texts->empty()) return fail(ErrorCode::kBadFile, "found no tokens in 'tokenizer.ggml.tokens'");
    if (texts->size() > static_cast<std::size_t>(std::numeric_limits<TokenId>::max()))
      return fail(ErrorCode::kBadFile, fmt::format("found {} tokens, expected at most 2^31 - 1", texts->size()));
    check_length("scores", scores == nullptr ? texts->size() : scores->size(), texts->size());
    check_length("token_type", types == nullptr ? texts->size() : types->size(), texts->size());
    vocabulary_.entries.reserve(texts->size());
    for (std::size_t i = 0; i < texts->size() && !error_; ++i)
      add_entry((*texts)[i], scores == nullptr ? 0.0 : (*scores)[i], types == nullptr ? 1 : (*types)[i]);
    vocabulary_.ids.reserve(vocabulary_.entries.size());
    for (std::size_t i = 0; i < vocabulary_.entries.size(); ++i)
      vocabulary_.ids.emplace(vocabulary_.entries[i].text, static_cast<TokenId>(i));
  }

  void check_length(std::string_view name, std::size_t found, std::size_t expected) {
    if (found != expected)
      fail(ErrorCode::kBadFile, fmt::format("found {} values in 'tokenizer.ggml.{}', expected {}, one a token", found, name, expected));
  }

  void add_entry(const std::string& text, double score, std::int64_t type) {
    const std::size_t id = vocabulary_.entries.size();
    if (text.size() > kMaxTokenBytes)
      fail(ErrorCode::kBadFile, fmt::format("token {} has {} bytes, expected at most {}", id, text.size(), kMaxTokenBytes));
    if (std::isnan(score)) fail(ErrorCode::kBadFile, fmt::format("the score of token {} is not a number", id));
    const bool known = type >= 0 && type <= static_cast<std::int64_t>(TokenType::kByte);
    vocabulary_.entries.push_back({text, static_cast<float>(score), known ? static_cast<TokenType>(type) : TokenType::kUndefined});
  }

  std::optional<TokenId> special(std::string_view name, std::optional<TokenId> fallback) {
    constexpr std::uint64_t kAbsent = ~std::uint64_t{0};
    const std::string key = fmt::format("tokenizer.ggml.{}_token_id", name);
    const auto id = take(file_.unsigned_or(key, kAbsent));
    if (error_) return std::nullopt;
    if (id == kAbsent) return fallback && static_cast<std::size_t>(*fallback) < vocabulary_.size() ? fallback : std::nullopt;
    if (id < vocabulary_.size()) return static_cast<TokenId>(id);
    vocabulary_.warnings.push_back(fmt::format("{} = {} is beyond the vocabulary of {} tokens and ignored", key, id, vocabulary_.size()));
    return std::nullopt;
  }

  void read_special_tokens() {
    switch (vocabulary_.kind) {
      case TokenizerKind::kSentencePiece:
        vocabulary_.bos = special("bos", 1);
        vocabulary_.eos = special("eos", 2);
        vocabulary_.unknown = special("unknown", 0);
        break;
      case TokenizerKind::kUnigram:
        vocabulary_.bos = special("bos", std::nullopt);
        vocabulary_.eos = special("eos", 1);
        vocabulary_.unknown = special("unknown", 2);
        break;
      case TokenizerKind::kBytePair:
      case TokenizerKind::kCharacterPair:
        vocabulary_.bos = special("bos", std::nullopt);
        vocabulary_.eos = special("eos", std::nullopt);
        vocabulary_.unknown = special("unknown", std::nullopt);
        break;
      case TokenizerKind::kWordPiece:
        vocabulary_.bos = special("cls", special("bos", 101));
        vocabulary_.eos = special("seperator", special("eos", 102));  // the key is spelt so in GGUF
        vocabulary_.unknown = special("unknown", 100);
        break;
    }
  }

  void read_flags() {
    const bool sentence_piece = vocabulary_.kind == TokenizerKind::kSentencePiece;
    const bool word_piece = vocabulary_.kind == TokenizerKind::kWordPiece;
    const bool unigram = vocabulary_.kind == TokenizerKind::kUnigram;
    const bool by_rules = vocabulary_.words && vocabulary_.words->adds_bos;
    vocabulary_.add_bos = take(file_.bool_or("tokenizer.ggml.add_bos_token", sentence_piece || word_piece || by_rules));
    vocabulary_.add_eos = take(file_.bool_or("tokenizer.ggml.add_eos_token", word_piece || unigram));
    disable_without_token(vocabulary_.add_bos, vocabulary_.bos, "beginning");
    disable_without_token(vocabulary_.add_eos, vocabulary_.eos, "end");
    std::string name = take(file_.string_or("general.name", ""));
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    vocabulary_.special_strips_right = name.find("phi-3") != std::string::npos || name.find("phi3") != std::string::npos;
  }

  void disable_without_token(bool& flag, const std::optional<TokenId>& token, std::string_view which) {
    if (!flag || token || error_) return;
    flag = false;
    vocabulary_.warnings.push_back(fmt::format("the model asks for a token at the {} of every text, but names none", which));
  }

  void collect_end_of_generation() {
    std::vector<TokenId> named;
    for (const auto& id : {vocabulary_.eos, special("eot", std::nullopt), special("eom", std::nullopt)})
      if (id) named.push_back(*id);
    const bool eos_is_assumed = file_.find("tokenizer.ggml.eos_token_id") == nullptr;  // id 2 may then be any word
    mark_ends(vocabulary_, std::move(named), eos_is_assumed ? vocabulary_.eos : std::nullopt);
  }

  std::optional<TokenId> infill_mark(const InfillNames& names) {
    return special(names.key, special(names.old_key, find_infill_mark(vocabulary_, names)));
  }

  void read_infill() { set_infill(vocabulary_, infill_mark(kInfillPrefix), infill_mark(kInfillSuffix), infill_mark(kInfillMiddle)); }

  const files::GgufFile& file_;
  Vocabulary vocabulary_;
  std::optional<Error> error_;
};

}  // namespace

std::optional<TokenId> Vocabulary::find(std::string_view text) const {
  const auto found = ids.find(text);
  return found == ids.end() ? std::nullopt : std::optional(found->second);
}

Result<Vocabulary> read_vocabulary(const files::GgufFile& file) { return VocabularyReader(file).read(); }

}  // namespace braid::text
