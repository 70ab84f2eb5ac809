#include "text/ggml_tokenizer.h"

#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/word_rules.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <simdjson.h>
#include <unordered_map>

namespace braid::text {
namespace {

constexpr std::string_view kPunctuation = R"([\p{P}\$\+<=>\^~\|`]+)";  // as the rules have it

// BLOOM's words, whose inner brackets the rules have not.
constexpr std::string_view kBloomAsPublished = " ?[^(\\s|[.,!?…。，、।۔،])]+";
constexpr std::string_view kBloomRule = " ?[^(\\s|.,!?…。，、।۔،)]+";

using JsonPart = simdjson::dom::element;
using Metadata = std::vector<std::pair<std::string, files::GgufValue>>;

std::string_view text_of(JsonPart object, std::string_view key) {
  std::string_view text;
  return object[key].get(text) == simdjson::SUCCESS ? text : std::string_view();
}

bool flag_of(JsonPart object, std::string_view key) {
  bool flag = false;
  return object[key].get(flag) == simdjson::SUCCESS && flag;
}

// The parts of a Sequence, or the part itself.
std::vector<JsonPart> parts_of(JsonPart root, std::string_view key, std::string_view list) {
  std::vector<JsonPart> parts;
  JsonPart part;
  simdjson::dom::array array;
  if (root[key].get(part) != simdjson::SUCCESS || part.is_null()) return parts;
  if (part[list].get(array) != simdjson::SUCCESS) return {part};
  for (const JsonPart item : array) parts.push_back(item);
  return parts;
}

// Whether a text gets a space before it. SentencePiece's rules add one unless a file says otherwise.
bool adds_space(JsonPart root) {
  const auto normalizers = parts_of(root, "normalizer", "normalizers");
  const auto splitters = parts_of(root, "pre_tokenizer", "pretokenizers");
  return std::ranges::any_of(normalizers, [](JsonPart part) { return text_of(part, "type") == "Prepend"; }) ||
         std::ranges::any_of(splitters, [](JsonPart part) {
           std::string_view scheme = "always";
           return text_of(part, "type") == "Metaspace" && (part["prepend_scheme"].get(scheme) != simdjson::SUCCESS || scheme != "never");
         });
}

// Whether what a Split finds becomes words of its own.
bool isolates(JsonPart split) {
  const std::string_view behaviour = text_of(split, "behavior");
  return flag_of(split, "invert") ? behaviour == "Removed" : behaviour == "Isolated";
}

// The expressions by which pre-tokenizers cut, one after the other; nothing where one cuts otherwise.
std::optional<std::vector<std::string>> stages_of(const std::vector<JsonPart>& parts) {
  std::vector<std::string> stages;
  for (const JsonPart part : parts) {
    const std::string_view type = text_of(part, "type");
    std::string_view regex;
    bool use_regex = true;
    if (type == "Split" && isolates(part) && part["pattern"]["Regex"].get(regex) == simdjson::SUCCESS) {
      stages.emplace_back(regex == kBloomAsPublished ? kBloomRule : regex);
    } else if (type == "Digits") {
      stages.emplace_back(flag_of(part, "individual_digits") ? R"(\p{N})" : R"(\p{N}+)");
    } else if (type == "Punctuation" && text_of(part, "behavior") == "Contiguous") {
      stages.emplace_back(kPunctuation);
    } else if (type == "ByteLevel") {
      if (part["use_regex"].get(use_regex) != simdjson::SUCCESS || use_regex) stages.emplace_back(kGpt2Words);
    } else {
      return std::nullopt;
    }
  }
  // Of Falcon llama.cpp's rules leave out that a number is cut from the space before it.
  if (stages.size() == 4 && stages[0] == kPunctuation && stages[2] == R"(\p{N}+)") stages.erase(stages.begin() + 2);
  return stages;
}

// Which of llama.cpp's rules cut words like these pre-tokenizers.
std::optional<std::string_view> rules_of(const std::vector<JsonPart>& parts, bool whole_words_first) {
  const auto stages = stages_of(parts);
  return stages ? name_of_rules(*stages, whole_words_first) : std::nullopt;
}

struct Token {
  std::string text;
  std::int64_t type = 5;  // TokenType::kUnused, for a gap
  double score = 0.0;
};

class GgmlTokenizer {
 public:
  GgmlTokenizer(JsonPart root, Metadata& metadata) : root_(root), metadata_(metadata) {}

  std::vector<std::string> add() {
    JsonPart model;
    simdjson::dom::object vocabulary;
    if (root_["model"].get(model) != simdjson::SUCCESS || model["vocab"].get(vocabulary) != simdjson::SUCCESS || model.is_null() ||
        text_of(model, "type") != "BPE")
      return {"its tokenizer is no BPE: the file has it as tokenizer.json only"};
    const std::vector<JsonPart> splitters = parts_of(root_, "pre_tokenizer", "pretokenizers");
    const bool bytes = std::ranges::any_of(splitters, [](JsonPart part) { return text_of(part, "type") == "ByteLevel"; });
    if (!bytes && !flag_of(model, "byte_fallback"))
      return {"its tokenizer neither spells bytes nor falls back on them: the file has it as tokenizer.json only"};
    for (const auto& [text, value] : vocabulary) {
      std::uint64_t id = 0;
      if (value.get(id) == simdjson::SUCCESS) put(id, text, byte_token(text) ? 6 : 1);
    }
    add_added_tokens();
    add_merges(model, bytes);
    write(bytes, rules_of(splitters, flag_of(model, "ignore_merges")));
    return std::move(warnings_);
  }

 private:
  static constexpr std::uint64_t kMostTokens = 1U << 22U;

  static bool byte_token(std::string_view text) { return text.size() == 6 && text.starts_with("<0x") && text.back() == '>'; }

  void put(std::uint64_t id, std::string_view text, std::int64_t type) {
    if (id >= kMostTokens) return;
    if (id >= tokens_.size()) tokens_.resize(id + 1);
    tokens_[id] = {std::string(text), type, 0.0};
  }

  void add_added_tokens() {
    simdjson::dom::array added;
    if (root_["added_tokens"].get(added) != simdjson::SUCCESS) return;
    for (const JsonPart token : added) {
      std::uint64_t id = 0;
      if (token["id"].get(id) == simdjson::SUCCESS) put(id, text_of(token, "content"), flag_of(token, "special") ? 3 : 4);
    }
  }

  // For SentencePiece's rules a merge's rank is the score of what it makes.
  void add_merges(JsonPart model, bool bytes) {
    simdjson::dom::array list;
    if (model["merges"].get(list) != simdjson::SUCCESS) return;
    std::unordered_map<std::string_view, Token*> by_text;
    if (!bytes)
      for (Token& token : tokens_) by_text.emplace(token.text, &token);
    double rank = 0.0;
    for (const JsonPart merge : list) {
      std::string_view whole, left, right;
      if (merge.get(whole) != simdjson::SUCCESS) {
        if (merge.at(0).get(left) != simdjson::SUCCESS || merge.at(1).get(right) != simdjson::SUCCESS) continue;
        merges_.push_back(fmt::format("{} {}", left, right));
      } else {
        merges_.emplace_back(whole);
      }
      rank -= 1.0;
      if (bytes) continue;
      std::string made = merges_.back();
      if (const std::size_t space = made.find(' '); space != std::string::npos) made.erase(space, 1);
      const auto found = by_text.find(made);
      if (found != by_text.end() && found->second->score == 0.0) found->second->score = rank;
    }
    for (Token& token : tokens_)
      if (!bytes && token.type == 1 && token.score == 0.0) token.score = rank - 1.0;
  }

  void write(bool bytes, std::optional<std::string_view> rules) {
    std::vector<std::string> texts;
    std::vector<std::int64_t> types;
    std::vector<double> scores;
    for (std::size_t id = 0; id < tokens_.size(); ++id) {
      const Token& token = tokens_[id];
      texts.push_back(token.text.empty() ? fmt::format("[PAD{}]", id) : token.text);
      types.push_back(token.type);
      scores.push_back(token.score);
    }
    add("model", std::string(bytes ? "gpt2" : "llama"));
    add("tokens", files::GgufArray{std::move(texts)});
    add("token_type", files::GgufArray{std::move(types)});
    if (!bytes) {
      add("add_space_prefix", adds_space(root_));
      return add("scores", files::GgufArray{std::move(scores)});
    }
    add("merges", files::GgufArray{std::move(merges_)});
    if (!rules)
      warnings_.emplace_back("its words are cut by rules without a name in GGUF: who does not read tokenizer.json takes other ones");
    add("pre", std::string(rules.value_or("default")));
  }

  void add(std::string_view key, files::GgufValue value) {
    metadata_.emplace_back(fmt::format("tokenizer.ggml.{}", key), std::move(value));
  }

  JsonPart root_;
  Metadata& metadata_;
  std::vector<Token> tokens_;
  std::vector<std::string> merges_;
  std::vector<std::string> warnings_;
};

// The ids of the tokens that a tokenizer has for begin and end.
void add_special_ids(Metadata& metadata) {
  files::GgufContents contents;
  contents.sources.push_back(files::owned_bytes({}, "tokenizer"));
  contents.metadata = metadata;
  const auto tokenizer = Tokenizer::from_gguf(files::GgufFile::from_contents(std::move(contents)));
  if (!tokenizer) return;
  const Vocabulary& vocabulary = tokenizer->vocabulary();
  if (vocabulary.bos) metadata.emplace_back("tokenizer.ggml.bos_token_id", static_cast<std::uint64_t>(*vocabulary.bos));
  if (vocabulary.eos) metadata.emplace_back("tokenizer.ggml.eos_token_id", static_cast<std::uint64_t>(*vocabulary.eos));
  metadata.emplace_back("tokenizer.ggml.add_bos_token", vocabulary.add_bos);
  metadata.emplace_back("tokenizer.ggml.add_eos_token", vocabulary.add_eos);
}

}  // namespace

std::vector<std::string> add_ggml_tokenizer(Metadata& metadata) {
  const auto found = std::ranges::find(metadata, kTokenizerJsonKey, &std::pair<std::string, files::GgufValue>::first);
  const auto* json = found == metadata.end() ? nullptr : std::get_if<std::string>(&found->second);
  if (json == nullptr) return {};
  const std::string text = *json;  // `metadata` grows
  simdjson::dom::parser parser;
  JsonPart root;
  if (parser.parse(text).get(root) != simdjson::SUCCESS) return {"its tokenizer.json is damaged"};
  std::vector<std::string> warnings = GgmlTokenizer(root, metadata).add();
  add_special_ids(metadata);
  return warnings;
}

}  // namespace braid::text
