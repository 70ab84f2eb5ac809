#include "app/judge.h"

#include "app/gguf_texts.h"
#include "app/whole_file.h"
#include "files/hf_folder.h"
#include "files/python_json.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <simdjson.h>
#include <string_view>
#include <vector>

namespace braid::app {
namespace {

constexpr std::size_t kMostJudgeText = std::size_t{1} << 20;

bool names_judge(std::string name) {
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name.find("reranker") != std::string::npos || name.find("text-ranking") != std::string::npos;
}

// Other models that rank texts have other prompts and other words, and carry the same tags.
bool is_of_judges_family(const files::GgufFile& file) {
  const auto architecture = file.string_or("general.architecture", "");
  return architecture && *architecture == "qwen3";
}

bool asks_for_judgment(std::string_view text) { return text.find("Judge whether the Document meets") != std::string_view::npos; }

bool metadata_says(const files::GgufFile& file) {
  if (file.find("tokenizer.chat_template.rerank") != nullptr) return true;
  const auto chat_template = file.string_or("tokenizer.chat_template", "");
  if (chat_template && asks_for_judgment(*chat_template)) return true;
  if (!is_of_judges_family(file)) return false;
  for (const char* key : {"general.name", "general.basename", "general.base_model.0.name"})
    if (const auto text = file.string_or(key, ""); text && names_judge(*text)) return true;
  const auto* tags = texts_of(file, "general.tags");
  return tags != nullptr && std::ranges::any_of(*tags, names_judge);
}

// To sentence-transformers, to vLLM, and to the hub.
bool folder_says(const std::string& path, bool is_of_family) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  const auto holds = [&](const char* name) {
    const std::optional<std::string> text = read_whole_file(path + "/" + name, kMostJudgeText);
    return text && text->size() <= kMostJudgeText && parser.parse(files::plain_json(*text)).get(root) == simdjson::SUCCESS;
  };
  if (holds("config.json")) {
    bool original = false;
    if (root["is_original_qwen3_reranker"].get(original) == simdjson::SUCCESS && original) return true;
    std::string_view last;
    if (root["classifier_from_token"].at(1).get(last) == simdjson::SUCCESS && last == "yes") return true;
    std::string_view origin;
    if (is_of_family && root["_name_or_path"].get(origin) == simdjson::SUCCESS && names_judge(std::string(origin))) return true;
  }
  if (!is_of_family) return false;
  std::string_view type;
  if (holds("config_sentence_transformers.json") && root["model_type"].get(type) == simdjson::SUCCESS && type == "CrossEncoder")
    return true;
  simdjson::dom::array modules;
  if (holds("modules.json") && root.get(modules) == simdjson::SUCCESS)
    for (const simdjson::dom::element module : modules)
      if (module["type"].get(type) == simdjson::SUCCESS && type.ends_with("LogitScore")) return true;
  const std::optional<std::string> card = read_whole_file(path + "/README.md", kMostJudgeText);
  return card && card->starts_with("---") && card->substr(0, card->find("\n---")).find("pipeline_tag: text-ranking") != std::string::npos;
}

std::optional<TokenId> token_of(const text::ModelCodec& codec, std::string_view word) {
  const auto ids = codec.encode(word, {.add_special = false, .parse_special = false});
  return ids && ids->size() == 1 ? std::optional(ids->front()) : std::nullopt;
}

// llama.cpp's converter keeps the two words' rows of the output as a head.
std::optional<bool> head_has_yes_first(const files::GgufFile& file) {
  const auto architecture = file.string_or("general.architecture", "");
  const auto* labels = architecture ? class_names_of(file, *architecture) : nullptr;
  const std::vector<std::int64_t>& shape = file.tensor("cls.output.weight")->shape;
  if (labels == nullptr || labels->size() != 2 || shape.size() != 2 || shape.back() != 2) return std::nullopt;
  if ((*labels)[0] == "yes" && (*labels)[1] == "no") return true;
  if ((*labels)[0] == "no" && (*labels)[1] == "yes") return false;
  return std::nullopt;
}

}  // namespace

std::optional<model::LoadOptions::Judging> judging_of(const std::string& id, const std::string& path, const files::GgufFile& file,
                                                      const text::ModelCodec& codec) {
  std::optional<bool> yes_first;
  if (file.tensor("cls.output.weight") != nullptr) {
    yes_first = head_has_yes_first(file);
    if (!yes_first) return std::nullopt;  // its classes are others
  } else if (const bool is_of_family = is_of_judges_family(file);
             !(is_of_family && names_judge(id)) && !metadata_says(file) && !(files::is_folder(path) && folder_says(path, is_of_family))) {
    return std::nullopt;
  }
  const auto yes = token_of(codec, "yes");
  const auto no = token_of(codec, "no");
  if (!yes || !no) return std::nullopt;
  return model::LoadOptions::Judging{*yes, *no, yes_first};
}

}  // namespace braid::app
