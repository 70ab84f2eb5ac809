#include "text/folder_text.h"

#include "text/tokenizer/tokenizer.h"
#include "text/vocabulary_files.h"

#include <array>
#include <fmt/format.h>
#include <optional>
#include <simdjson.h>

namespace braid::text {
namespace {

using JsonValue = simdjson::dom::element;
using Metadata = std::vector<std::pair<std::string, files::GgufValue>>;

// A file of the folder, or an empty object where there is none.
struct Document {
  simdjson::dom::parser parser;
  JsonValue root;
};

Result<void> load(const files::HfFolder& folder, std::string_view name, Document& out) {
  const auto text = folder.text(name);
  if (!text) return text.error();
  simdjson::dom::object object;
  const auto failure = out.parser.parse(text->value_or("{}")).get(out.root);
  if (failure == simdjson::SUCCESS && out.root.get(object) == simdjson::SUCCESS) return {};
  return Error{ErrorCode::kBadFile,
               fmt::format("{}/{}: {}", folder.path(), name,
                           failure == simdjson::SUCCESS ? "is not a JSON object" : fmt::format("is not JSON: {}", error_message(failure))),
               {}};
}

// One text, or a list of named ones; a file of its own goes before.
Result<void> add_templates(const files::HfFolder& folder, const JsonValue& config, Metadata& metadata) {
  const auto file = folder.text("chat_template.jinja");
  if (!file) return file.error();
  std::string_view text;
  simdjson::dom::array list;
  if (*file) {
    metadata.emplace_back("tokenizer.chat_template", **file);
  } else if (config["chat_template"].get(text) == simdjson::SUCCESS) {
    metadata.emplace_back("tokenizer.chat_template", std::string(text));
  } else if (config["chat_template"].get(list) == simdjson::SUCCESS) {
    for (const JsonValue item : list) {
      std::string_view name;
      if (item["name"].get(name) != simdjson::SUCCESS || item["template"].get(text) != simdjson::SUCCESS)
        return Error{ErrorCode::kBadFile,
                     folder.path() + "/tokenizer_config.json: an item of 'chat_template' lacks its 'name' or its 'template'",
                     {}};
      metadata.emplace_back(name == "default" ? "tokenizer.chat_template" : fmt::format("tokenizer.chat_template.{}", name),
                            std::string(text));
    }
  }
  return {};
}

// A number, or several.
void add_end_tokens(const JsonValue& generation, const JsonValue& config, Metadata& metadata) {
  std::vector<std::uint64_t> ids;
  for (const JsonValue& source : {generation, config}) {
    std::uint64_t id = 0;
    simdjson::dom::array list;
    if (source["eos_token_id"].get(id) == simdjson::SUCCESS) ids.push_back(id);
    if (source["eos_token_id"].get(list) == simdjson::SUCCESS)
      for (const JsonValue item : list)
        if (item.get(id) == simdjson::SUCCESS) ids.push_back(id);
    if (!ids.empty()) break;  // what config.json says counts where there is nothing else
  }
  if (!ids.empty()) metadata.emplace_back(std::string(kEndTokensKey), files::GgufArray{std::move(ids)});
}

// Under the names that GGUF has for them. Without do_sample the model's answers are the likeliest tokens, which is no default of a server.
void add_sampling(const JsonValue& generation, Metadata& metadata) {
  bool sample = false;
  if (generation["do_sample"].get(sample) != simdjson::SUCCESS || !sample) return;
  constexpr std::array kNames = {std::pair{"temperature", "general.sampling.temp"}, std::pair{"top_k", "general.sampling.top_k"},
                                 std::pair{"top_p", "general.sampling.top_p"}, std::pair{"min_p", "general.sampling.min_p"},
                                 std::pair{"repetition_penalty", "general.sampling.penalty_repeat"}};
  for (const auto& [name, key] : kNames) {
    double value = 0.0;
    if (generation[name].get(value) == simdjson::SUCCESS) metadata.emplace_back(key, value);
  }
}

// tokenizer.json, or where there is none a file of SentencePiece or tiktoken, or a vocabulary and its merges.
Result<void> add_tokenizer(const files::HfFolder& folder, Metadata& metadata) {
  constexpr std::array kFiles = {std::pair{"tokenizer.json", kTokenizerJsonKey},  std::pair{"tokenizer.model", kTokenizerModelKey},
                                 std::pair{"spiece.model", kTokenizerModelKey},   std::pair{"sentencepiece.bpe.model", kTokenizerModelKey},
                                 std::pair{"tiktoken.model", kTokenizerModelKey}, std::pair{"qwen.tiktoken", kTokenizerModelKey}};
  for (const auto& [name, key] : kFiles) {
    auto text = folder.text(name);
    if (!text) return text.error();
    if (!*text) continue;
    metadata.emplace_back(std::string(key), std::move(**text));
    return {};
  }
  auto made = tokenizer_json_of(folder);
  if (!made) return made.error();
  if (*made) {
    metadata.emplace_back(std::string(kTokenizerJsonKey), std::move(**made));
    return {};
  }
  return Error{ErrorCode::kUnsupported,
               folder.path() +
                   ": has neither tokenizer.json nor tokenizer.model nor a tiktoken file: save the tokenizer with a current version of "
                   "transformers, which writes the first",
               {}};
}

}  // namespace

Result<void> add_folder_text(const files::HfFolder& folder, Metadata& metadata) {
  if (const auto added = add_tokenizer(folder, metadata); !added) return added;
  Document config, generation, model;
  for (const auto& [name, document] :
       {std::pair{"tokenizer_config.json", &config}, std::pair{"generation_config.json", &generation}, std::pair{"config.json", &model}})
    if (const auto loaded = load(folder, name, *document); !loaded) return loaded;
  if (const auto added = add_templates(folder, config.root, metadata); !added) return added;
  add_end_tokens(generation.root, model.root, metadata);
  add_sampling(generation.root, metadata);
  auto names = folder.text("tokenizer_config.json");
  if (!names) return names.error();
  if (*names) metadata.emplace_back(std::string(kTokenizerConfigKey), std::move(**names));
  return {};
}

}  // namespace braid::text
