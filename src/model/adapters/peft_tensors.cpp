// Where a base's file has what PEFT calls modules of it.
#include "files/safetensors.h"
#include "model/adapters/peft_experts.h"
#include "model/adapters/peft_modules.h"
#include "model/adapters/read_adapter.h"
#include "model/families/families.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace braid::model {
namespace {

class TensorNames {
 public:
  TensorNames(const PeftConfig& config, const AdaptedBase& base, std::map<std::string, PeftModule> modules)
      : config_(config), base_(base), modules_(std::move(modules)) {}

  std::optional<Error> error;
  std::vector<std::shared_ptr<const files::ByteSource>> made;  // what parts of matrices lie in

  // What is said, by the names of the base's file.
  std::vector<StoredMatrix> take() {
    std::map<std::string, std::pair<std::int64_t, std::int64_t>> sizes;  // of modules whose place depends on the family
    std::map<const NormShape*, std::map<std::string, const StoredMatrix*>> heads;
    std::vector<StoredMatrix> all;
    for (auto& [name, module] : modules_) {
      if (is_of_experts(name.substr(0, name.rfind('.')), module.parameter)) {
        add_experts(name, module.stored, all);
      } else if (const NormShape* norm = norm_of_heads(name)) {
        heads[norm].emplace(name, &module.stored);
      } else if (const auto own = table_name(name)) {
        module.stored.name = *own;
        all.push_back(std::move(module.stored));
      } else if (!module.stored.rows.empty()) {
        fail(ErrorCode::kUnsupported, module.stored.rows.name, "is of a module that this build does not know as an embedding or a head");
      } else {
        sizes.emplace(name, size_of(module.stored));
      }
    }
    for (const auto& [norm, parts] : heads) join_heads(*norm, parts, all);
    if (sizes.empty()) return all;
    folder_ = folder_of(base_);
    for (const auto& module : sizes) hold_against_folder(module.first, modules_.at(module.first).stored);
    place(sizes, all);
    return all;
  }

 private:
  void fail(ErrorCode code, const std::string& tensor, const std::string& what) {
    if (!error) error = Error{code, fmt::format("{}: tensor {}: {}", config_.path, tensor, what), {}};
  }

  void add_experts(const std::string& name, const StoredMatrix& joined, std::vector<StoredMatrix>& all) {
    Result<PartedExperts> parts = part_experts(name, joined, config_, base_.shape);
    if (!parts && !error) error = parts.error();
    if (!parts) return;
    std::ranges::move(parts->matrices, std::back_inserter(all));
    made.push_back(std::move(parts->factors));
  }

  // The norm whose weights a folder has apart for each head ("q_layernorm.norms.3"), and a file together; null: it is none of them.
  const NormShape* norm_of_heads(const std::string& module) const {
    const std::optional<std::size_t> layer = layer_number_in(module);
    if (!layer || *layer >= base_.shape.layers.size()) return nullptr;
    const AttentionShape& attention = base_.shape.layers[*layer].attention;
    const std::string head = module.substr(0, module.rfind('.'));
    const NormShape& norm = head.ends_with(".q_layernorm.norms") ? attention.query_norm : attention.key_norm;
    const bool is_one = head.ends_with(".q_layernorm.norms") || head.ends_with(".k_layernorm.norms");
    return is_one && norm.kind != NormShape::Kind::kNone ? &norm : nullptr;
  }

  void join_heads(const NormShape& norm, const std::map<std::string, const StoredMatrix*>& parts, std::vector<StoredMatrix>& all) {
    const std::string& any = parts.begin()->first;
    const std::string before = any.substr(0, any.rfind('.') + 1);
    const StoredTensor& first = parts.begin()->second->replacement;
    std::vector<float> values;
    for (std::int32_t head = 0; head < norm.rows; ++head) {
      const auto found = parts.find(fmt::format("{}{}", before, head));
      if (found == parts.end())
        return fail(ErrorCode::kBadFile, fmt::format("{}{}.weight", before, head),
                    fmt::format("is missing; {} is there", parts.begin()->second->said_by()));
      const StoredTensor& own = found->second->replacement;
      if (!found->second->bias.empty())
        return fail(ErrorCode::kUnsupported, found->second->bias.name, fmt::format("{} of the base is a norm without a bias", norm.name));
      if (own.shape.size() != 1 || own.shape != first.shape)
        return fail(ErrorCode::kBadFile, found->second->said_by(), "is not as many weights as the other heads' norms");
      values.resize(values.size() + static_cast<std::size_t>(own.columns()));
      own.read_row(0, values.data() + values.size() - own.columns());
    }
    if (std::cmp_not_equal(parts.size(), norm.rows))
      return fail(ErrorCode::kBadFile, parts.rbegin()->second->said_by(), fmt::format("is of no head: the base has {} there", norm.rows));
    const auto bytes = std::as_bytes(std::span(values));
    made.push_back(files::owned_bytes({bytes.begin(), bytes.end()}, first.name));
    StoredMatrix& joined = all.emplace_back();
    joined.name = norm.name;
    joined.replacement = {.name = first.name, .shape = {norm.rows, first.columns()}, .bytes = made.back()->bytes()};
  }

  // Whose rows lie as they are, whatever the family.
  std::optional<std::string> table_name(const std::string& module) const {
    const std::string_view last = std::string_view(module).substr(module.rfind('.') + 1);
    for (const std::string_view name : {"lm_head", "embed_out"})
      if (last == name) return base_.shape.output.name;
    for (const std::string_view name : {"embed_tokens", "wte", "word_embeddings", "embed_in"})
      if (last == name) return base_.shape.input.name;
    // Of transformers' reward models and classifiers, and of TRL's value heads.
    if (last == "score" || module == "v_head" || module == "v_head.summary" || module == "classifier") return kHeadName;
    return std::nullopt;
  }

  static std::pair<std::int64_t, std::int64_t> size_of(const StoredMatrix& stored) {
    if (!stored.up.empty()) return {stored.up.shape[0], stored.down.shape[1]};
    const std::vector<std::int64_t>& whole = stored.replacement.shape;
    if (!whole.empty()) return {whole.front(), whole.size() > 1 ? whole.back() : 0};
    return {stored.bias.shape.front(), 1};
  }

  // A file may hold a part of a module only, which says nothing of the others.
  void hold_against_folder(const std::string& module, const StoredMatrix& stored) {
    if (!folder_) return;  // which place() says
    for (const auto& [tensor, ending] : {std::pair(&stored.replacement, ".weight"), {&stored.bias, ".bias"}}) {
      const auto own = folder_->tensors().find(module + ending);
      if (tensor->empty() || own == folder_->tensors().end() || tensor->shape == own->second.shape) continue;
      fail(ErrorCode::kBadFile, tensor->name,
           fmt::format("found shape [{}], expected [{}], as the base has it", fmt::join(tensor->shape, ", "),
                       fmt::join(own->second.shape, ", ")));
    }
  }

  // Of all modules the one is named that cannot be placed alone.
  void fail_to_place(const std::map<std::string, std::pair<std::int64_t, std::int64_t>>& sizes, const Error& of_all) {
    Error reason = of_all;
    std::string tensor = modules_.at(sizes.begin()->first).stored.said_by();
    for (const auto& module : sizes) {
      const Result<std::vector<ModulePlace>> alone = places_of({module});
      if (alone) continue;
      reason = alone.error();
      tensor = modules_.at(module.first).stored.said_by();
      break;
    }
    if (!base_.folder.empty()) return fail(reason.code, tensor, reason.message);
    fail(reason.code, tensor,
         fmt::format("where its rows lie in the base's file cannot be told ({}): load the base from its folder, or make a GGUF file of "
                     "the adapter",
                     reason.message));
  }

  void place(const std::map<std::string, std::pair<std::int64_t, std::int64_t>>& sizes, std::vector<StoredMatrix>& all) {
    const Result<std::vector<ModulePlace>> places = places_of(sizes);
    if (!places) return fail_to_place(sizes, places.error());
    for (const ModulePlace& at : *places) {
      StoredMatrix own = modules_.at(at.module).stored;
      own.name = at.tensor;
      own.expert = at.expert;
      own.order = at.order;
      own.columns = at.columns;
      own.factors = at.factors;
      own.plus = at.plus;
      own.across = at.across;
      own.lies_turned = at.turned;
      all.push_back(std::move(own));
    }
  }

  Result<std::vector<ModulePlace>> places_of(const std::map<std::string, std::pair<std::int64_t, std::int64_t>>& sizes) const {
    if (!folder_) return folder_.error();
    return place_modules(*folder_, sizes);
  }

  const PeftConfig& config_;
  const AdaptedBase& base_;
  std::map<std::string, PeftModule> modules_;
  Result<files::HfFolder> folder_ = Error{};  // the base, or what its folder would be
};

}  // namespace

Result<files::HfFolder> folder_of(const AdaptedBase& base) {
  if (!base.folder.empty()) return files::HfFolder::open(base.folder);
  Result<std::string> config = config_like(base.shape);
  if (!config) return config.error();
  return files::HfFolder::of_config("a folder of the base", std::move(*config));
}

Result<StoredAdapter> read_peft_tensors(std::shared_ptr<const PeftConfig> config, std::shared_ptr<const files::ByteSource> source,
                                        const AdaptedBase& base) {
  Result<std::map<std::string, PeftModule>> modules = read_peft_modules(*config, *source);
  if (!modules) return modules.error();
  TensorNames names(*config, base, std::move(*modules));
  StoredAdapter adapter{.name = source->name(), .sources = {std::move(source)}, .matrices = {}, .all_layers = config->all_layers};
  adapter.matrices = names.take();
  if (names.error) return *names.error;
  adapter.sources.insert(adapter.sources.end(), names.made.begin(), names.made.end());
  adapter.config = std::move(config);
  return adapter;
}

Result<std::shared_ptr<const files::ByteSource>> with_newer_tensors(const files::ByteSource& older, const files::ByteSource& newer) {
  Result<files::SafeTensors> all = files::parse_safetensors(older.bytes());
  if (!all) return Error{all.error().code, fmt::format("{}: {}", older.name(), all.error().message), {}};
  Result<files::SafeTensors> some = files::parse_safetensors(newer.bytes());
  if (!some) return Error{some.error().code, fmt::format("{}: {}", newer.name(), some.error().message), {}};
  if (some->tensors.empty()) return Error{ErrorCode::kBadFile, newer.name() + ": holds no tensors", {}};
  for (auto& [name, tensor] : some->tensors) {
    const auto found = all->tensors.find(name);
    if (found == all->tensors.end())
      return Error{ErrorCode::kBadFile, fmt::format("{}: the adapter has no tensor {}", newer.name(), name), {}};
    found->second = std::move(tensor);
  }
  return files::owned_bytes(files::write_safetensors(*all), newer.name());
}

}  // namespace braid::model
