#include "model/families/folder_reader.h"

#include "kernels/weight_block.h"
#include "kernels/weight_type.h"
#include "model/prequantized/prequantized.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <fmt/format.h>
#include <numeric>
#include <optional>
#include <set>

namespace braid::model {
namespace {

using Pair = std::pair<std::string_view, std::string_view>;

constexpr std::array kLayerNames = {
    Pair{"input_layernorm", "attn_norm"},
    Pair{"post_attention_layernorm", "ffn_norm"},
    Pair{"self_attn.q_proj", "attn_q"},
    Pair{"self_attn.k_proj", "attn_k"},
    Pair{"self_attn.v_proj", "attn_v"},
    Pair{"self_attn.o_proj", "attn_output"},
    Pair{"self_attn.qkv_proj", "attn_qkv"},
    Pair{"self_attn.q_norm", "attn_q_norm"},
    Pair{"self_attn.k_norm", "attn_k_norm"},
    Pair{"mlp.gate_proj", "ffn_gate"},
    Pair{"mlp.up_proj", "ffn_up"},
    Pair{"mlp.gate_up_proj", "ffn_up"},
    Pair{"mlp.down_proj", "ffn_down"},
    // Beside experts.
    Pair{"mlp.gate", "ffn_gate_inp"},
    Pair{"mlp.gate.e_score_correction_bias", "exp_probs_b.bias"},
    Pair{"mlp.shared_experts.gate_proj", "ffn_gate_shexp"},
    Pair{"mlp.shared_experts.up_proj", "ffn_up_shexp"},
    Pair{"mlp.shared_experts.down_proj", "ffn_down_shexp"},
    // GPT's names.
    Pair{"ln_1", "attn_norm"},
    Pair{"ln_2", "ffn_norm"},
    Pair{"attn.c_attn", "attn_qkv"},
    Pair{"attn.c_proj", "attn_output"},
    Pair{"mlp.c_fc", "ffn_up"},
    Pair{"mlp.c_proj", "ffn_down"},
    Pair{"attention.query_key_value", "attn_qkv"},
    Pair{"attention.dense", "attn_output"},
    Pair{"self_attention.query_key_value", "attn_qkv"},
    Pair{"self_attention.dense", "attn_output"},
    Pair{"mlp.dense_h_to_4h", "ffn_up"},
    Pair{"mlp.dense_4h_to_h", "ffn_down"},
};

constexpr std::array kModelNames = {
    Pair{"model.embed_tokens", "token_embd"},
    Pair{"model.norm", "output_norm"},
    Pair{"lm_head", "output"},
    Pair{"score", "cls.output"},  // of classes
    // Without a head.
    Pair{"embed_tokens", "token_embd"},
    Pair{"norm", "output_norm"},
    Pair{"transformer.wte", "token_embd"},
    Pair{"transformer.wpe", "position_embd"},
    Pair{"transformer.ln_f", "output_norm"},
    Pair{"transformer.word_embeddings", "token_embd"},
    Pair{"transformer.word_embeddings_layernorm", "token_embd_norm"},
    Pair{"gpt_neox.embed_in", "token_embd"},
    Pair{"gpt_neox.final_layer_norm", "output_norm"},
    Pair{"embed_out", "output"},
};

// What training code leaves in files although it follows from the configuration.
constexpr std::array<std::string_view, 6> kUseless = {".rotary_emb.inv_freq",   ".attn.bias",   ".attn.masked_bias", ".attention.bias",
                                                      ".attention.masked_bias", ".position_ids"};

std::optional<std::uint32_t> type_of(std::string_view dtype) {
  using kernels::WeightType;
  if (dtype == "F32") return static_cast<std::uint32_t>(WeightType::kF32);
  if (dtype == "F16") return static_cast<std::uint32_t>(WeightType::kF16);
  if (dtype == "BF16") return static_cast<std::uint32_t>(WeightType::kBF16);
  return std::nullopt;
}

// Without the part of the path that a wrapper adds; nothing for what belongs to images or sound.
std::optional<std::string> text_name(std::string_view name) {
  for (const std::string_view wrapper : {"model.language_model.", "language_model.", "llm."}) {
    if (!name.starts_with(wrapper)) continue;
    name.remove_prefix(wrapper.size());
    const bool bare = !name.starts_with("model.") && !name.starts_with("lm_head.") && !name.starts_with("output.");
    return bare ? "model." + std::string(name) : std::string(name);
  }
  constexpr std::string_view kTextModel = "model.text_model.";  // Idefics 3's
  if (name.starts_with(kTextModel)) return "model." + std::string(name.substr(kTextModel.size()));
  for (const std::string_view own : {"lm_head.", "model.layers.", "model.embed_tokens.", "model.norm."})
    if (name.starts_with(own)) return std::string(name);
  return std::nullopt;
}

struct Place {
  std::optional<std::string_view> layer;  // its number
  std::string_view rest;                  // what follows it, or the whole name
};

Place place_of(std::string_view stem) {
  for (std::size_t at = stem.find('.'); at != std::string_view::npos; at = stem.find('.', at + 1)) {
    const std::size_t end = stem.find('.', at + 1);
    const std::string_view part = stem.substr(at + 1, end == std::string_view::npos ? end : end - at - 1);
    const bool number = !part.empty() && std::ranges::all_of(part, [](unsigned char c) { return std::isdigit(c) != 0; });
    if (number && end != std::string_view::npos) return {part, stem.substr(end + 1)};
  }
  return {std::nullopt, stem};
}

std::optional<std::string_view> look_up(std::span<const Pair> names, std::string_view name) {
  const auto found = std::ranges::find(names, name, &Pair::first);
  return found == names.end() ? std::nullopt : std::optional(found->second);
}

bool is_useless(std::string_view name) {
  return std::ranges::any_of(kUseless, [&](std::string_view useless) { return name.ends_with(useless); });
}

// Tensors of quantised matrices lie one name deeper.
bool is_common(std::string_view part) { return look_up(kLayerNames, part) || look_up(kLayerNames, part.substr(0, part.rfind('.'))); }

}  // namespace

std::vector<std::string> unknown_parts(const files::HfFolder& folder, bool wrapped) {
  constexpr std::size_t kLongestPart = 80;  // of those that belong into a sentence
  std::set<std::string> parts;
  for (const auto& [stored, tensor] : folder.tensors()) {
    const std::optional<std::string> name = wrapped ? text_name(stored) : std::optional(stored);
    if (!name || is_useless(*name)) continue;
    const bool usual = name->ends_with(".weight") || name->ends_with(".bias");
    const Place place = place_of(std::string_view(*name).substr(0, usual ? name->rfind('.') : std::string::npos));
    if (!place.layer || is_common(place.rest)) continue;
    std::string part;  // digits that are a name of their own become "*"
    for (const char c : place.rest) {
      const bool begins = part.empty() || part.ends_with('.');
      const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
      if (digit && part.ends_with('*')) continue;
      part += digit && begins ? '*' : c;
    }
    if (part.size() <= kLongestPart) parts.insert(std::move(part));
  }
  return {parts.begin(), parts.end()};
}

RowOrder paired_rows(std::int32_t heads, std::int32_t head_dim, std::int32_t rotated) {
  if (rotated == 0) rotated = head_dim;
  RowOrder order;
  for (std::int32_t row = 0; row < heads * head_dim; ++row) {
    const std::int32_t in_head = row % head_dim;
    order.push_back(in_head < rotated ? row - in_head + in_head % 2 * (rotated / 2) + in_head / 2 : row);
  }
  return order;
}

RowOrder ungrouped_rows(std::int32_t heads, std::int32_t kv_heads, std::int32_t head_dim) {
  const std::int32_t group = heads / kv_heads;
  RowOrder order;
  const auto add = [&](std::int32_t kv_head, std::int32_t member) {
    for (std::int32_t i = 0; i < head_dim; ++i) order.push_back((kv_head * (group + 2) + member) * head_dim + i);
  };
  for (std::int32_t head = 0; head < heads; ++head) add(head / group, head % group);
  for (const std::int32_t member : {group, group + 1})
    for (std::int32_t head = 0; head < kv_heads; ++head) add(head, member);
  return order;
}

RowOrder consecutive_rows(std::int32_t first, std::int32_t count) {
  RowOrder order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), first);
  return order;
}

FolderReader::FolderReader(const files::HfFolder& folder, FolderConfig own_config, std::string_view architecture, const Stands& stands)
    : config(std::move(own_config)), folder_(folder), architecture_(architecture) {
  metadata_.emplace_back("general.architecture", std::string(architecture));
  metadata_.emplace_back("general.name", folder.path().substr(folder.path().rfind('/') + 1));
  const Prequantized quantized = read_prequantized(folder, config);
  notes_ = quantized.notes;
  const bool sees = config.has({"vision_config"});  // beside the text's own keys, as older files have it
  const auto own_name = [&](const std::string& name) {
    if (config.is_wrapped()) return text_name(name);
    return sees && name.starts_with("visual.") ? std::nullopt : std::optional(name);
  };
  for (const auto& [name, stored] : folder.tensors()) {
    if (quantized.used.contains(name)) continue;
    if (is_useless(name)) continue;
    if (const auto own = own_name(name)) add_stored(*own, stored);
  }
  for (const auto& [name, coded] : quantized.matrices)
    if (const auto own = own_name(name)) add_coded(*own, coded);
  for (const auto& [name, stand] : stands)
    if (const auto own = own_name(name)) add_stand(*own, stand);
}

// Of the type that the others of its kind have.
void FolderReader::add_stand(const std::string& name, const Stand& stand) {
  files::GgufTensor& tensor = tensors_[name];
  if (tensor.name.empty()) tensor.type = static_cast<std::uint32_t>(kernels::WeightType::kF32);
  tensor.name = name;
  tensor.shape = stand.columns > 0 ? std::vector{stand.columns, stand.rows->rows()} : std::vector{stand.rows->rows()};
  tensor.bytes = {};
  tensor.coded = stand.rows;
}

void FolderReader::add_coded(const std::string& name, std::shared_ptr<const CodedMatrix> coded) {
  files::GgufTensor tensor;
  tensor.name = name;
  tensor.type = static_cast<std::uint32_t>(coded->type());
  tensor.shape = {coded->columns(), coded->rows()};
  tensor.bytes = coded->code_bytes();
  tensor.coded = std::move(coded);
  tensors_.emplace(name, std::move(tensor));
}

void FolderReader::add_stored(const std::string& name, const files::SafeTensor& stored) {
  const auto type = type_of(stored.dtype);
  if (!type)
    config.fail(ErrorCode::kUnsupported, fmt::format("the tensor {} has the type {}, expected F32, F16 or BF16", name, stored.dtype));
  files::GgufTensor tensor;
  tensor.name = name;
  tensor.type = type.value_or(0);
  tensor.shape.assign(stored.shape.rbegin(), stored.shape.rend());
  if (tensor.shape.empty()) tensor.shape = {1};
  tensor.bytes = stored.bytes;
  tensors_.emplace(name, std::move(tensor));
}

void FolderReader::set(std::string_view key, files::GgufValue value) {
  set_bare(fmt::format("{}.{}", architecture_, key), std::move(value));
}

void FolderReader::set_bare(std::string key, files::GgufValue value) {
  // A file holds floats of 32 bits, and is to compute the same.
  const auto rounded = [](double number) { return static_cast<double>(static_cast<float>(number)); };
  if (auto* number = std::get_if<double>(&value)) *number = rounded(*number);
  if (auto* array = std::get_if<files::GgufArray>(&value))
    if (auto* numbers = std::get_if<std::vector<double>>(&array->items)) std::ranges::transform(*numbers, numbers->begin(), rounded);
  const auto found = std::ranges::find(metadata_, key, &std::pair<std::string, files::GgufValue>::first);
  if (found != metadata_.end()) {
    found->second = std::move(value);
  } else {
    metadata_.emplace_back(std::move(key), std::move(value));
  }
}

void FolderReader::unset(std::string_view key) {
  std::erase_if(metadata_, [full = fmt::format("{}.{}", architecture_, key)](const auto& entry) { return entry.first == full; });
}

bool FolderReader::has_key(std::string_view key) const {
  const std::string full = fmt::format("{}.{}", architecture_, key);
  return std::ranges::find(metadata_, full, &std::pair<std::string, files::GgufValue>::first) != metadata_.end();
}

void FolderReader::name_tensors(Names own) {
  std::map<std::string, files::GgufTensor> named;
  for (auto& [name, tensor] : tensors_) {
    const std::size_t dot = name.rfind('.');
    const std::string_view kind = dot == std::string::npos ? std::string_view() : std::string_view(name).substr(dot);
    const bool usual = kind == ".weight" || kind == ".bias";
    const std::string_view stem = usual ? std::string_view(name).substr(0, dot) : std::string_view(name);
    const Place place = place_of(stem);
    auto found = look_up(own, place.rest);
    if (!found) found = look_up(place.layer ? std::span<const Pair>(kLayerNames) : std::span<const Pair>(kModelNames), place.rest);
    if (found) {
      tensor.name = place.layer ? fmt::format("blk.{}.{}", *place.layer, *found) : std::string(*found);
      if (usual) tensor.name += kind;
    }
    std::string key = tensor.name;
    if (!named.emplace(key, std::move(tensor)).second)
      config.fail(ErrorCode::kUnsupported, fmt::format("several tensors of the folder stand for {}", key));
  }
  tensors_ = std::move(named);
}

std::vector<std::string> FolderReader::of_part(std::string_view part) const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors_) {
    const std::size_t end = name.rfind('.');
    if (!name.starts_with("blk.") || end == std::string::npos) continue;
    const std::size_t begin = name.find('.', 4) + 1;
    if (begin <= end && std::string_view(name).substr(begin, end - begin) == part) names.push_back(name);
  }
  return names;
}

void FolderReader::reorder(std::string_view part, const RowOrder& order) {
  for (const std::string& name : of_part(part)) {
    files::GgufTensor& tensor = tensors_.at(name);
    if (tensor.shape.back() == static_cast<std::int64_t>(order.size())) tensor.order = order;  // another size is refused later
  }
}

void FolderReader::reorder_columns(std::string_view part, const RowOrder& order) {
  for (const std::string& name : of_part(part)) {
    files::GgufTensor& tensor = tensors_.at(name);
    if (tensor.shape.size() == 2 && tensor.shape.front() == static_cast<std::int64_t>(order.size())) tensor.columns = order;
  }
}

void FolderReader::multiply(std::string_view part, const std::vector<float>& factors) {
  for (const std::string& name : of_part(part)) tensors_.at(name).factors = factors;
}

void FolderReader::split(std::string_view part, std::initializer_list<std::pair<std::string_view, RowOrder>> pieces) {
  for (const std::string& name : of_part(part)) {
    const files::GgufTensor whole = std::move(tensors_.extract(name).mapped());
    const std::size_t at = name.rfind(part);
    for (const auto& [piece_part, order] : pieces) {
      files::GgufTensor piece = whole;
      piece.name.replace(at, part.size(), piece_part);
      piece.shape.back() = static_cast<std::int64_t>(order.size());
      piece.order = order;
      tensors_.emplace(piece.name, std::move(piece));
    }
  }
}

void FolderReader::squeeze(std::string_view part) {
  for (const std::string& name : of_part(part)) std::erase(tensors_.at(name).shape, 1);
}

void FolderReader::transpose(std::string_view part) {
  for (const std::string& name : of_part(part)) {
    files::GgufTensor& tensor = tensors_.at(name);
    if (const auto* module = dynamic_cast<const ModuleRows*>(tensor.coded.get())) tensor.coded = module->turned();
    if (tensor.shape.size() == 2 && !tensor.coded) put_transposed(std::move(*extract(name)));
  }
}

void FolderReader::join_heads(std::string_view from, std::string_view part, std::int32_t layers, std::int32_t heads) {
  for (std::int32_t layer = 0; layer < layers && !config.error; ++layer) {
    files::GgufTensor joined;
    std::vector<std::byte> bytes;
    for (std::int32_t head = 0; head < heads; ++head) {
      const auto found = tensors_.find(fmt::format("model.layers.{}.{}.{}.weight", layer, from, head));
      if (found == tensors_.end()) break;
      joined = std::move(found->second);
      bytes.insert(bytes.end(), joined.bytes.begin(), joined.bytes.end());
      tensors_.erase(found);
    }
    if (bytes.empty()) continue;
    joined.name = fmt::format("blk.{}.{}.weight", layer, part);
    joined.shape.push_back(heads);
    computed_.push_back(files::owned_bytes(std::move(bytes), joined.name));
    joined.bytes = computed_.back()->bytes();
    tensors_.emplace(joined.name, std::move(joined));
  }
}

void FolderReader::add_to_vectors(std::string_view ending, float plus) {
  for (auto& [name, tensor] : tensors_)
    if (name.ends_with(ending)) tensor.plus = plus;
}

std::optional<files::GgufTensor> FolderReader::extract(const std::string& name) {
  auto node = tensors_.extract(name);
  if (node.empty()) return std::nullopt;
  return std::move(node.mapped());
}

void FolderReader::put(files::GgufTensor tensor) {
  std::string name = tensor.name;
  tensors_.insert_or_assign(std::move(name), std::move(tensor));
}

void FolderReader::add_table(const std::string& name, std::span<const double> values, std::int64_t rows) {
  add_vector(name, values);
  tensors_[name].shape = {static_cast<std::int64_t>(values.size()) / rows, rows};
}

void FolderReader::put_owned(files::GgufTensor tensor, std::vector<std::byte> bytes) {
  computed_.push_back(files::owned_bytes(std::move(bytes), tensor.name));
  tensor.bytes = computed_.back()->bytes();
  put(std::move(tensor));
}

void FolderReader::put_transposed(files::GgufTensor tensor) {
  const auto columns = static_cast<std::size_t>(tensor.shape[0]);  // as stored
  const auto rows = static_cast<std::size_t>(tensor.shape[1]);
  const std::size_t matrix = rows * columns;
  std::size_t values = matrix;
  for (std::size_t i = 2; i < tensor.shape.size(); ++i) values *= static_cast<std::size_t>(tensor.shape[i]);
  const std::size_t size = values == 0 ? 0 : tensor.bytes.size() / values;
  std::vector<std::byte> bytes(tensor.bytes.size());
  for (std::size_t first = 0; first < values; first += matrix)
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t column = 0; column < columns; ++column)
        std::memcpy(&bytes[(first + column * rows + row) * size], &tensor.bytes[(first + row * columns + column) * size], size);
  computed_.push_back(files::owned_bytes(std::move(bytes), tensor.name));
  tensor.bytes = computed_.back()->bytes();
  std::swap(tensor.shape[0], tensor.shape[1]);
  put(std::move(tensor));
}

std::int64_t FolderReader::rows(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found != tensors_.end() && found->second.shape.size() == 2 ? found->second.shape[1] : 0;
}

std::optional<float> FolderReader::scalar(const std::string& name) {
  const auto found = tensors_.find(name);
  if (found == tensors_.end() || found->second.shape != std::vector<std::int64_t>{1} || found->second.coded) return std::nullopt;
  float value = 0.0F;
  kernels::dequantize_row(static_cast<kernels::WeightType>(found->second.type), found->second.bytes.data(), 1, &value);
  numbers_.push_back(name);
  return value;
}

std::vector<float> FolderReader::values(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end() || found->second.coded) return {};
  const auto type = static_cast<kernels::WeightType>(found->second.type);
  const kernels::WeightFormat* format = kernels::weight_format(type);
  if (format == nullptr || format->block_values != 1) return {};
  std::vector<float> values(found->second.bytes.size() / kernels::stored_row_bytes(*format, 1));
  kernels::dequantize_row(type, found->second.bytes.data(), static_cast<std::int64_t>(values.size()), values.data());
  return values;
}

void FolderReader::add_vector(const std::string& name, std::span<const double> values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto value = static_cast<float>(values[i]);
    std::memcpy(&bytes[i * sizeof value], &value, sizeof value);
  }
  computed_.push_back(files::owned_bytes(std::move(bytes), name));
  tensors_[name] = {.name = name,
                    .type = static_cast<std::uint32_t>(kernels::WeightType::kF32),
                    .shape = {static_cast<std::int64_t>(values.size())},
                    .bytes = computed_.back()->bytes()};
}

files::GgufContents FolderReader::take() {
  files::GgufContents contents;
  contents.sources = folder_.sources();
  contents.sources.insert(contents.sources.end(), computed_.begin(), computed_.end());
  contents.metadata = std::move(metadata_);
  contents.numbers = std::move(numbers_);
  contents.notes = std::move(notes_);
  for (auto& [name, tensor] : tensors_) contents.tensors.push_back(std::move(tensor));
  return contents;
}

}  // namespace braid::model
