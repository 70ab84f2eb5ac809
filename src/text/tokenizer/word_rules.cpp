#include "text/tokenizer/word_rules.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <string>
#include <vector>

namespace braid::text {
namespace {

using Expression = std::string_view;

constexpr Expression kGpt2 = kGpt2Words;
constexpr Expression kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr Expression kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr Expression kThreeDigits = R"(\p{N}{1,3})";
constexpr Expression kDigit = R"(\p{N})";
constexpr Expression kChineseAndKana = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+";
constexpr Expression kLines = R"([^\n]+|[\n]+)";
constexpr Expression kDeepSeek3 =
    R"re([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";
constexpr Expression kGpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr Expression kDigitsFromTheRight = R"(\d{1,3}(?=(?:\d{3})*\b))";

constexpr Expression kFalcon[] = {R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2, "[0-9][0-9][0-9]"};
constexpr Expression kDeepSeekCoder[] = {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+", kDigit};
constexpr Expression kDeepSeekV3[] = {kThreeDigits, kChineseAndKana, kDeepSeek3};
constexpr Expression kSpark[] = {
    kThreeDigits, kChineseAndKana,
    R"re([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+)re",
    kDigit};
constexpr Expression kYoutu[] = {
    "[\uac00-\ud7a3\u3131-\u318e]+|[！…“”‘’—：；，\u3001-\u303f\ufe30-\ufe4f]+|[\u3105-\u312f]+|[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr Expression kQwen35[] = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr Expression kBloom[] = {" ?[^(\\s|.,!?…。，、।۔،)]+"};
constexpr Expression kViking[] = {" ?[^(\\s|.,!?…。，、।۔،)]+", kDigit};
constexpr Expression kTekken[] = {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
                                  R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
                                  R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr Expression kChameleon[] = {
    "<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", R"(([\t\n]|    |  ))", kDigit, R"([\p{P}!-/:-@\[-`{-~])", kGpt2};
constexpr Expression kGpt4oStage[] = {kGpt4o};
constexpr Expression kTinyAya[] = {kDigitsFromTheRight, kGpt4o};
constexpr Expression kKimi[] = {
    R"([\p{Han}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr Expression kSuperBpe[] = {R"(\p{N}+)", R"((?=(\d{3})+(?!\d)))"};
constexpr Expression kBailing[] = {
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"};
constexpr Expression kSeedCoder[] = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr Expression kUfakzeka[] = {R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr Expression kAfmoe[] = {
    R"(\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N})))",
    "[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u3040-\u309f\u30a0-\u30ff\uff65-\uff9f\u2f00-\u2fdf\u0e00-\u0e7f\u0e80-\u0eff\u1780-\u17ff"
    "\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff\uac00-\ud7af\u1100-\u11ff]+",
    kDeepSeek3};
constexpr Expression kLaguna[] = {kLines, kQwen2};
constexpr Expression kExaoneMoe[] = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)"};
constexpr Expression kMiniCpm5[] = {
    kThreeDigits, R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr Expression kJais2[] = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+)"
    R"(|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1})"};
constexpr Expression kLineStage[] = {kLines};
constexpr Expression kWords[] = {R"(\S+)"};

constexpr WordRules kRules[] = {
    {"default", PreTokenizer::kDefault, {}},
    {"gpt-2", PreTokenizer::kGpt2, {}},
    {"a.x-4.0", PreTokenizer::kGpt2, {}},
    {"exaone4", PreTokenizer::kGpt2, {}},
    {"gigachat", PreTokenizer::kGpt2, {}},
    {"granite-docling", PreTokenizer::kGpt2, {}},
    {"jais", PreTokenizer::kGpt2, {}},
    {"jina-de", PreTokenizer::kGpt2, {}},
    {"jina-es", PreTokenizer::kGpt2, {}},
    {"jina-v1-en", PreTokenizer::kGpt2, {}},
    {"jina-v2-code", PreTokenizer::kGpt2, {}},
    {"jina-v2-de", PreTokenizer::kGpt2, {}},
    {"jina-v2-es", PreTokenizer::kGpt2, {}},
    {"mellum", PreTokenizer::kGpt2, {}},
    {"modern-bert", PreTokenizer::kGpt2, {}},
    {"mpt", PreTokenizer::kGpt2, {}},
    {"olmo", PreTokenizer::kGpt2, {}},
    {"phi-2", PreTokenizer::kGpt2, {}},
    {"roberta-bpe", PreTokenizer::kGpt2, {}},
    {"trillion", PreTokenizer::kGpt2, {}},
    {"llama-bpe", PreTokenizer::kLlama3, {}, true, true},
    {"llama-v3", PreTokenizer::kLlama3, {}, true, true},
    {"llama3", PreTokenizer::kLlama3, {}, true, true},
    {"falcon3", PreTokenizer::kLlama3, {}, true, true},
    {"falcon-h1", PreTokenizer::kLlama3, {}, true, true},
    {"jina-v5-nano", PreTokenizer::kLlama3, {}, true, true},
    {"lfm2", PreTokenizer::kLlama3, {}, true, true},
    {"midm-2.0", PreTokenizer::kLlama3, {}, true, true},
    {"pixtral", PreTokenizer::kLlama3, {}, true, true},
    {"dbrx", PreTokenizer::kLlama3, {}},
    {"chatglm-bpe", PreTokenizer::kLlama3, {}},
    {"glm4", PreTokenizer::kLlama3, {}},
    {"smaug-bpe", PreTokenizer::kLlama3, {}},
    {"qwen2", PreTokenizer::kQwen2, {}},
    {"deepseek-r1-qwen", PreTokenizer::kQwen2, {}},
    {"f2llmv2", PreTokenizer::kQwen2, {}},
    {"grok-2", PreTokenizer::kQwen2, {}},
    {"hunyuan", PreTokenizer::kQwen2, {}},
    {"kormo", PreTokenizer::kQwen2, {}},
    {"megrez", PreTokenizer::kQwen2, {}},
    {"solar-open", PreTokenizer::kQwen2, {}},
    {"stablelm2", PreTokenizer::kQwen2, {}},
    {"deepseek-llm", PreTokenizer::kDeepSeek, {}},
    {"smollm", PreTokenizer::kSingleDigits, {}},
    {"starcoder", PreTokenizer::kSingleDigits, {}},
    {"codeshell", PreTokenizer::kSingleDigits, {}},
    {"command-r", PreTokenizer::kSingleDigits, {}},
    {"exaone", PreTokenizer::kSingleDigits, {}},
    {"mellum2", PreTokenizer::kSingleDigits, {}},
    {"minerva-7b", PreTokenizer::kSingleDigits, {}},
    {"refact", PreTokenizer::kSingleDigits, {}},
    {"afmoe", {}, kAfmoe},
    {"bailingmoe", {}, kBailing},
    {"bailingmoe2", {}, kBailing},
    {"llada-moe", {}, kBailing},
    {"bloom", {}, kBloom},
    {"gpt3-finnish", {}, kBloom},
    {"poro-chat", {}, kBloom},
    {"chameleon", {}, kChameleon, false, true},
    {"deepseek-coder", {}, kDeepSeekCoder},
    {"deepseek-v3", {}, kDeepSeekV3},
    {"hunyuan-dense", {}, kDeepSeekV3},
    {"hy_v4", {}, kDeepSeekV3},
    {"joyai-llm", {}, kDeepSeekV3},
    {"exaone-moe", {}, kExaoneMoe},
    {"falcon", {}, kFalcon},
    {"gemma4", {}, kLineStage, false, true, true},
    {"granite-embed-multi-311m", {}, kLineStage, false, true, true},
    {"sarvam-moe", {}, kLineStage, false, false, true},
    {"gpt-4o", {}, kGpt4oStage},
    {"kanana2", {}, kGpt4oStage},
    {"llama4", {}, kGpt4oStage},
    {"minimax-m2", {}, kGpt4oStage},
    {"talkie", {}, kGpt4oStage},
    {"granite-embed-multi-97m", {}, kGpt4oStage, true},
    {"jais-2", {}, kJais2},
    {"kimi-k2", {}, kKimi},
    {"laguna", {}, kLaguna},
    {"minicpm5", {}, kMiniCpm5, true},
    {"qwen35", {}, kQwen35},
    {"seed-coder", {}, kSeedCoder},
    {"spark2_5", {}, kSpark},
    {"superbpe", {}, kSuperBpe},
    {"tekken", {}, kTekken, true, true},
    {"cohere2moe", {}, kTinyAya},
    {"tiny_aya", {}, kTinyAya},
    {"ufakzeka", {}, kUfakzeka},
    {"viking", {}, kViking},
    {"whitespace", {}, kWords, false, false, true, true},
    {"youtu", {}, kYoutu, true},
};

std::vector<Expression> stages_of(const WordRules& rules) {
  if (!rules.scanner) return {rules.stages.begin(), rules.stages.end()};
  switch (*rules.scanner) {
    case PreTokenizer::kGpt2:
      return {kGpt2};
    case PreTokenizer::kLlama3:
      return {kLlama3};
    case PreTokenizer::kQwen2:
      return {kQwen2};
    case PreTokenizer::kSingleDigits:
      return {kDigit, kGpt2};
    case PreTokenizer::kDefault:
    case PreTokenizer::kDeepSeek:
      return {};
  }
  return {};
}

// Possessive or greedy is the same to these, and so is a line's end by its letter.
std::string usual_form(std::string_view expression) {
  std::string out;
  for (const char c : expression) {
    if (c == '\r' || c == '\n')
      out += c == '\r' ? "\\r" : "\\n";
    else if (c != '+' || out.empty() || (out.back() != '+' && out.back() != '*' && out.back() != '?'))
      out += c;
  }
  return out;
}

}  // namespace

std::optional<std::string_view> name_of_rules(std::span<const std::string> stages, bool whole_words_first) {
  const WordRules* found = nullptr;
  for (const WordRules& rules : kRules) {
    if (rules.plain_text || rules.drops_space || (found != nullptr && rules.whole_words_first != whole_words_first)) continue;
    const std::vector<Expression> own = stages_of(rules);
    if (own.empty() || !std::ranges::equal(own, stages, {}, usual_form, usual_form)) continue;
    if (rules.whole_words_first == whole_words_first) return rules.name;
    found = &rules;
  }
  return found == nullptr ? std::nullopt : std::optional(found->name);
}

Result<const WordRules*> word_rules_named(std::string_view name) {
  std::string known;
  for (const WordRules& rules : kRules) {
    if (rules.name == name) return &rules;
    known += fmt::format("{}'{}'", known.empty() ? "" : ", ", rules.name);
  }
  return Error{ErrorCode::kUnsupported, fmt::format("found tokenizer.ggml.pre = '{}', expected one of {}", name, known), {}};
}

}  // namespace braid::text
