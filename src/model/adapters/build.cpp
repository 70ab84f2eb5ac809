#include "model/adapters/build.h"

#include "kernels/half.h"
#include "model/adapters/magnitudes.h"
#include "model/adapters/matrices.h"
#include "model/adapters/whole_weights.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

namespace braid::model {
namespace {

using kernels::WeightType;
using Role = ModelMatrix::Role;

constexpr std::size_t kPartOfAdapter = 64;  // bytes that each begins at a multiple of

// A stored matrix beside one of the base's that it is about: a tensor of the base may hold several.
struct AdaptedPair {
  const StoredMatrix* stored;
  const ModelMatrix* base;

  bool is_table() const { return base->role == Role::kEmbedding; }
  std::int64_t inputs() const { return is_table() ? base->shape.outputs : base->shape.inputs; }
  std::int64_t outputs() const { return is_table() ? base->shape.inputs : base->shape.outputs; }
  std::int64_t stored_outputs() const { return !is_table() && base->shape.stored_outputs > 0 ? base->shape.stored_outputs : outputs(); }
  // Of the stored one.
  std::int64_t rows() const { return stored->across ? inputs() : stored_outputs(); }
  std::int64_t columns() const { return stored->across ? outputs() : inputs(); }
  std::int64_t rank() const { return stored->up.empty() ? 0 : stored->up.columns(); }
  bool half() const { return stored->down.type == WeightType::kBF16 && stored->up.type == WeightType::kBF16 && stored->factors.empty(); }
  // The stored row that is the output's.
  std::int64_t row(std::int64_t output) const {
    const std::int64_t row = is_table() ? output : base->shape.stored_row(output);
    return stored->order.empty() ? row : stored->order[static_cast<std::size_t>(row)];
  }
  float factor(std::int64_t output) const {
    const std::vector<float>& factors = stored->factors;
    if (factors.size() < 2) return factors.empty() ? 1.0F : factors.front();
    return factors[static_cast<std::size_t>(is_table() ? output : base->shape.stored_row(output))];
  }
};

class AdapterBuilder {
 public:
  AdapterBuilder(const StoredAdapter& stored, const Weights& weights, const kernels::KernelTable& table, const Measure& measure)
      : stored_(stored), weights_(weights), table_(table), measure_(measure), adapter_(std::make_shared<Adapter>()) {}

  Result<std::shared_ptr<const Adapter>> build(const ModelShape& model) {
    const std::vector<ModelMatrix> all = matrices_of(model, weights_);
    const std::vector<ModelNorm> norms = norms_of(model, weights_);
    adapter_->norm_place.assign(weights_.norms + 1, -1);
    for (const StoredMatrix& matrix : stored_.matrices) {
      if (matrix.name == kHeadName) {
        read_head(matrix, model);
      } else if (!read_norms(matrix, norms)) {
        find(matrix, model, all);
      }
    }
    for (const AdaptedPair& pair : pairs_) check(pair);
    if (stored_.all_layers) check_layers(all);
    if (error_) return *error_;
    auto storage = files::Mapping::reserve(std::max<std::size_t>(1, bytes()), "an adapter");
    if (!storage) return storage.error();
    adapter_->storage = std::move(*storage);
    adapter_->place.assign(weights_.matrices + 1, -1);
    for (const AdaptedPair& pair : pairs_) fill(pair);
    if (error_) return *error_;
    if (lacks_norms_)
      if (const Result<void> measured = measure_(*adapter_); !measured) return measured.error();
    adapter_->revision = stored_.revision();
    return std::shared_ptr<const Adapter>(std::move(adapter_));
  }

 private:
  void fail(ErrorCode code, const std::string& tensor, const std::string& what) {
    if (!error_) error_ = Error{code, fmt::format("{}: tensor {}: {}", stored_.name, tensor, what), {}};
  }

  void find(const StoredMatrix& stored, const ModelShape& model, const std::vector<ModelMatrix>& all) {
    bool any = false;
    for (const ModelMatrix& base : all) {
      if (base.shape.name != stored.name || base.expert != stored.expert) continue;
      pairs_.push_back({&stored, &base});
      any = true;
    }
    if (!stored.rows.empty() && stored.name == model.input.name && weights_.is_tied) find_tied(stored, model, all);
    const bool is_read = std::ranges::find(model.unused, stored.name + ".weight") == model.unused.end();
    if (!any && is_read)  // keys and values of layers that read those of others, say, change nothing
      fail(ErrorCode::kUnsupported, stored.said_by(),
           fmt::format("the base has no matrix or norm {} that an adapter can change", stored.name));
  }

  // The head that is the embedding has the same rows, unless it is said to have others.
  void find_tied(const StoredMatrix& stored, const ModelShape& model, const std::vector<ModelMatrix>& all) {
    if (std::ranges::any_of(stored_.matrices, [&](const StoredMatrix& other) { return other.name == model.output.name; })) return;
    for (const ModelMatrix& base : all)
      if (base.role == Role::kOutput) pairs_.push_back({&stored, &base});
  }

  // False: there is none of the name.
  bool read_norms(const StoredMatrix& stored, const std::vector<ModelNorm>& all) {
    bool any = false;
    for (const ModelNorm& base : all) {
      if (base.shape->name != stored.name) continue;
      read_norm(stored, base);
      any = true;
    }
    return any;
  }

  // What the adapter has not of it is as the base has it.
  void read_norm(const StoredMatrix& stored, const ModelNorm& base) {
    if (!stored.up.empty())
      return fail(ErrorCode::kUnsupported, stored.said_by(), fmt::format("{} of the base is a norm, which has no matrix", stored.name));
    if (!stored.bias.empty() && base.shape->kind != NormShape::Kind::kLayer)
      return fail(ErrorCode::kUnsupported, stored.bias.name, fmt::format("{} of the base is a norm without a bias", stored.name));
    std::int32_t& place = adapter_->norm_place[base.weights->number];
    if (place >= 0) return fail(ErrorCode::kBadFile, stored.said_by(), "another tensor is about the same norm of the base");
    place = static_cast<std::int32_t>(adapter_->norms.size());
    NormWeights& own = adapter_->norms.emplace_back(*base.weights);
    read_whole(stored, stored.replacement, stored.plus, own.weight);
    read_whole(stored, stored.bias, 0.0F, own.bias);
    const bool has_all = !stored.replacement.empty() && (own.bias.empty() || !stored.bias.empty());
    adapter_->has_halves = adapter_->has_halves || !has_all;
  }

  void read_whole(const StoredMatrix& stored, const StoredTensor& tensor, float plus, std::vector<float>& values) {
    if (tensor.empty()) return;
    std::optional<std::vector<float>> own = whole_values(stored, tensor, plus, std::ssize(values));
    if (!own)
      return fail(ErrorCode::kBadFile, tensor.name,
                  fmt::format("found shape [{}], expected {} values, as {} of the base has them", fmt::join(tensor.shape, ", "),
                              values.size(), stored.name));
    values = std::move(*own);
    adapter_->parameters += std::ssize(values);
  }

  // A head for classes, or values, which takes the place of the base's or gives it one.
  void read_head(const StoredMatrix& stored, const ModelShape& model) {
    const StoredTensor& own = stored.replacement;
    if (!stored.up.empty() || own.empty())
      return fail(ErrorCode::kUnsupported, stored.said_by(), "a head for classes is taken as whole weights (modules_to_save) only");
    if (own.shape.size() != 2 || own.shape.back() != model.embedding || own.shape.front() < 1)
      return fail(ErrorCode::kBadFile, own.name,
                  fmt::format("found shape [{}], expected [classes, {}]", fmt::join(own.shape, ", "), model.embedding));
    const std::int64_t classes = own.shape.front();
    if (!stored.bias.empty() && stored.bias.shape != std::vector<std::int64_t>{classes})
      return fail(ErrorCode::kBadFile, stored.bias.name, fmt::format("expected {} numbers, one for each class", classes));
    std::vector<float> weights(static_cast<std::size_t>(classes * model.embedding));
    for (std::int64_t row = 0; row < classes; ++row) own.read_row(row, weights.data() + row * model.embedding);
    adapter_->head =
        ClassHead::of(model.embedding, std::move(weights), stored.bias.empty() ? std::vector<float>() : values_of(stored.bias));
    adapter_->parameters += classes * (model.embedding + (stored.bias.empty() ? 0 : 1));
  }

  void expect_shape(const StoredTensor& tensor, std::initializer_list<std::int64_t> shape, const AdaptedPair& pair) {
    if (tensor.empty() || std::ranges::equal(tensor.shape, shape)) return;
    fail(ErrorCode::kBadFile, tensor.name,
         fmt::format("found shape [{}], expected [{}], as {} of the base has it", fmt::join(tensor.shape, ", "), fmt::join(shape, ", "),
                     pair.stored->name));
  }

  void check(const AdaptedPair& pair) {
    const StoredMatrix& stored = *pair.stored;
    if (!stored.rows.empty()) return check_rows(pair);
    if (stored.down.empty() != stored.up.empty())
      return fail(ErrorCode::kBadFile, stored.said_by(), "is one of two; the other one is missing");
    if (!stored.order.empty() && std::cmp_not_equal(stored.order.size(), pair.rows()))
      return fail(ErrorCode::kBadFile, stored.said_by(),
                  fmt::format("has {} outputs, expected {}, as {} of the base has them", stored.order.size(), pair.rows(), stored.name));
    // Of a module that the base's file parts the rows are more.
    const std::int64_t least = stored.order.empty() ? pair.rows() : std::ranges::max(stored.order) + std::int64_t{1};
    const auto rows_of = [&](const StoredTensor& tensor) { return tensor.empty() ? least : tensor.shape.front(); };
    const std::int64_t rows = stored.order.empty() ? least : std::max({least, rows_of(stored.up), whole_rows_of(stored)});
    if (!stored.up.empty()) {
      const std::int64_t rank = stored.up.columns();
      if (stored.up.shape.size() != 2 || rank < 1 || rank > LowRankFactors::kMostRank)
        return fail(
            ErrorCode::kBadFile, stored.up.name,
            fmt::format("found shape [{}], expected a rank of 1 to {}", fmt::join(stored.up.shape, ", "), LowRankFactors::kMostRank));
      expect_shape(stored.up, {rows, rank}, pair);
      stored.turned ? expect_shape(stored.down, {pair.columns(), rank}, pair) : expect_shape(stored.down, {rank, pair.columns()}, pair);
    }
    for (const StoredTensor* vector : {&stored.up_bias, &stored.magnitude, &stored.bias}) expect_shape(*vector, {rows}, pair);
    if ((pair.is_table() || stored.across) && (!stored.magnitude.empty() || !stored.bias.empty() || !stored.up_bias.empty()))
      fail(ErrorCode::kUnsupported, stored.said_by(), "this build adapts embeddings and keys of heads without magnitudes and biases");
    if (!stored.replacement.empty() && !stored.magnitude.empty())
      return fail(ErrorCode::kUnsupported, stored.magnitude.name, "this build takes no whole weights beside magnitudes");
    const std::int64_t whole = pair.is_table() ? pair.base->shape.outputs : rows;
    const std::int64_t each = pair.is_table() ? pair.base->shape.inputs : pair.columns();
    stored.lies_turned ? expect_shape(stored.replacement, {each, whole}, pair) : expect_shape(stored.replacement, {whole, each}, pair);
  }

  void check_rows(const AdaptedPair& pair) {
    const StoredMatrix& stored = *pair.stored;
    expect_shape(stored.rows, {std::ssize(stored.tokens), pair.base->shape.inputs}, pair);
    // What they give of each row is put aside beside what comes down of other matrices.
    if (!pair.is_table() && stored.tokens.size() > LowRankFactors::kMostRank)
      fail(ErrorCode::kUnsupported, stored.rows.name,
           fmt::format("has {} rows of a head, expected at most {}", stored.tokens.size(), LowRankFactors::kMostRank));
    for (const std::int32_t token : stored.tokens)
      if (token >= pair.base->shape.outputs)
        fail(ErrorCode::kBadFile, stored.rows.name,
             fmt::format("is of the token {}, and the base has {}", token, pair.base->shape.outputs));
    if (pair.base->bias != nullptr && !pair.base->bias->empty())
      fail(ErrorCode::kUnsupported, stored.rows.name, "is of a head that has biases, which this build does not take");
  }

  static std::int64_t whole_rows_of(const StoredMatrix& stored) {
    const StoredTensor& own = stored.replacement;
    return own.empty() ? 0 : stored.lies_turned ? own.columns() : own.shape.front();
  }

  // Files that have lost tensors: of "blk.3.attn_q" what is there of "blk.2.attn_q".
  void check_layers(const std::vector<ModelMatrix>& all) {
    const auto part_of = [](const std::string& name) {
      return name.starts_with("blk.") ? name.substr(std::min(name.size(), name.find('.', 4))) : std::string();
    };
    std::map<std::string, const StoredMatrix*> parts;
    for (const AdaptedPair& pair : pairs_)
      if (const std::string part = part_of(pair.stored->name); !part.empty() && pair.rank() > 0) parts.emplace(part, pair.stored);
    for (const ModelMatrix& base : all) {
      const auto sibling = parts.find(part_of(base.shape.name));
      const bool is_there = std::ranges::any_of(
          pairs_, [&](const AdaptedPair& pair) { return pair.base->shape.name == base.shape.name && pair.base->expert == base.expert; });
      if (sibling == parts.end() || is_there) continue;
      fail(ErrorCode::kBadFile, base.shape.name + " (as the base's file calls it)",
           fmt::format("is missing; {} is there, and every layer is to be adapted alike", sibling->second->said_by()));
    }
  }

  static std::size_t aligned(std::size_t bytes) { return (bytes + kPartOfAdapter - 1) / kPartOfAdapter * kPartOfAdapter; }

  static std::size_t down_bytes(const AdaptedPair& pair) {
    return aligned(static_cast<std::size_t>(pair.inputs() * kernels::whole_column_groups(pair.rank())) * (pair.half() ? 2 : 4));
  }
  static std::size_t up_bytes(const AdaptedPair& pair) {
    return aligned(static_cast<std::size_t>(pair.rank() * kernels::whole_column_groups(pair.outputs())) * (pair.half() ? 2 : 4));
  }
  std::size_t replacement_bytes(const AdaptedPair& pair) const {
    const StoredTensor& own = pair.stored->replacement;
    return own.empty() ? 0 : aligned(table_.packed_bytes(own.type, pair.base->shape.outputs, pair.base->shape.inputs));
  }

  std::size_t bytes() const {
    std::size_t all = 0;
    for (const AdaptedPair& pair : pairs_) all += down_bytes(pair) + up_bytes(pair) + replacement_bytes(pair);
    return all;
  }

  std::byte* take(std::size_t bytes) {
    std::byte* begin = adapter_->storage.data() + used_;
    used_ += bytes;
    return begin;
  }

  // Several modules may be about one matrix: a fused one of a folder has a name of its own, so that is none of ours.
  void fill(const AdaptedPair& pair) {
    std::int32_t& place = adapter_->place[pair.base->packed->number];
    if (place >= 0) return fail(ErrorCode::kBadFile, pair.stored->said_by(), "another tensor is about the same matrix of the base");
    place = static_cast<std::int32_t>(adapter_->matrices.size());
    AdaptedMatrix& matrix = adapter_->matrices.emplace_back();
    if (!pair.stored->rows.empty()) return fill_rows(pair, matrix);
    if (pair.rank() > 0) {
      fill_factors(pair, matrix.low_rank);
      adapter_->parameters += pair.rank() * (pair.inputs() + pair.outputs());
      adapter_->rank = std::max(adapter_->rank, matrix.low_rank.rank);
      adapter_->widest = std::max(adapter_->widest, matrix.low_rank.down_stride);
    }
    fill_biases(pair, matrix.bias);
    if (!pair.stored->magnitude.empty()) fill_magnitude(pair, matrix);
    if (!pair.stored->replacement.empty()) fill_replacement(pair, matrix.replacement);
  }

  static void put(std::byte* to, std::int64_t at, bool half, float value) {
    if (half) {
      const std::uint16_t bits = kernels::float_to_bf16(value);
      std::memcpy(to + 2 * at, &bits, sizeof bits);
    } else {
      std::memcpy(to + 4 * at, &value, sizeof value);
    }
  }

  void fill_factors(const AdaptedPair& pair, LowRankFactors& factors) {
    const StoredMatrix& stored = *pair.stored;
    const bool half = pair.half();
    const std::int64_t rank = pair.rank();
    std::byte* down = take(down_bytes(pair));
    std::byte* up = take(up_bytes(pair));
    factors = {.rank = static_cast<std::int32_t>(rank),
               .inputs = pair.inputs(),
               .scale = stored.scale,
               .half = half,
               .down_stride = kernels::whole_column_groups(rank),
               .up_columns = kernels::whole_column_groups(pair.outputs()),
               .down = down,
               .up = up};
    if (stored.across) return fill_across(pair, down, up, factors);
    std::vector<float> row(static_cast<std::size_t>(std::max(pair.inputs(), rank)));
    const std::int64_t rows = stored.down.shape.front();
    for (std::int64_t r = 0; r < rows; ++r) {
      stored.down.read_row(r, row.data());
      for (std::int64_t i = 0; i < stored.down.columns(); ++i) {
        const auto from = static_cast<std::size_t>(stored.columns.empty() ? i : stored.columns[static_cast<std::size_t>(i)]);
        put(down, stored.turned ? r * factors.down_stride + i : i * factors.down_stride + r, half, row[from]);
      }
    }
    for (std::int64_t output = 0; output < pair.outputs(); ++output) {
      stored.up.read_row(pair.row(output), row.data());
      const float factor = pair.factor(output);
      for (std::int64_t r = 0; r < rank; ++r) put(up, factors.up_place(r, output), half, row[static_cast<std::size_t>(r)] * factor);
    }
  }

  // What is multiplied by the module's columns meets its rows first: (up down) x the other way round.
  static void fill_across(const AdaptedPair& pair, std::byte* down, std::byte* up, const LowRankFactors& factors) {
    const StoredMatrix& stored = *pair.stored;
    std::vector<float> row(static_cast<std::size_t>(std::max(pair.outputs(), pair.rank())));
    for (std::int64_t input = 0; input < pair.inputs(); ++input) {
      stored.up.read_row(stored.order.empty() ? input : stored.order[static_cast<std::size_t>(input)], row.data());
      for (std::int64_t r = 0; r < pair.rank(); ++r)
        put(down, input * factors.down_stride + r, factors.half, row[static_cast<std::size_t>(r)]);
    }
    for (std::int64_t r = 0; r < pair.rank(); ++r) {
      stored.down.read_row(r, row.data());
      for (std::int64_t output = 0; output < pair.outputs(); ++output)
        put(up, factors.up_place(r, output), factors.half, row[static_cast<std::size_t>(output)]);
    }
  }

  static std::vector<float> values_of(const StoredTensor& tensor) {
    std::vector<float> values(static_cast<std::size_t>(tensor.columns()));
    tensor.read_row(0, values.data());
    return values;
  }

  void fill_biases(const AdaptedPair& pair, std::vector<float>& bias) {
    const StoredMatrix& stored = *pair.stored;
    if (stored.bias.empty() && stored.up_bias.empty()) return;
    const std::vector<float> whole = stored.bias.empty() ? std::vector<float>() : values_of(stored.bias);
    const std::vector<float> added = stored.up_bias.empty() ? std::vector<float>() : values_of(stored.up_bias);
    const std::vector<float>& base = *pair.base->bias;
    bias.assign(static_cast<std::size_t>(pair.outputs()), 0.0F);
    if (!whole.empty() && !base.empty()) adapter_->has_halves = true;
    for (std::int64_t output = 0; output < pair.outputs(); ++output) {
      const auto at = static_cast<std::size_t>(output);
      const auto row = static_cast<std::size_t>(pair.row(output));
      if (!whole.empty()) bias[at] = whole[row] * pair.factor(output) - (base.empty() ? 0.0F : base[at]);
      if (!added.empty()) bias[at] += stored.scale * added[row] * pair.factor(output);
    }
  }

  void fill_rows(const AdaptedPair& pair, AdaptedMatrix& matrix) {
    const StoredMatrix& stored = *pair.stored;
    const std::int64_t count = std::ssize(stored.tokens), inputs = pair.base->shape.inputs;
    std::vector<std::int64_t> order(stored.tokens.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [&](std::int64_t i) { return stored.tokens[static_cast<std::size_t>(i)]; });
    const std::int64_t stride = pair.is_table() ? inputs : kernels::whole_column_groups(count);
    matrix.is_table = pair.is_table();
    matrix.rows.resize(static_cast<std::size_t>(pair.is_table() ? count * inputs : inputs * stride));
    std::vector<float> row(static_cast<std::size_t>(inputs));
    for (std::int64_t to = 0; to < count; ++to) {
      const std::int64_t from = order[static_cast<std::size_t>(to)];
      matrix.tokens.push_back(stored.tokens[static_cast<std::size_t>(from)]);
      stored.rows.read_row(from, row.data());
      for (std::int64_t i = 0; i < inputs; ++i)
        matrix.rows[static_cast<std::size_t>(pair.is_table() ? to * stride + i : i * stride + to)] = row[static_cast<std::size_t>(i)];
    }
    adapter_->parameters += count * inputs;
    if (!pair.is_table()) adapter_->widest = std::max(adapter_->widest, stride);
  }

  // What is divided by norms of the base's weights is left as lengths where these are not here.
  void fill_magnitude(const AdaptedPair& pair, AdaptedMatrix& matrix) {
    const StoredMatrix& stored = *pair.stored;
    if (!stored.up_bias.empty())
      return fail(ErrorCode::kUnsupported, stored.up_bias.name, "this build takes no bias of a product beside magnitudes");
    const std::vector<float> lengths = values_of(stored.magnitude);
    matrix.magnitude.resize(static_cast<std::size_t>(pair.outputs()));
    for (std::int64_t output = 0; output < pair.outputs(); ++output)
      matrix.magnitude[static_cast<std::size_t>(output)] = lengths[static_cast<std::size_t>(pair.row(output))] * pair.factor(output);
    if (pair.base->packed->data != nullptr) return divide_by_norms(*pair.base->packed, table_, 0, pair.outputs(), matrix);
    if (!measure_)
      return fail(ErrorCode::kUnsupported, stored.magnitude.name,
                  "magnitudes (DoRA) follow from the weights, which are not in this process");
    lacks_norms_ = true;
  }

  void fill_replacement(const AdaptedPair& pair, kernels::PackedMatrix& replacement) {
    const LinearShape& shape = pair.base->shape;
    std::byte* packed = take(replacement_bytes(pair));
    const std::vector<std::byte> rows = whole_rows(*pair.stored, shape);
    replacement = {.type = pair.stored->replacement.type,
                   .outputs = shape.outputs,
                   .inputs = shape.inputs,
                   .data = packed,
                   .number = pair.base->packed->number};
    table_.pack(replacement.type, rows.data(), shape.outputs, shape.inputs, packed, 0, replacement.panels());
    adapter_->parameters += shape.outputs * shape.inputs;
  }

  const StoredAdapter& stored_;
  const Weights& weights_;
  const kernels::KernelTable& table_;
  const Measure& measure_;
  std::shared_ptr<Adapter> adapter_;
  bool lacks_norms_ = false;
  std::vector<AdaptedPair> pairs_;
  std::size_t used_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Result<std::shared_ptr<const Adapter>> build_adapter(const StoredAdapter& stored, const ModelShape& model, const Weights& weights,
                                                     const kernels::KernelTable& table, const Measure& measure) {
  return AdapterBuilder(stored, weights, table, measure).build(model);
}

}  // namespace braid::model
