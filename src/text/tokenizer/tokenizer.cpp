#include "text/tokenizer/tokenizer.h"

#include "text/tokenizer/byte_alphabet.h"
#include "text/tokenizer/byte_name.h"
#include "text/tokenizer/utf8_stream.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <limits>
#include <utility>

namespace braid::text {
namespace {

std::string with_spaces(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const bool space = text.substr(at, kEscapedSpace.size()) == kEscapedSpace;
    out += space ? ' ' : text[at];
    at += space ? kEscapedSpace.size() : 1;
  }
  return out;
}

std::string bytes_of(const VocabularyEntry& entry, TokenizerKind kind) {
  switch (entry.type) {
    case TokenType::kControl:
    case TokenType::kUnknown:
    case TokenType::kUserDefined:
      return entry.text;
    case TokenType::kByte:
      if (const auto byte = named_byte(entry.text)) return std::string(1, *byte);
      break;
    case TokenType::kUndefined:
    case TokenType::kNormal:
    case TokenType::kUnused:
      break;
  }
  return kind == TokenizerKind::kBytePair ? spelt_bytes(entry.text).value_or(entry.text) : with_spaces(entry.text);
}

Result<SentenceRules> read_sentence_rules(const files::GgufFile& file) {
  SentenceRules rules;
  const auto prefix = file.bool_or("tokenizer.ggml.add_space_prefix", true);
  if (!prefix) return prefix.error();
  const auto extra = file.bool_or("tokenizer.ggml.remove_extra_whitespaces", false);
  if (!extra) return extra.error();
  rules.add_space_prefix = *prefix;
  rules.remove_extra_whitespaces = *extra;
  const files::GgufValue* charsmap = file.find("tokenizer.ggml.precompiled_charsmap");
  const auto* array = charsmap != nullptr ? std::get_if<files::GgufArray>(charsmap) : nullptr;
  if (array == nullptr) return rules;
  if (const auto* bytes = std::get_if<std::vector<std::int64_t>>(&array->items))
    for (const std::int64_t byte : *bytes) rules.charsmap += static_cast<char>(byte);
  if (const auto* bytes = std::get_if<std::vector<std::uint64_t>>(&array->items))
    for (const std::uint64_t byte : *bytes) rules.charsmap += static_cast<char>(byte);
  return rules;
}

Result<std::unique_ptr<const PieceEncoder>> make_encoder(const files::GgufFile& file, Vocabulary& vocabulary) {
  switch (vocabulary.kind) {
    case TokenizerKind::kBytePair:
      return make_byte_pair_encoder(file, *vocabulary.words, vocabulary);
    case TokenizerKind::kCharacterPair:
      return make_character_pair_encoder(file, *vocabulary.words, vocabulary);
    case TokenizerKind::kWordPiece:
      return make_word_piece_encoder(vocabulary);
    case TokenizerKind::kSentencePiece:
    case TokenizerKind::kUnigram:
      break;
  }
  const auto rules = read_sentence_rules(file);
  if (!rules) return rules.error();
  auto encoder = vocabulary.kind == TokenizerKind::kUnigram ? make_unigram_encoder(vocabulary, *rules)
                                                            : make_sentence_piece_encoder(vocabulary, *rules);
  if (!encoder) return Error{encoder.error().code, file.name() + ": " + encoder.error().message, {}};
  return encoder;
}

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

const std::string* text_at(const files::GgufFile& file, std::string_view key) {
  const files::GgufValue* value = file.find(key);
  return value != nullptr ? std::get_if<std::string>(value) : nullptr;
}

std::vector<TokenId> end_tokens_of(const files::GgufFile& file) {
  std::vector<TokenId> ids;
  const files::GgufValue* value = file.find(kEndTokensKey);
  const auto* array = value != nullptr ? std::get_if<files::GgufArray>(value) : nullptr;
  const auto* items = array != nullptr ? std::get_if<std::vector<std::uint64_t>>(&array->items) : nullptr;
  if (items == nullptr) return ids;
  for (const std::uint64_t id : *items)
    if (id <= static_cast<std::uint64_t>(std::numeric_limits<TokenId>::max())) ids.push_back(static_cast<TokenId>(id));
  return ids;
}

}  // namespace

Result<Tokenizer> Tokenizer::from_gguf(const files::GgufFile& file) {
  const std::string* json = text_at(file, kTokenizerJsonKey);
  const std::string* model = text_at(file, kTokenizerModelKey);
  if (json != nullptr || model != nullptr) {
    const std::string* config = text_at(file, kTokenizerConfigKey);
    const TokenizerTexts texts{json != nullptr ? std::string_view(*json) : std::string_view(),
                               config != nullptr ? std::string_view(*config) : std::string_view(), end_tokens_of(file)};
    auto tokenizer = json != nullptr ? from_json(texts) : from_model_file(*model, texts);
    if (!tokenizer) return Error{tokenizer.error().code, fmt::format("{}: {}", file.name(), tokenizer.error().message), {}};
    return tokenizer;
  }
  auto vocabulary = read_vocabulary(file);
  if (!vocabulary) return vocabulary.error();
  auto encoder = make_encoder(file, *vocabulary);
  if (!encoder) return encoder.error();
  return Tokenizer(std::move(*vocabulary), std::move(*encoder));
}

Tokenizer::Tokenizer(Vocabulary vocabulary, std::unique_ptr<const PieceEncoder> encoder)
    : vocabulary_(std::move(vocabulary)), encoder_(std::move(encoder)) {
  bytes_.reserve(vocabulary_.size());
  silent_.reserve(vocabulary_.size());
  for (std::size_t id = 0; id < vocabulary_.size(); ++id) {
    const VocabularyEntry& entry = vocabulary_.entries[id];
    bytes_.push_back(bytes_of(entry, vocabulary_.kind));
    const bool user_defined = entry.type == TokenType::kUserDefined;
    silent_.push_back(entry.type == TokenType::kControl || entry.type == TokenType::kUnknown);
    if (user_defined) user_defined_.insert(entry.text, static_cast<TokenId>(id));
    if (user_defined || silent_.back()) special_.insert(entry.text, static_cast<TokenId>(id));
  }
}

Tokenizer::Tokenizer(Vocabulary vocabulary, std::unique_ptr<const TokenPipeline> pipeline)
    : vocabulary_(std::move(vocabulary)), pipeline_(std::move(pipeline)) {
  bytes_.reserve(vocabulary_.size());
  silent_.reserve(vocabulary_.size());
  for (std::size_t id = 0; id < vocabulary_.size(); ++id) {
    const VocabularyEntry& entry = vocabulary_.entries[id];
    silent_.push_back(entry.type == TokenType::kControl || entry.type == TokenType::kUnknown);
    bytes_.push_back(silent_.back() || entry.text.empty() ? entry.text
                                                          : pipeline_->parts().decoder->bytes(pipeline_->text(static_cast<TokenId>(id))));
    if (entry.type == TokenType::kControl || entry.type == TokenType::kUserDefined) special_.insert(entry.text, static_cast<TokenId>(id));
  }
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  if (pipeline_ != nullptr) return pipeline_->encode(text, options);
  const PrefixTrie& special = options.parse_special ? special_ : user_defined_;
  std::vector<TokenId> out;
  if (options.add_special && vocabulary_.add_bos) out.push_back(*vocabulary_.bos);
  bool at_start = true;
  std::size_t begin = 0;
  const auto encode_before = [&](std::size_t end) {
    if (end == begin) return;
    encoder_->encode(text.substr(begin, end - begin), at_start, out);
    at_start = false;
  };
  for (std::size_t at = 0; at < text.size();) {
    if (!special.may_begin_with(text[at])) {
      ++at;
      continue;
    }
    const PrefixTrie& here = std::ranges::binary_search(options.literal, at) ? user_defined_ : special;
    const PrefixTrie::Match match = here.longest(text, at);
    if (match.token < 0) {
      ++at;
      continue;
    }
    encode_before(at);
    out.push_back(match.token);
    at_start = true;
    at += match.size;
    while (strips_right(match.token) && at < text.size() && is_space(text[at])) ++at;
    begin = at;
  }
  encode_before(text.size());
  if (options.add_special && vocabulary_.add_eos) out.push_back(*vocabulary_.eos);
  return out;
}

// llama.cpp leaves out these of Phi-3's.
bool Tokenizer::strips_right(TokenId token) const {
  if (!vocabulary_.special_strips_right) return false;
  const std::string_view text = vocabulary_.entries[static_cast<std::size_t>(token)].text;
  return text != "<unk>" && text != "<s>" && text != "<|endoftext|>";
}

// Without a tokenizer.json as llama.cpp joins them: a first text, its end, what parts them, the second text, its end.
EncodedPair Tokenizer::encode_pair(std::string_view first, std::string_view second) const {
  if (pipeline_) return pipeline_->encode_pair(first, second);
  const EncodeOptions plain{.add_special = false, .parse_special = true};
  EncodedPair pair;
  const auto add = [&pair](const std::optional<TokenId>& token) {
    if (token) pair.tokens.push_back(*token);
  };
  const auto append = [&](std::string_view text) {
    const std::vector<TokenId> tokens = encode(text, plain);
    pair.tokens.insert(pair.tokens.end(), tokens.begin(), tokens.end());
  };
  const bool has_types = vocabulary_.kind == TokenizerKind::kWordPiece;
  if (vocabulary_.add_bos) add(vocabulary_.bos);
  append(first);
  if (vocabulary_.add_eos) add(vocabulary_.eos);
  if (has_types) {
    pair.second_text = static_cast<std::int32_t>(pair.tokens.size());
  } else if (vocabulary_.add_eos) {
    add(vocabulary_.eos);
  }
  pair.second.begin = pair.tokens.size();
  append(second);
  pair.second.end = pair.tokens.size();
  if (vocabulary_.add_eos) add(vocabulary_.eos);
  return pair;
}

std::size_t Tokenizer::closing_tokens() const {
  if (!pipeline_) return vocabulary_.add_eos ? 1 : 0;
  const TokenFrame& frame = pipeline_->parts().frame;
  const auto last_text = std::find(frame.rbegin(), frame.rend(), std::nullopt);
  return static_cast<std::size_t>(last_text - frame.rbegin());
}

std::string Tokenizer::decode(std::span<const TokenId> tokens) const {
  if (pipeline_ != nullptr) return pipeline_->decode(tokens, true);
  Utf8Stream stream;
  std::string text;
  for (const TokenId token : tokens)
    if (!is_silent(token)) stream.append(token_bytes(token), text);
  stream.finish(text);
  return text;
}

bool Tokenizer::spells_control_token(std::string_view text, std::size_t at) const {
  if (!special_.may_begin_with(text[at])) return false;
  const PrefixTrie::Match match = special_.longest(text, at);
  return match.token >= 0 && is_silent(match.token);
}

std::string_view Tokenizer::token_bytes(TokenId token) const {
  if (token < 0 || static_cast<std::size_t>(token) >= bytes_.size()) return {};
  return bytes_[static_cast<std::size_t>(token)];
}

bool Tokenizer::is_silent(TokenId token) const {
  if (token < 0 || static_cast<std::size_t>(token) >= silent_.size()) return true;
  return silent_[static_cast<std::size_t>(token)];
}

}  // namespace braid::text
