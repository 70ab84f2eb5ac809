#include "model/encoders/encoder_adapter_builder.h"

#include "files/hf_folder.h"
#include "model/adapters/adapter.h"
#include "model/adapters/peft_modules.h"
#include "model/adapters/read_adapter.h"
#include "model/encoders/encoder_families.h"
#include "model/encoders/encoder_loader.h"
#include "model/encoders/encoder_parts.h"
#include "model/encoders/gguf_modules.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace braid::model {
namespace {

std::string module_of(const std::string& weight) { return weight.substr(0, weight.size() - std::string_view(".weight").size()); }

std::vector<float> floats_of(const StoredTensor& tensor) {
  const std::int64_t rows = tensor.shape.size() > 1 ? tensor.shape.front() : 1;
  std::vector<float> values(static_cast<std::size_t>(rows * tensor.columns()));
  for (std::int64_t row = 0; row < rows; ++row) tensor.read_row(row, values.data() + row * tensor.columns());
  return values;
}

files::SafeTensor as_stored(const StoredTensor& tensor) {
  const char* type = tensor.type == kernels::WeightType::kF32 ? "F32" : tensor.type == kernels::WeightType::kF16 ? "F16" : "BF16";
  return {type, tensor.shape, tensor.bytes};
}

// "encoder.layer.3.output.dense" as "encoder.layer.#.output.dense"; what is in no layer: nothing.
std::string in_any_layer(const std::string& module) {
  for (std::size_t at = module.find('.'); at != std::string::npos; at = module.find('.', at + 1)) {
    std::size_t end = at + 1;
    while (end < module.size() && std::isdigit(static_cast<unsigned char>(module[end])) != 0) ++end;
    if (end > at + 1 && end < module.size() && module[end] == '.') return module.substr(0, at + 1) + "#" + module.substr(end);
  }
  return {};
}

class EncoderAdapterBuilder {
 public:
  // `is_of_file`: modules have the names of llama.cpp's files.
  EncoderAdapterBuilder(const PeftConfig& config, const AdaptedEncoder& base, std::map<std::string, PeftModule> modules, bool is_of_file)
      : config_(config), base_(base), own_(std::move(modules)), is_of_file_(is_of_file), parts_(parts_of(base.shape, base.weights)),
        adapter_(std::make_shared<EncoderAdapter>()) {}

  Result<std::shared_ptr<const EncoderAdapter>> build() {
    name_as_base();
    if (const Result<void> read = read_base(); !read) return read.error();
    for (const EncoderPart& part : parts_)
      outputs_[module_of(part.linear->weight)] =
          std::max(outputs_[module_of(part.linear->weight)], part.linear->first + part.linear->outputs);
    take_head();
    adapter_->matrix_place.resize(base_.weights.matrices + numbered_.matrices + 1, -1);
    adapter_->norm_place.resize(base_.weights.norms + numbered_.norms + 1, -1);
    for (const EncoderPart& part : parts_) take(part);
    for (const EncoderNormPart& part : norms_of(base_.shape, base_.weights)) take(part);
    take_tables();
    check_all_used();
    if (config_.all_layers) check_layers();
    if (error_) return *error_;
    sum_up();
    return std::shared_ptr<const EncoderAdapter>(std::move(adapter_));
  }

 private:
  void fail(ErrorCode code, const std::string& tensor, const std::string& what) {
    if (!error_) error_ = Error{code, fmt::format("{}: tensor {}: {}", config_.path, tensor, what), {}};
  }

  // Modules as the base's file has them: a model with a head calls its layers "bert.encoder", one without "encoder".
  void name_as_base() {
    std::set<std::string> known;
    for (const EncoderPart& part : parts_) known.insert(module_of(part.linear->weight));
    for (const EncoderNormPart& part : norms_of(base_.shape, base_.weights)) known.insert(module_of(part.norm->weight));
    for (const std::string* table : {&base_.shape.tokens, &base_.shape.positions, &base_.shape.types})
      if (!table->empty()) known.insert(module_of(*table));
    const auto name_of = [&](const std::string& module) {
      if (is_of_file_) {
        const auto found = std::ranges::find_if(known, [&](const std::string& name) { return gguf_module(name).value_or(name) == module; });
        return found != known.end() ? *found : module;
      }
      if (base_.folder.empty()) return gguf_module(module).value_or(module);
      if (known.contains(module)) return module;
      for (const std::string& name : known) {
        if (module.ends_with("." + name)) return name;
        if (name.ends_with("." + module) && name.find('.') == name.size() - module.size() - 1) return name;
      }
      return module;
    };
    for (auto& [module, said] : own_) {
      const std::string name = name_of(module);
      if (const auto [at, is_new] = modules_.try_emplace(name, std::move(said)); !is_new)
        fail(ErrorCode::kBadFile, said.stored.said_by(), fmt::format("says the same as {}", at->second.stored.said_by()));
      modules_.at(name).stored.name = name;
    }
  }

  // The base's folder with what the adapter has whole in the place of the base's.
  Result<void> read_base() {
    if (base_.folder.empty()) return {};
    Result<files::HfFolder> folder = files::HfFolder::open(base_.folder);
    if (!folder) return folder.error();
    std::map<std::string, files::SafeTensor> tensors = folder->tensors();
    for (const auto& [name, module] : modules_) {
      if (!module.stored.replacement.empty()) tensors[name + ".weight"] = as_stored(module.stored.replacement);
      if (!module.stored.bias.empty()) tensors[name + ".bias"] = as_stored(module.stored.bias);
    }
    folder_.emplace(files::HfFolder::of_tensors(folder->path(), folder->config(), std::move(tensors), folder->sources()));
    return {};
  }

  const PeftModule* find(const std::string& module) {
    const auto found = modules_.find(module);
    if (found == modules_.end()) return nullptr;
    used_.insert(module);
    return &found->second;
  }

  bool has_whole(const std::string& weight) {
    const auto found = weight.empty() ? modules_.end() : modules_.find(module_of(weight));
    return found != modules_.end() && (!found->second.stored.replacement.empty() || !found->second.stored.bias.empty());
  }

  // Of a head with weights of the adapter's, or where the base has none, all of it is the adapter's.
  void take_head() {
    if (!folder_ || error_) return;
    const Result<EncoderShape> shape = read_encoder_folder(*folder_);
    if (!shape) {
      error_ = shape.error();
      return;
    }
    const std::optional<EncoderHead>& head = shape->head;
    if (!head || (base_.shape.head && !has_whole(head->out.weight) && !has_whole(head->dense.weight) && !has_whole(head->norm.weight)))
      return;
    if (head->out.outputs < 1) return fail(ErrorCode::kBadFile, head->out.weight, "is no matrix of classes");
    EncoderWeights loaded;
    loaded.matrices = base_.weights.matrices;
    loaded.norms = base_.weights.norms;
    const FolderTensors tensors(folder_->tensors());
    EncoderLoader loader(tensors, base_.table, base_.type, loaded);
    OwnEncoderHead& own = adapter_->head.emplace(OwnEncoderHead{*head, {}});
    own.weights.dense = loader.linear(head->dense);
    own.weights.norm = loader.norm(head->norm, base_.shape.width);
    own.weights.out = loader.linear(head->out);
    if (loader.error) error_ = Error{loader.error->code, fmt::format("{}: {}", config_.path, loader.error->message), {}};
    numbered_ = {loaded.matrices - base_.weights.matrices, loaded.norms - base_.weights.norms};
    adapter_->bytes += loaded.bytes;
    adapter_->parameters += loaded.parameters;
    for (const std::string* weight : {&own.shape.dense.weight, &own.shape.norm.weight, &own.shape.out.weight})
      if (has_whole(*weight)) used_.insert(module_of(*weight));
    // What low-rank parts add to it they add to this one.
    std::erase_if(parts_, [](const EncoderPart& part) { return part.is_head; });
    if (own.shape.dense) parts_.push_back({&own.shape.dense, &own.weights.dense, true});
    parts_.push_back({&own.shape.out, &own.weights.out, true});
    for (const EncoderPart& part : parts_)
      if (part.is_head) outputs_[module_of(part.linear->weight)] = part.linear->outputs;
  }

  void expect_shape(const StoredTensor& tensor, std::initializer_list<std::int64_t> shape, const std::string& module) {
    if (tensor.empty() || std::ranges::equal(tensor.shape, shape)) return;
    fail(ErrorCode::kBadFile, tensor.name,
         fmt::format("found shape [{}], expected [{}], as {} of the base has it", fmt::join(tensor.shape, ", "), fmt::join(shape, ", "),
                     module));
  }

  void expect_rank(const StoredMatrix& stored) {
    const std::int64_t rank = stored.up.columns();
    if (rank < 1 || rank > LowRankFactors::kMostRank)
      fail(ErrorCode::kBadFile, stored.up.name,
           fmt::format("found shape [{}], expected a rank of 1 to {}", fmt::join(stored.up.shape, ", "), LowRankFactors::kMostRank));
    adapter_->rank = std::max(adapter_->rank, static_cast<std::int32_t>(std::min<std::int64_t>(rank, LowRankFactors::kMostRank)));
  }

  // `values`: [outputs, inputs].
  LayerMatrix pack(const std::vector<float>& values, std::int64_t outputs, std::int64_t inputs, kernels::WeightType type) {
    auto packed = pack_floats(base_.table, type, values.data(), outputs, inputs, "an adapter");
    if (!packed) {
      if (!error_) error_ = packed.error();
      return {};
    }
    adapter_->bytes += packed->storage.size();
    return std::move(*packed);
  }

  void take(const EncoderPart& part) {
    const std::string module = module_of(part.linear->weight);
    const PeftModule* own = find(module);
    if (own == nullptr || error_) return;
    const StoredMatrix& stored = own->stored;
    const bool is_whole = !stored.replacement.empty() || !stored.bias.empty();
    if (part.is_head && adapter_->head && is_whole && stored.up.empty()) return;  // is the head's that was taken
    const std::int64_t outputs = outputs_.at(module);
    if (!stored.up.empty()) {
      expect_rank(stored);
      expect_shape(stored.up, {outputs, stored.up.columns()}, module);
      expect_shape(stored.down, {stored.up.columns(), part.linear->inputs}, module);
    }
    expect_shape(stored.replacement, {outputs, part.linear->inputs}, module);
    for (const StoredTensor* vector : {&stored.up_bias, &stored.magnitude, &stored.bias}) expect_shape(*vector, {outputs}, module);
    if (own->is_table)
      fail(ErrorCode::kBadFile, stored.said_by(), fmt::format("is of an embedding, and {} of the base is a matrix", module));
    if (error_) return;
    adapter_->matrix_place[part.packed->matrix.number] = static_cast<std::int32_t>(adapter_->matrices.size());
    AdaptedEncoderMatrix& matrix = adapter_->matrices.emplace_back();
    const auto rows_of = [&](const StoredTensor& tensor) {
      const std::vector<float> all = floats_of(tensor);
      const std::int64_t each = tensor.shape.size() > 1 ? tensor.columns() : 1;
      return std::vector<float>(all.begin() + part.linear->first * each, all.begin() + (part.linear->first + part.linear->outputs) * each);
    };
    if (!stored.replacement.empty())
      matrix.replacement = pack(rows_of(stored.replacement), part.linear->outputs, part.linear->inputs, base_.type);
    if (!stored.bias.empty()) matrix.bias = rows_of(stored.bias);
    if (!stored.up.empty()) take_low_rank(part, stored, rows_of(stored.up), matrix);
    if (!stored.magnitude.empty() && !error_) take_magnitude(part, stored, rows_of(stored.magnitude), rows_of(stored.up), matrix);
    if (stored.up_bias.empty() || error_) return;
    matrix.low_rank.up.bias = rows_of(stored.up_bias);
    for (float& value : matrix.low_rank.up.bias) value *= stored.scale;
  }

  void take_low_rank(const EncoderPart& part, const StoredMatrix& stored, std::vector<float> up, AdaptedEncoderMatrix& matrix) {
    const std::int64_t rank = stored.up.columns();
    for (float& value : up) value *= stored.scale;
    matrix.low_rank.down = pack(floats_of(stored.down), rank, part.linear->inputs, kernels::WeightType::kF32);
    matrix.low_rank.up = pack(up, part.linear->outputs, rank, kernels::WeightType::kF32);
  }

  // magnitude / |W + scale up down|, of each output.
  void take_magnitude(const EncoderPart& part, const StoredMatrix& stored, std::vector<float> magnitude, const std::vector<float>& up,
                      AdaptedEncoderMatrix& matrix) {
    if (!stored.replacement.empty())
      return fail(ErrorCode::kUnsupported, stored.magnitude.name, "this build takes no whole weights beside magnitudes");
    if (!stored.up_bias.empty())
      return fail(ErrorCode::kUnsupported, stored.up_bias.name, "this build takes no bias of a product beside magnitudes");
    const std::int64_t inputs = part.linear->inputs;
    const std::int64_t rank = stored.up.columns();
    const std::vector<float> down = floats_of(stored.down);
    std::vector<float> row(static_cast<std::size_t>(inputs));
    for (std::int64_t output = 0; output < part.linear->outputs; ++output) {
      base_.table.unpack_row(part.packed->matrix, output, row.data());
      double squares = 0.0;
      for (std::int64_t i = 0; i < inputs; ++i) {
        double sum = row[static_cast<std::size_t>(i)];
        for (std::int64_t r = 0; r < rank; ++r)
          sum += double{stored.scale} * up[static_cast<std::size_t>(output * rank + r)] * down[static_cast<std::size_t>(r * inputs + i)];
        squares += sum * sum;
      }
      float& value = magnitude[static_cast<std::size_t>(output)];
      value = squares > 0.0 ? static_cast<float>(value / std::sqrt(squares)) : 0.0F;
    }
    matrix.magnitude = std::move(magnitude);
  }

  void take(const EncoderNormPart& part) {
    const std::string module = module_of(part.norm->weight);
    const PeftModule* own = find(module);
    if (own == nullptr || error_) return;
    const StoredMatrix& stored = own->stored;
    const auto width = static_cast<std::int64_t>(part.weights->weight.size());
    if (!stored.up.empty())
      return fail(ErrorCode::kUnsupported, stored.said_by(), fmt::format("{} of the base is a norm, which has no matrix", module));
    expect_shape(stored.replacement, {width}, module);
    expect_shape(stored.bias, {width}, module);
    if (error_) return;
    adapter_->norm_place[part.weights->number] = static_cast<std::int32_t>(adapter_->norms.size());
    EncoderNormWeights& norm = adapter_->norms.emplace_back(*part.weights);
    if (!stored.replacement.empty()) {
      norm.weight = floats_of(stored.replacement);
      for (float& value : norm.weight) value += part.norm->plus;
    }
    if (!stored.bias.empty()) norm.bias = floats_of(stored.bias);
    adapter_->bytes += 2 * norm.weight.size() * sizeof(float);
  }

  void take_tables() {
    take_table(base_.shape.tokens, base_.weights.tokens.rows, adapter_->tokens);
    take_table(base_.shape.positions, base_.weights.positions, adapter_->positions);
    take_table(base_.shape.types, base_.weights.types.rows, adapter_->types);
  }

  void take_table(const std::string& weight, const std::vector<float>& rows, AdaptedTable& table) {
    const PeftModule* own = weight.empty() ? nullptr : find(module_of(weight));
    if (own == nullptr || error_) return;
    const StoredMatrix& stored = own->stored;
    const std::string module = module_of(weight);
    const std::int64_t width = base_.shape.embedded;
    const std::int64_t count = static_cast<std::int64_t>(rows.size()) / width;
    if (!stored.magnitude.empty())
      return fail(ErrorCode::kUnsupported, stored.magnitude.name, "this build adapts embeddings without magnitudes");
    expect_shape(stored.replacement, {count, width}, module);
    if (!stored.up.empty()) {
      if (!own->is_table)
        return fail(ErrorCode::kBadFile, stored.said_by(), fmt::format("is of a matrix, and {} of the base is an embedding", module));
      expect_rank(stored);
      expect_shape(stored.up, {width, stored.up.columns()}, module);
      const std::int64_t rank = stored.up.columns();
      stored.turned ? expect_shape(stored.down, {count, rank}, module) : expect_shape(stored.down, {rank, count}, module);
    }
    if (error_) return;
    if (!stored.replacement.empty()) table.rows = floats_of(stored.replacement);
    if (!stored.up.empty()) {
      const std::int64_t rank = stored.up.columns();
      const auto turned = [](const std::vector<float>& values, std::int64_t its_rows, std::int64_t columns) {
        std::vector<float> turned_values(values.size());
        for (std::int64_t r = 0; r < its_rows; ++r)
          for (std::int64_t c = 0; c < columns; ++c)
            turned_values[static_cast<std::size_t>(c * its_rows + r)] = values[static_cast<std::size_t>(r * columns + c)];
        return turned_values;
      };
      const std::vector<float> down = floats_of(stored.down);
      table.low_rank = {stored.turned ? down : turned(down, rank, count), turned(floats_of(stored.up), width, rank)};
      for (float& value : table.low_rank.directions) value *= stored.scale;
    }
    adapter_->bytes += (table.rows.size() + table.low_rank.rows.size() + table.low_rank.directions.size()) * sizeof(float);
  }

  // A pooler, say, that the base's folder has and nobody reads, changes nothing; its file would have left it out.
  void check_all_used() {
    for (const auto& [name, module] : modules_) {
      const bool is_there = folder_ && !has_whole(name + ".weight") && folder_->tensors().contains(name + ".weight");
      const bool is_left_out = base_.folder.empty() && name == "cls" && module.stored.replacement.empty();
      if (used_.contains(name) || is_there || is_left_out || is_unread(name)) continue;
      fail(ErrorCode::kUnsupported, module.stored.said_by(),
           fmt::format("the base has no matrix {} that an adapter can change{}", name,
                       base_.folder.empty() ? "; its file has not all that a folder has" : ""));
    }
  }

  // Whole weights stand in the base's place in folder_.
  bool is_unread(const std::string& module) const {
    const Result<files::HfFolder> folder = base_.folder.empty() ? Error{} : files::HfFolder::open(base_.folder);
    return folder && folder->tensors().contains(module + ".weight");
  }

  // Files that have lost tensors: of a layer what is there of another one.
  void check_layers() {
    std::map<std::string, const StoredMatrix*> adapted;
    for (const auto& [name, module] : modules_)
      if (const std::string any = in_any_layer(name); !any.empty() && !module.stored.up.empty()) adapted.emplace(any, &module.stored);
    for (const EncoderPart& part : parts_) {
      const std::string module = module_of(part.linear->weight);
      const auto sibling = adapted.find(in_any_layer(module));
      if (sibling == adapted.end() || modules_.contains(module)) continue;
      fail(ErrorCode::kBadFile, module,
           fmt::format("is missing; {} is there, and every layer is to be adapted alike", sibling->second->said_by()));
    }
  }

  void sum_up() {
    StoredAdapter all{.name = config_.path, .sources = {}, .matrices = {}};
    for (const auto& [name, module] : modules_) {
      const StoredMatrix& stored = module.stored;
      for (const StoredTensor* tensor : {&stored.down, &stored.up, &stored.up_bias, &stored.magnitude, &stored.bias, &stored.replacement})
        if (!tensor->empty()) adapter_->parameters += (tensor->shape.size() > 1 ? tensor->shape.front() : 1) * tensor->columns();
      all.matrices.push_back(stored);
    }
    adapter_->revision = all.revision();
  }

  struct Numbered {
    std::uint32_t matrices = 0, norms = 0;
  };

  const PeftConfig& config_;
  const AdaptedEncoder& base_;
  std::map<std::string, PeftModule> own_;  // as the adapter calls them
  const bool is_of_file_;
  std::map<std::string, PeftModule> modules_;  // as the base does
  std::vector<EncoderPart> parts_;
  std::map<std::string, std::int64_t> outputs_;  // of whole modules
  std::set<std::string> used_;
  std::optional<files::HfFolder> folder_;
  Numbered numbered_;  // of a head
  std::shared_ptr<EncoderAdapter> adapter_;
  std::optional<Error> error_;
};

}  // namespace

Result<std::shared_ptr<const EncoderAdapter>> build_encoder_adapter(const PeftConfig& config, const files::ByteSource& tensors,
                                                                    const AdaptedEncoder& base) {
  Result<std::map<std::string, PeftModule>> modules = read_peft_modules(config, tensors);
  if (!modules) return modules.error();
  for (const auto& [name, module] : *modules)
    if (!module.stored.rows.empty())
      return Error{
          ErrorCode::kUnsupported,
          fmt::format("{}: tensor {}: single rows of an encoder's embedding are not replaced", config.path, module.stored.rows.name),
          {}};
  return EncoderAdapterBuilder(config, base, std::move(*modules), false).build();
}

Result<std::shared_ptr<const EncoderAdapter>> build_encoder_adapter(std::shared_ptr<const files::ByteSource> gguf,
                                                                    const AdaptedEncoder& base) {
  const std::string name = gguf->name();
  const std::optional<std::string> architecture = gguf_architecture(base.shape);
  if (!architecture)
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("{}: there are no GGUF adapters of encoders of the family {}; a folder of PEFT is read", name, base.shape.family),
        {}};
  const Result<StoredAdapter> stored = read_gguf_adapter(std::move(gguf), *architecture, "token_embd");
  if (!stored) return stored.error();
  std::map<std::string, PeftModule> modules;
  for (const StoredMatrix& matrix : stored->matrices) {
    if (matrix.expert >= 0)
      return Error{ErrorCode::kUnsupported, fmt::format("{}: tensor {}: experts of encoders are not adapted", name, matrix.said_by()), {}};
    modules.emplace(matrix.name, PeftModule{matrix, matrix.turned});
  }
  PeftConfig as_said;
  as_said.path = name;
  return EncoderAdapterBuilder(as_said, base, std::move(modules), true).build();
}

}  // namespace braid::model
