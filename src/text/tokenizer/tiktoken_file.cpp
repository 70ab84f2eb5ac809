// tiktoken's files hold texts and ranks alone. The expression that cuts words, and often the control tokens, stand in the program that
// reads them, so both are told by the number of ranks.
#include "text/tokenizer/base64.h"
#include "text/tokenizer/byte_alphabet.h"
#include "text/tokenizer/model_file.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <string>
#include <utility>

namespace braid::text {
namespace {

constexpr std::size_t kLongestText = 2048;
constexpr std::size_t kMostRanks = 4'000'000;

struct RankedKind {
  std::size_t ranks;
  std::string_view rules;       // as tokenizer.ggml.pre names them, or
  std::string_view expression;  // one of tiktoken's own
};
constexpr std::string_view kCl100k =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s)";
constexpr RankedKind kKinds[] = {{50256, "gpt-2", {}},  {100256, {}, kCl100k},   {128000, "llama-bpe", {}},
                                 {151643, "qwen2", {}}, {163584, "kimi-k2", {}}, {199998, "gpt-4o", {}}};

Error damaged_line(std::size_t line, std::string_view what) {
  return {ErrorCode::kBadFile, fmt::format("line {} of the file of ranks {}", line, what), {}};
}

// "aGVsbG8= 15339"
Result<void> add_line(std::string_view line, std::size_t number, Vocabulary& vocabulary) {
  const std::size_t space = line.find(' ');
  const auto bytes = decode_base64(line.substr(0, space));
  std::size_t rank = 0;
  const std::string_view digits = space == std::string_view::npos ? std::string_view() : line.substr(space + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  if (!bytes || bytes->empty() || error != std::errc() || end != digits.data() + digits.size())
    return damaged_line(number, "is not a text in base64 and its rank");
  if (rank >= kMostRanks || rank > vocabulary.size() + 1024) return damaged_line(number, fmt::format("has the rank {}", rank));
  if (bytes->size() > kLongestText) return damaged_line(number, fmt::format("has a text of {} bytes", bytes->size()));
  if (rank >= vocabulary.size()) vocabulary.entries.resize(rank + 1, {"", 0.0F, TokenType::kUnused});
  VocabularyEntry& entry = vocabulary.entries[rank];
  entry.type = TokenType::kNormal;
  entry.text.clear();
  for (const char byte : *bytes) entry.text += spell_byte(static_cast<unsigned char>(byte));
  return {};
}

Result<WordCutter> cutter_for(std::size_t ranks, Vocabulary& vocabulary) {
  for (const RankedKind& kind : kKinds) {
    if (kind.ranks != ranks) continue;
    return kind.rules.empty() ? WordCutter::make(kind.expression) : WordCutter::make(*word_rules_named(kind.rules).value());
  }
  vocabulary.warnings.push_back(fmt::format(
      "the tokenizer's file of ranks has {} of them, which no known tokenizer has: its words are cut as cl100k's, which may be wrong",
      ranks));
  return WordCutter::make(kCl100k);
}

// Control tokens that Qwen's first models define in their code.
void add_qwen_tokens(Vocabulary& vocabulary) {
  std::vector<std::string> texts = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
  for (int i = 0; i < 205; ++i) texts.push_back(fmt::format("<|extra_{}|>", i));
  for (std::string& text : texts) vocabulary.entries.push_back({std::move(text), 0.0F, TokenType::kControl});
}

}  // namespace

bool looks_like_tiktoken(std::string_view bytes) {
  const std::string_view line = bytes.substr(0, std::min(bytes.find_first_of("\r\n"), bytes.size()));
  const std::size_t space = line.find(' ');
  return space != std::string_view::npos && space + 1 < line.size() && decode_base64(line.substr(0, space)).has_value() &&
         line.find_first_not_of("0123456789", space + 1) == std::string_view::npos;
}

Result<ModelFile> read_tiktoken_file(std::string_view bytes, std::string_view config) {
  Vocabulary vocabulary;
  vocabulary.kind = TokenizerKind::kBytePair;
  std::size_t number = 0;
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    std::string_view line = bytes.substr(0, end);
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    ++number;
    if (line.empty()) continue;
    if (const auto added = add_line(line, number, vocabulary); !added) return added.error();
  }
  const std::size_t ranks = vocabulary.size();
  auto cutter = cutter_for(ranks, vocabulary);
  if (!cutter) return cutter.error();
  constexpr std::size_t kQwenRanks = 151643;
  if (ranks == kQwenRanks) add_qwen_tokens(vocabulary);
  if (!add_configured_tokens(config, vocabulary))
    return Error{ErrorCode::kBadFile, "tokenizer_config.json: the ids of 'added_tokens_decoder' do not fit the file of ranks", {}};
  auto encoder = make_ranked_encoder(std::move(*cutter), vocabulary);
  return ModelFile{std::move(vocabulary), std::move(encoder)};
}

}  // namespace braid::text
