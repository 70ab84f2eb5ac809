// A tokenizer of a Hugging Face folder: tokenizer.json says how text is cut, tokenizer_config.json what the special tokens are for.
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
  bool wants = false;
  const bool named = config.at_key("tokenizer_class").get(kind) == simdjson::SUCCESS;
  const bool asked = config.at_key("add_bos_token").get(wants) == simdjson::SUCCESS && wants;
  names.wants_bos = named && asked && (kind.starts_with("Llama") || kind.starts_with("Gemma") || kind.starts_with("CodeLlama"));
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
    vocabulary.warnings.push_back(fmt::format("tokenizer_config.json names '{}' as {}, which tokenizer.json does not have", name, key));
  return id;
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
  std::vector<TokenId> ends;
  for (const TokenId id : end_tokens)
    if (id >= 0 && static_cast<std::size_t>(id) < vocabulary.size()) ends.push_back(id);
  if (vocabulary.eos) ends.push_back(*vocabulary.eos);
  mark_ends(vocabulary, std::move(ends), std::nullopt);
  set_infill(vocabulary, find_infill_mark(vocabulary, kInfillPrefix), find_infill_mark(vocabulary, kInfillSuffix),
             find_infill_mark(vocabulary, kInfillMiddle));
  for (const TokenId id : vocabulary.end_of_generation) parts.added.make_special(id);
  return Tokenizer(std::move(vocabulary), std::make_unique<const TokenPipeline>(std::move(parts)));
}

}  // namespace braid::text
