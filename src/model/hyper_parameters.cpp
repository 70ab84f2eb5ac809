#include "model/hyper_parameters.h"

#include <fmt/format.h>
#include <optional>
#include <string>

namespace braid::model {
namespace {

// Far above any model known, low enough that products of three stay within 63 bits.
constexpr std::uint64_t kMaxDimension = 1U << 24;
constexpr std::uint64_t kMaxLayers = 4096;
constexpr std::uint64_t kMaxHeads = 16384;  // kernels count those of a KV head in 16 bits
constexpr std::uint64_t kMaxContext = 1U << 24;

// Reads the keys of one architecture. The first failure is kept and every later look-up answers with its fallback.
class KeyReader {
 public:
  KeyReader(const files::GgufFile& file, std::string_view architecture) : file_(file), architecture_(architecture) {}

  std::optional<Error> error;

  bool has(std::string_view key) const { return file_.find(full(key)) != nullptr; }

  void fail(ErrorCode code, std::string message) {
    if (!error) error = Error{code, fmt::format("{}: {}", file_.name(), message), {}};
  }

  // An integer in [1, max].
  std::int32_t size(std::string_view key, std::optional<std::uint64_t> fallback, std::uint64_t max = kMaxDimension) {
    if (!has(key) && !fallback) fail(ErrorCode::kBadFile, fmt::format("the key {} is missing", full(key)));
    if (error) return 1;
    const std::uint64_t value = uniform(key, fallback.value_or(0));
    if (value < 1 || value > max) fail(ErrorCode::kBadFile, fmt::format("{} is {}, expected a number from 1 to {}", full(key), value, max));
    return error ? 1 : static_cast<std::int32_t>(value);
  }

  // An integer in [0, max], 0 when the key is missing.
  std::int32_t count(std::string_view key, std::uint64_t max) {
    if (error) return 0;
    auto found = file_.unsigned_or(full(key), 0);
    if (!found) return take(found.error()), 0;
    if (*found > max) fail(ErrorCode::kBadFile, fmt::format("{} is {}, expected a number up to {}", full(key), *found, max));
    return error ? 0 : static_cast<std::int32_t>(*found);
  }

  // A finite number in [low, high].
  double number(std::string_view key, std::optional<double> fallback, double low, double high) {
    if (!has(key) && !fallback) fail(ErrorCode::kBadFile, fmt::format("the key {} is missing", full(key)));
    if (error) return low;
    auto found = file_.number_or(full(key), fallback.value_or(0.0));
    if (!found) return take(found.error()), low;
    if (!(*found >= low && *found <= high))
      fail(ErrorCode::kBadFile, fmt::format("{} is {}, expected a number from {} to {}", full(key), *found, low, high));
    return *found;
  }

  // The same, where `unset` stands for a missing key: llama.cpp saves all keys, those of features that a model lacks included.
  double number_unless(double unset, std::string_view key, double fallback, double low, double high) {
    const auto found = file_.number_or(full(key), fallback);
    return found && *found == unset ? fallback : number(key, fallback, low, high);
  }

  bool flag(std::string_view key, bool fallback) {
    auto found = file_.bool_or(full(key), fallback);
    if (!found) return take(found.error()), fallback;
    return *found;
  }

  std::string text(std::string_view key, std::string fallback) {
    auto found = file_.string_or(full(key), std::move(fallback));
    if (!found) return take(found.error()), std::string();
    return *found;
  }

  std::string full(std::string_view key) const { return fmt::format("{}.{}", architecture_, key); }

 private:
  void take(const Error& found) { fail(found.code, found.message); }

  // A number, or an array with one value for every layer that are all equal.
  std::uint64_t uniform(std::string_view key, std::uint64_t fallback) {
    const files::GgufValue* value = file_.find(full(key));
    if (const auto* array = value != nullptr ? std::get_if<files::GgufArray>(value) : nullptr)
      return std::visit([&](const auto& items) { return uniform_item(key, items); }, array->items);
    auto found = file_.unsigned_or(full(key), fallback);
    if (!found) return take(found.error()), 1;
    return *found;
  }

  template <class Items>
  std::uint64_t uniform_item(std::string_view key, const Items& items) {
    using Item = typename Items::value_type;
    if constexpr (std::is_integral_v<Item> && !std::is_same_v<Item, bool>) {
      for (const Item item : items)
        if (item != items.front())
          fail(ErrorCode::kUnsupported,
               fmt::format("{} differs between layers ({} and {}), which this build cannot compute", full(key), items.front(), item));
      if (!items.empty() && items.front() > 0) return static_cast<std::uint64_t>(items.front());
    }
    fail(ErrorCode::kBadFile, fmt::format("{} is an array without positive integers, expected a number", full(key)));
    return 1;
  }

  const files::GgufFile& file_;
  std::string_view architecture_;
};

std::optional<RopeScaling> parse_scaling(std::string_view name) {
  if (name == "none") return RopeScaling::kNone;
  if (name == "linear") return RopeScaling::kLinear;
  if (name == "yarn") return RopeScaling::kYarn;
  if (name == "longrope") return RopeScaling::kLongrope;
  return std::nullopt;
}

RopeParameters read_rope(KeyReader& keys, std::int32_t head_dim, std::int32_t context_length) {
  RopeParameters rope;
  rope.base = keys.number("rope.freq_base", 10000.0, 2.0, 1e12);
  rope.rotated = keys.size("rope.dimension_count", static_cast<std::uint64_t>(head_dim));
  if (rope.rotated > head_dim || rope.rotated % 2 != 0)
    keys.fail(ErrorCode::kBadFile, fmt::format("{} is {}, expected an even number up to the head size {}",
                                               keys.full("rope.dimension_count"), rope.rotated, head_dim));
  // As llama.cpp reads them: this one counts without scaling, too, a factor without a type is linear, and files of 2023 call it
  // rope.scale_linear.
  rope.attention_factor = keys.number("rope.scaling.attn_factor", 1.0, 1e-3, 1e3);
  const bool has_factor = keys.has("rope.scaling.factor");
  const std::string name = keys.text("rope.scaling.type", has_factor || keys.has("rope.scale_linear") ? "linear" : "none");
  const auto scaling = parse_scaling(name);
  if (!scaling)
    keys.fail(ErrorCode::kUnsupported,
              fmt::format("{} is \"{}\", expected none, linear, yarn or longrope", keys.full("rope.scaling.type"), name));
  rope.scaling = scaling.value_or(RopeScaling::kNone);
  if (rope.scaling == RopeScaling::kNone) return rope;

  rope.factor = keys.number_unless(0.0, has_factor ? "rope.scaling.factor" : "rope.scale_linear", 1.0, 1e-3, 1e6);
  rope.original_context = keys.size("rope.scaling.original_context_length", static_cast<std::uint64_t>(context_length), kMaxContext);
  // yarn_attn_factor, which converters write for factors of two meanings, is not read: llama.cpp computes yarn's from `factor` alone.
  rope.yarn_extrapolation = keys.number_unless(-1.0, "rope.scaling.yarn_ext_factor", 1.0, 0.0, 1.0);
  rope.yarn_beta_fast = keys.number("rope.scaling.yarn_beta_fast", 32.0, 1e-3, 1e6);
  rope.yarn_beta_slow = keys.number("rope.scaling.yarn_beta_slow", 1.0, 1e-3, 1e6);
  return rope;
}

// The vocabulary is the embedding's number of rows; what else names its size must agree.
std::int32_t read_vocab(const files::GgufFile& file, KeyReader& keys) {
  const files::GgufTensor* embedding = file.tensor("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2) {
    keys.fail(ErrorCode::kBadFile,
              embedding == nullptr ? "the tensor token_embd.weight is missing" : "the tensor token_embd.weight is not a matrix");
    return 1;
  }
  const std::int64_t rows = embedding->shape[1];
  if (rows < 1 || rows > static_cast<std::int64_t>(kMaxDimension))
    keys.fail(ErrorCode::kBadFile, fmt::format("token_embd.weight has {} rows, expected 1 to {}", rows, kMaxDimension));
  const files::GgufValue* tokens = file.find("tokenizer.ggml.tokens");
  if (const auto* array = tokens != nullptr ? std::get_if<files::GgufArray>(tokens) : nullptr) {
    const auto count = std::visit([](const auto& items) { return static_cast<std::int64_t>(items.size()); }, array->items);
    if (count > rows)
      keys.fail(ErrorCode::kBadFile,
                fmt::format("tokenizer.ggml.tokens has {} entries, expected at most the {} rows of token_embd.weight", count, rows));
  }
  return keys.error ? 1 : static_cast<std::int32_t>(rows);
}

void check_heads(const HyperParameters& model, KeyReader& keys) {
  if (model.heads % model.kv_heads != 0)
    keys.fail(ErrorCode::kBadFile, fmt::format("{} is {}, expected a divisor of {} = {}", keys.full("attention.head_count_kv"),
                                               model.kv_heads, keys.full("attention.head_count"), model.heads));
  if (!keys.has("attention.key_length") && model.embedding % model.heads != 0)
    keys.fail(ErrorCode::kBadFile, fmt::format("{} is {}, expected a divisor of {} = {}", keys.full("attention.head_count"), model.heads,
                                               keys.full("embedding_length"), model.embedding));
  const auto values = keys.size("attention.value_length", static_cast<std::uint64_t>(model.head_dim), 4096);
  if (values != model.head_dim)
    keys.fail(ErrorCode::kUnsupported, fmt::format("{} is {}, expected {} as {}", keys.full("attention.value_length"), values,
                                                   model.head_dim, keys.full("attention.key_length")));
}

void read_attention(KeyReader& keys, HyperParameters& model) {
  if (!keys.flag("attention.causal", true))  // of embedding models, whose tokens see those after them, too
    keys.fail(ErrorCode::kUnsupported, fmt::format("{} is false, which this build cannot compute", keys.full("attention.causal")));
  model.window = keys.count("attention.sliding_window", kMaxContext);
  model.window_period = keys.count("attention.sliding_window_pattern", kMaxLayers);
  // llama.cpp saves caps of 50 for scores and 30 for final logits, which no architecture here has, into every model, and applies neither.
  const bool saved_by_llama_cpp = keys.has("final_logit_softcapping");
  if (!saved_by_llama_cpp) model.score_cap = static_cast<float>(keys.number("attn_logit_softcapping", 0.0, 0.0, 1e6));
}

}  // namespace

step::Visibility HyperParameters::layer_visibility(std::int32_t layer) const {
  const bool windowed = window > 0 && (window_period == 0 || (layer + 1) % window_period != 0);
  const std::int32_t limit = kv_limit > 0 ? kv_limit - kSinkTokens : 0;
  if (windowed && (limit == 0 || window <= limit)) return {window, 0};
  return {limit, limit > 0 ? kSinkTokens : 0};
}

step::Visibility HyperParameters::visibility() const {
  step::Visibility widest = layer_visibility(0);
  for (std::int32_t layer = 1; layer < layers; ++layer) {
    const step::Visibility own = layer_visibility(layer);
    widest.window = own.window == 0 || widest.window == 0 ? 0 : std::max(widest.window, own.window);
    widest.sink = std::max(widest.sink, own.sink);
  }
  return widest;
}

Result<HyperParameters> read_hyper_parameters(const files::GgufFile& file) {
  auto architecture = file.string_or("general.architecture", "");
  if (!architecture) return architecture.error();
  HyperParameters model;
  model.family = find_family(*architecture);
  if (model.family == nullptr)
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{}: general.architecture is \"{}\", expected one of {}", file.name(), *architecture, known_architectures()),
                 {}};

  KeyReader keys(file, model.family->architecture);
  model.context_length = keys.size("context_length", std::nullopt, kMaxContext);
  model.layers = keys.size("block_count", std::nullopt, kMaxLayers);
  model.embedding = keys.size("embedding_length", std::nullopt);
  model.feed_forward = keys.size("feed_forward_length", std::nullopt);
  model.heads = keys.size("attention.head_count", std::nullopt, kMaxHeads);
  model.kv_heads = keys.size("attention.head_count_kv", static_cast<std::uint64_t>(model.heads), kMaxHeads);
  model.head_dim = keys.size("attention.key_length", static_cast<std::uint64_t>(std::max(1, model.embedding / model.heads)), 4096);
  model.norm_epsilon = static_cast<float>(keys.number("attention.layer_norm_rms_epsilon", std::nullopt, 1e-12, 1.0));
  if (keys.count("expert_count", kMaxDimension) > 0)
    keys.fail(ErrorCode::kUnsupported, "the model is a mixture of experts, which this build cannot compute");
  check_heads(model, keys);
  read_attention(keys, model);
  model.rope = read_rope(keys, model.head_dim, model.context_length);
  model.vocab = read_vocab(file, keys);
  if (keys.error) return *keys.error;
  return model;
}

}  // namespace braid::model
