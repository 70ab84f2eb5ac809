#include "text/vocabulary_files.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <fmt/format.h>
#include <map>
#include <simdjson.h>
#include <string_view>
#include <utility>

namespace braid::text {
namespace {

// What a class of tokenizers does before the merges and behind them.
struct TokenizerClass {
  std::string_view name;  // of the class, also with "Fast"
  std::string_view rules;
};
constexpr std::array kTokenizerClasses = {
    TokenizerClass{"GPT2Tokenizer", R"("normalizer":null,"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"use_regex":true})"},
    TokenizerClass{
        "Qwen2Tokenizer",
        R"("normalizer":{"type":"NFC"},"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":)"
        R"("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},)"
        R"("behavior":"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]})"},
};

using AddedById = std::map<std::uint64_t, std::string>;  // members of an "added_tokens" entry by its id

Error damaged_member(const files::HfFolder& folder, std::string_view name, std::string_view why) {
  return {ErrorCode::kBadFile, fmt::format("{}/{}: {}", folder.path(), name, why), {}};
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

// A merge each line, behind one that names the version.
std::string merges_of(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with("#version")) continue;
    if (!out.empty()) out += ',';
    out += quoted(line);
  }
  return out;
}

// added_tokens.json: ids by texts.
Result<void> add_named(const files::HfFolder& folder, AddedById& added) {
  constexpr std::string_view kFile = "added_tokens.json";
  const auto text = folder.text(kFile);
  if (!text) return text.error();
  if (!*text) return {};
  simdjson::dom::parser parser;
  simdjson::dom::object tokens;
  if (parser.parse(**text).get(tokens) != simdjson::SUCCESS) return damaged_member(folder, kFile, "is not a JSON object");
  for (const auto& [content, value] : tokens) {
    std::uint64_t id = 0;
    if (value.get(id) != simdjson::SUCCESS) return damaged_member(folder, kFile, "has an id that is no number");
    added.emplace(id, fmt::format(R"("content":{},"special":false)", quoted(content)));
  }
  return {};
}

// "added_tokens_decoder" of tokenizer_config.json: tokens by ids.
Result<void> add_configured(const files::HfFolder& folder, const simdjson::dom::element& config, AddedById& added) {
  simdjson::dom::object tokens;
  if (config["added_tokens_decoder"].get(tokens) != simdjson::SUCCESS) return {};
  for (const auto& [key, token] : tokens) {
    std::uint64_t id = 0;
    simdjson::dom::object members;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || token.get(members) != simdjson::SUCCESS)
      return damaged_member(folder, "tokenizer_config.json", fmt::format("'added_tokens_decoder' has the entry '{}'", key));
    if (members.size() == 0)
      return damaged_member(folder, "tokenizer_config.json", fmt::format("'added_tokens_decoder' has nothing of {}", key));
    std::string text = simdjson::minify(token);
    added[id] = text.substr(1, text.size() - 2);
  }
  return {};
}

// What a text begins or ends with is a control token, also where it is one of the vocabulary.
void add_named_roles(const simdjson::dom::object& vocabulary, const simdjson::dom::element& config, AddedById& added) {
  for (const std::string_view role : {"bos_token", "eos_token", "unk_token"}) {
    std::string_view name;
    std::uint64_t id = 0;
    if (config[role].get(name) != simdjson::SUCCESS && config[role]["content"].get(name) != simdjson::SUCCESS) continue;
    if (vocabulary.at_key(name).get(id) == simdjson::SUCCESS)
      added.emplace(id, fmt::format(R"("content":{},"special":true)", quoted(name)));
  }
}

}  // namespace

Result<std::optional<std::string>> tokenizer_json_of(const files::HfFolder& folder) {
  std::array<std::optional<std::string>, 3> texts;
  constexpr std::array<std::string_view, 3> kNames = {"vocab.json", "merges.txt", "tokenizer_config.json"};
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    auto text = folder.text(kNames[i]);
    if (!text) return text.error();
    texts[i] = std::move(*text);
  }
  const auto& [vocabulary, merges, settings] = texts;
  if (!vocabulary || !merges || !settings) return std::optional<std::string>();
  simdjson::dom::parser parser, of_config;
  simdjson::dom::object ids;
  if (parser.parse(*vocabulary).get(ids) != simdjson::SUCCESS) return damaged_member(folder, kNames[0], "is not a JSON object");
  simdjson::dom::element config;
  if (of_config.parse(*settings).get(config) != simdjson::SUCCESS) return damaged_member(folder, kNames[2], "is not JSON");
  std::string_view name;
  if (config["tokenizer_class"].get(name) != simdjson::SUCCESS) name = {};
  const std::string_view plain = name.ends_with("Fast") ? name.substr(0, name.size() - 4) : name;
  for (const TokenizerClass& kind : kTokenizerClasses) {
    if (kind.name != plain) continue;
    AddedById added;
    if (const auto done = add_configured(folder, config, added); !done) return done.error();
    if (const auto done = add_named(folder, added); !done) return done.error();
    add_named_roles(ids, config, added);
    std::string tokens;
    for (const auto& [id, members] : added) tokens += fmt::format("{}{{\"id\":{},{}}}", tokens.empty() ? "" : ",", id, members);
    return std::optional(fmt::format(
        R"({{"version":"1.0","added_tokens":[{}],{},"decoder":{{"type":"ByteLevel"}},"model":{{"type":"BPE","vocab":{},"merges":[{}]}}}})",
        tokens, kind.rules, *vocabulary, merges_of(*merges)));
  }
  return Error{ErrorCode::kUnsupported,
               fmt::format("{}: of the class \"{}\" vocab.json and merges.txt are not read: save the tokenizer with a current version of "
                           "transformers, which writes tokenizer.json",
                           folder.path(), name),
               {}};
}

}  // namespace braid::text
