// A tokenizer of a Hugging Face folder: tokenizer.json, or a file of another kind, says how text is cut, and tokenizer_config.json what
// the special tokens are for.
#include "text/tokenizer/model_file.h"
#include "text/tokenizer/pipeline/config_node.h"
#include "text/tokenizer/pipeline/token_pipeline.h"
#include "text/tokenizer/token_roles.h"
#include "text/tokenizer/tokenizer.h"

#include <algorithm>
#include <fmt/format.h>
#include <simdjson.h>
#include <utility>

namespace braid::text {
namespace {

// "<s>", or {"content": "<s>", …}
std::string token_name(const simdjson::dom::element& config, std::string_view key) {
  simdjson::dom::element value;
  std::string_view name;
  if (config.at_key(key).get(value) != simdjson::SUCCESS) return {};
  if (value.is_object()) {
    if (value.at_key("content").get(name) != simdjson::SUCCESS) return {};
  } else if (value.get(name) != simdjson::SUCCESS) {
    return {};
  }
  return std::string(name);
}

Result<SpecialNames> read_names(std::string_view text) {
  SpecialNames names;
  if (text.empty()) return names;
  simdjson::dom::parser parser;
  simdjson::dom::element config;
  if (parser.parse(text.data(), text.size()).get(config) != simdjson::SUCCESS || !config.is_object())
    return Error{ErrorCode::kBadFile, "tokenizer_config.json is not a JSON object", {}};
  names.bos = token_name(config, "bos_token");
  names.eos = token_name(config, "eos_token");
  std::string_view kind;
  bool flag = false;
  if (config.at_key("add_bos_token").get(flag) == simdjson::SUCCESS) names.add_bos = flag;
  if (config.at_key("add_eos_token").get(flag) == simdjson::SUCCESS) names.add_eos = flag;
  const bool named = config.at_key("tokenizer_class").get(kind) == simdjson::SUCCESS;
  names.wants_bos =
      named && names.add_bos == true && (kind.starts_with("Llama") || kind.starts_with("Gemma") || kind.starts_with("CodeLlama"));
  return names;
}

TokenType type_of(std::string_view text, TokenId id, const PipelineParts& parts) {
  if (parts.vocabulary.unknown == id) return TokenType::kUnknown;
  return text.empty() ? TokenType::kUnused : TokenType::kNormal;
}

Vocabulary vocabulary_of(const PipelineParts& parts) {
  Vocabulary vocabulary;
  vocabulary.kind = TokenizerKind::kBytePair;
  std::size_t size = parts.vocabulary.texts.size();
  for (const AddedToken& token : parts.added.all()) size = std::max(size, static_cast<std::size_t>(token.id) + 1);
  vocabulary.entries.resize(size);
  for (std::size_t id = 0; id < size; ++id) {
    VocabularyEntry& entry = vocabulary.entries[id];
    if (id < parts.vocabulary.texts.size()) entry.text = parts.vocabulary.texts[id];
    entry.type = type_of(entry.text, static_cast<TokenId>(id), parts);
    if (id < parts.vocabulary.scores.size()) entry.score = parts.vocabulary.scores[id];
  }
  for (const AddedToken& token : parts.added.all()) {
    VocabularyEntry& entry = vocabulary.entries[static_cast<std::size_t>(token.id)];
    entry.text = token.content;
    if (entry.type != TokenType::kUnknown) entry.type = token.special ? TokenType::kControl : TokenType::kUserDefined;
  }
  vocabulary.ids.reserve(size);
  for (std::size_t id = 0; id < size; ++id)
    if (!vocabulary.entries[id].text.empty()) vocabulary.ids.emplace(vocabulary.entries[id].text, static_cast<TokenId>(id));
  vocabulary.unknown = parts.vocabulary.unknown;
  vocabulary.warnings = parts.warnings;
  return vocabulary;
}

std::optional<TokenId> named_token(Vocabulary& vocabulary, const std::string& name, std::string_view key) {
  if (name.empty()) return std::nullopt;
  const auto id = vocabulary.find(name);
  if (!id)
    vocabulary.warnings.push_back(fmt::format("tokenizer_config.json names '{}' as {}, which the tokenizer does not have", name, key));
  return id;
}

void assign_roles(Vocabulary& vocabulary, const std::vector<TokenId>& end_tokens) {
  std::vector<TokenId> ends;
  for (const TokenId id : end_tokens)
    if (id >= 0 && static_cast<std::size_t>(id) < vocabulary.size()) ends.push_back(id);
  if (vocabulary.eos) ends.push_back(*vocabulary.eos);
  mark_ends(vocabulary, std::move(ends), std::nullopt);
  set_infill(vocabulary, find_infill_mark(vocabulary, kInfillPrefix), find_infill_mark(vocabulary, kInfillSuffix),
             find_infill_mark(vocabulary, kInfillMiddle));
}

}  // namespace

Result<Tokenizer> Tokenizer::from_json(const TokenizerTexts& texts) {
  auto parts = read_pipeline(texts.tokenizer_json);
  if (!parts) return parts.error();
  const auto names = read_names(texts.tokenizer_config);
  if (!names) return names.error();
  return from_parts(std::move(*parts), *names, texts.end_tokens);
}

Result<Tokenizer> Tokenizer::from_parts(PipelineParts parts, const SpecialNames& names, const std::vector<TokenId>& end_tokens) {
  Vocabulary vocabulary = vocabulary_of(parts);
  for (const auto& token : parts.frame)
    if (token && static_cast<std::size_t>(*token) >= vocabulary.size())
      return Error{
          ErrorCode::kBadFile,
          fmt::format("tokenizer.json: 'post_processor' adds the token {}, beyond the {} of the vocabulary", *token, vocabulary.size()),
          {}};
  vocabulary.bos = named_token(vocabulary, names.bos, "bos_token");
  vocabulary.eos = named_token(vocabulary, names.eos, "eos_token");
  const bool adds_any = std::any_of(parts.frame.begin(), parts.frame.end(), [](const auto& token) { return token.has_value(); });
  if (names.wants_bos && vocabulary.bos && !adds_any) parts.frame.insert(parts.frame.begin(), vocabulary.bos);
  vocabulary.add_bos = vocabulary.bos && !parts.frame.empty() && parts.frame.front() == vocabulary.bos;
  vocabulary.add_eos = vocabulary.eos && !parts.frame.empty() && parts.frame.back() == vocabulary.eos;
  assign_roles(vocabulary, end_tokens);
  for (const TokenId id : vocabulary.end_of_generation) parts.added.make_special(id);
  return Tokenizer(std::move(vocabulary), std::make_unique<const TokenPipeline>(std::move(parts)));
}

Result<Tokenizer> Tokenizer::from_model_file(std::string_view model_file, const TokenizerTexts& texts) {
  const auto names = read_names(texts.tokenizer_config);
  if (!names) return names.error();
  auto read = looks_like_tiktoken(model_file) ? read_tiktoken_file(model_file, texts.tokenizer_config)
                                              : read_sentence_piece_file(model_file, texts.tokenizer_config);
  if (!read) return read.error();
  Vocabulary& vocabulary = read->vocabulary;
  if (const auto bos = named_token(vocabulary, names->bos, "bos_token")) vocabulary.bos = bos;
  if (const auto eos = named_token(vocabulary, names->eos, "eos_token")) vocabulary.eos = eos;
  vocabulary.add_bos = vocabulary.bos && names->add_bos.value_or(vocabulary.add_bos);
  vocabulary.add_eos = vocabulary.eos && names->add_eos.value_or(vocabulary.add_eos);
  assign_roles(vocabulary, texts.end_tokens);
  return Tokenizer(std::move(vocabulary), std::move(read->encoder));
}

}  // namespace braid::text
