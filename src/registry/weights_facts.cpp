#include "registry/weights_facts.h"

#include "files/gguf.h"
#include "files/gguf_tensor_type.h"
#include "files/hf_folder.h"
#include "files/python_json.h"
#include "registry/durable_file.h"
#include "registry/json.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>
#include <map>
#include <type_traits>
#include <variant>

namespace braid::registry {
namespace {

constexpr std::size_t kMostConfigBytes = std::size_t{16} << 20;
constexpr std::size_t kLongList = 32;

// general.file_type, as llama.cpp numbers it.
constexpr std::array<std::pair<std::uint64_t, std::string_view>, 33> kFileTypes = {{
    {0, "F32"},     {1, "F16"},     {2, "Q4_0"},     {3, "Q4_1"},    {7, "Q8_0"},    {8, "Q5_0"},    {9, "Q5_1"},
    {10, "Q2_K"},   {11, "Q3_K_S"}, {12, "Q3_K_M"},  {13, "Q3_K_L"}, {14, "Q4_K_S"}, {15, "Q4_K_M"}, {16, "Q5_K_S"},
    {17, "Q5_K_M"}, {18, "Q6_K"},   {19, "IQ2_XXS"}, {20, "IQ2_XS"}, {21, "Q2_K_S"}, {22, "IQ3_XS"}, {23, "IQ3_XXS"},
    {24, "IQ1_S"},  {25, "IQ4_NL"}, {26, "IQ3_S"},   {27, "IQ3_M"},  {28, "IQ2_S"},  {29, "IQ2_M"},  {30, "IQ4_XS"},
    {31, "IQ1_M"},  {32, "BF16"},   {36, "TQ1_0"},   {37, "TQ2_0"},  {38, "MXFP4"},
}};

constexpr std::array<std::string_view, 8> kEncoders = {"bert",     "nomic-bert",  "nomic-bert-moe", "jina-bert-v2",
                                                       "neo-bert", "modern-bert", "t5encoder",      "gemma-embedding"};

void add_once(std::vector<std::string>& list, std::string_view word) {
  if (std::ranges::find(list, word) == list.end()) list.emplace_back(word);
}

// The type that most weights have, where the file does not say what it is.
std::string commonest_type(const files::GgufFile& file) {
  std::map<std::uint32_t, std::int64_t> counts;
  for (const files::GgufTensor& tensor : file.tensors()) {
    std::int64_t values = 1;
    for (const std::int64_t extent : tensor.shape) values *= extent;
    counts[tensor.type] += values;
  }
  const auto most = std::ranges::max_element(counts, {}, [](const auto& count) { return count.second; });
  const auto* type = most != counts.end() ? files::gguf_tensor_type(most->first) : nullptr;
  return type != nullptr ? type->name : "";
}

std::string quantisation_of(const files::GgufFile& file) {
  const auto number = file.unsigned_or("general.file_type", UINT64_MAX);
  for (const auto& [id, name] : kFileTypes)
    if (number && *number == id) return std::string(name);
  std::string name = commonest_type(file);
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return name;
}

std::int64_t whole_number(const files::GgufFile& file, const std::string& key) {
  const auto number = file.unsigned_or(key, 0);
  return number && *number <= INT64_MAX ? static_cast<std::int64_t>(*number) : 0;
}

std::string text_of(const files::GgufFile& file, std::string_view key) {
  const auto text = file.string_or(key, "");
  return text ? *text : std::string();
}

void add_abilities(const files::GgufFile& file, WeightsFacts& read) {
  ModelFacts& facts = read.facts;
  const bool encodes = std::ranges::find(kEncoders, facts.architecture) != kEncoders.end();
  add_once(facts.able, encodes ? "embedding" : "completion");
  if (file.find(facts.architecture + ".pooling_type") != nullptr) add_once(facts.able, "embedding");
  if (file.find("tokenizer.ggml.fim_pre_token_id") != nullptr || file.find("tokenizer.ggml.prefix_token_id") != nullptr)
    add_once(facts.able, "insert");
  if (file.find(facts.architecture + ".vision.block_count") != nullptr) add_once(facts.able, "vision");
  add_template_abilities(read.chat_template, facts);
}

Result<WeightsFacts> read_gguf(const std::string& path) {
  const Result<files::GgufFile> file = files::GgufFile::open(path);
  if (!file) return file.error();
  WeightsFacts read;
  read.bytes = file->file_bytes();
  read.facts.format = "gguf";
  read.facts.architecture = text_of(*file, "general.architecture");
  if (read.facts.architecture.empty()) return Error{ErrorCode::kBadFile, fmt::format("{} does not say its architecture", path), ""};
  for (const files::GgufTensor& tensor : file->tensors()) {
    std::int64_t values = 1;
    for (const std::int64_t extent : tensor.shape) values *= extent;
    read.facts.parameters += values;
  }
  read.facts.quantisation = quantisation_of(*file);
  read.facts.context = whole_number(*file, read.facts.architecture + ".context_length");
  read.facts.embedding = whole_number(*file, read.facts.architecture + ".embedding_length");
  read.chat_template = text_of(*file, "tokenizer.chat_template");
  read.facts.has_template = !read.chat_template.empty();
  read.licence = text_of(*file, "general.license");
  add_abilities(*file, read);
  return read;
}

// A template that lies beside the weights: a file of its own, or a member of the tokenizer's configuration.
Result<std::string> folder_template(const files::HfFolder& folder) {
  const auto own = folder.text("chat_template.jinja");
  if (!own) return own.error();
  if (*own) return **own;
  const auto config = folder.text("tokenizer_config.json");
  if (!config) return config.error();
  if (!*config) return std::string();
  const Result<Value> document = parse_json(**config, folder.path() + "/tokenizer_config.json");
  if (!document) return document.error();
  return text_member(*document, "chat_template");
}

std::string first_of_list(const Value& value, std::string_view name) {
  const Value* member = value.find(name);
  const auto* list = member != nullptr ? member->get_if<ValueList>() : nullptr;
  const auto* text = list != nullptr && !list->empty() ? list->front().get_if<std::string>() : nullptr;
  return text != nullptr ? *text : std::string();
}

// By the name of its class. Models with eyes are called as their makers like; two towers side by side, and models without a head, are not.
bool answers(std::string_view kind, bool has_parts) {
  for (const std::string_view end : {"ForCausalLM", "ForConditionalGeneration", "LMHeadModel", "ChatModel"})
    if (kind.ends_with(end)) return true;
  return has_parts && !kind.ends_with("Model") && kind.find("For") == std::string_view::npos;
}

Result<WeightsFacts> read_folder(const std::string& path) {
  const Result<files::HfFolder> folder = files::HfFolder::open(path);
  if (!folder) return folder.error();
  const Result<Value> config = parse_json(folder->config(), path + "/config.json");
  if (!config) return config.error();
  const Value* inner = nullptr;  // of the language model, where there is something beside it
  for (const std::string_view name : {"text_config", "llm_config", "language_config"})
    if (inner == nullptr) inner = config->find(name);
  const Value& shape = inner != nullptr && inner->get_if<ValueDict>() != nullptr ? *inner : *config;
  WeightsFacts read;
  ModelFacts& facts = read.facts;
  facts.format = "safetensors";
  facts.architecture = text_member(*config, "model_type");
  facts.context = std::max<std::int64_t>(0, number_member(shape, "max_position_embeddings", 0));
  facts.embedding = std::max<std::int64_t>(0, number_member(shape, "hidden_size", 0));
  std::map<std::string, std::int64_t> types;
  for (const auto& [name, tensor] : folder->tensors()) {
    std::int64_t values = 1;
    for (const std::int64_t extent : tensor.shape) values *= extent;
    facts.parameters += values;
    types[tensor.dtype] += values;
  }
  const auto most = std::ranges::max_element(types, {}, [](const auto& type) { return type.second; });
  if (most != types.end()) facts.quantisation = most->first;
  for (const auto& source : folder->sources()) read.bytes += source->bytes().size();
  Result<std::string> text = folder_template(*folder);
  if (!text) return text.error();
  read.chat_template = std::move(*text);
  facts.has_template = !read.chat_template.empty();
  const std::string kind = first_of_list(*config, "architectures");
  const bool sees = config->find("vision_config") != nullptr;
  const bool is_able = answers(kind, inner != nullptr || sees);
  add_once(facts.able, is_able ? "completion" : "embedding");
  if (sees && is_able) add_once(facts.able, "vision");
  add_template_abilities(read.chat_template, facts);
  return read;
}

Value to_json_value(const files::GgufValue& value, bool verbose) {
  return std::visit(
      [verbose](const auto& item) -> Value {
        using Item = std::decay_t<decltype(item)>;
        if constexpr (std::is_same_v<Item, std::uint64_t>) {
          if (item > static_cast<std::uint64_t>(INT64_MAX)) return LongInteger{fmt::format("{}", item)};
          return static_cast<std::int64_t>(item);
        } else if constexpr (std::is_same_v<Item, files::GgufArray>) {
          return std::visit(
              [verbose](const auto& items) -> Value {
                if (items.size() > kLongList && !verbose) return {};
                ValueList list;
                for (const auto& element : items) {
                  using Element = typename std::decay_t<decltype(items)>::value_type;
                  if constexpr (std::is_same_v<Element, std::uint64_t>)
                    list.emplace_back(static_cast<std::int64_t>(element));
                  else
                    list.emplace_back(static_cast<Element>(element));
                }
                return list;
              },
              item.items);
        } else {
          return item;
        }
      },
      value);
}

}  // namespace

void add_template_abilities(std::string_view text, ModelFacts& facts) {
  if (text.find("tools") != std::string_view::npos || text.find(".Tools") != std::string_view::npos) add_once(facts.able, "tools");
  for (const std::string_view word : {"<think>", "enable_thinking", ".Thinking", "reasoning_content", "<|channel|>analysis"})
    if (text.find(word) != std::string_view::npos) return add_once(facts.able, "thinking");
}

Result<WeightsFacts> read_weights(const std::string& path) { return files::is_folder(path) ? read_folder(path) : read_gguf(path); }

Result<ValueDict> read_metadata(const std::string& path, bool verbose, ValueList& tensors) {
  ValueDict info;
  if (files::is_folder(path)) {
    const Result<std::string> text = read_small_file(path + "/config.json", kMostConfigBytes);
    if (!text) return text.error();
    Result<Value> config = parse_json(files::plain_json(*text), path + "/config.json");
    if (!config) return config.error();
    if (auto* dict = config->get_if<ValueDict>()) info = std::move(*dict);
    return info;
  }
  const Result<files::GgufFile> file = files::GgufFile::open(path);
  if (!file) return file.error();
  for (const auto& [key, value] : file->metadata())
    if (key != "tokenizer.chat_template") info.emplace_back(key, to_json_value(value, verbose));
  for (const files::GgufTensor& tensor : file->tensors()) {
    if (!verbose) break;
    ValueList shape;
    for (const std::int64_t extent : tensor.shape) shape.emplace_back(extent);
    const auto* type = files::gguf_tensor_type(tensor.type);
    tensors.emplace_back(ValueDict{{"name", tensor.name}, {"type", type != nullptr ? type->name : "?"}, {"shape", std::move(shape)}});
  }
  return info;
}

}  // namespace braid::registry
