// Towers from GGUF files as llama.cpp's converters write them beside a language model ("mmproj"), by their names.
#include "model/encoders/encoder_families.h"
#include "model/families/gguf_keys.h"
#include "model/images/tower_families.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <string>
#include <utility>

namespace braid::model {
namespace {

constexpr std::string_view kArchitecture = "clip";
constexpr std::string_view kVision = "clip.vision";
constexpr std::int64_t kMostBlocks = 1000;

// A file of a kind, on its way to a shape.
struct Mmproj {
  const files::GgufFile& file;
  GgufKeys keys;
  TowerShape tower = {};

  bool has(const std::string& name) const { return file.tensor(name) != nullptr; }
  // Of a matrix; 0: there is none.
  std::int64_t inputs(const std::string& name) const {
    const files::GgufTensor* const tensor = file.tensor(name);
    return tensor != nullptr && !tensor->shape.empty() ? tensor->shape.front() : 0;
  }
  std::int64_t outputs(const std::string& name) const {
    const files::GgufTensor* const tensor = file.tensor(name);
    return tensor != nullptr && tensor->shape.size() >= 2 ? tensor->shape[1] : 0;
  }
  EncoderLinear linear(const std::string& name) const { return linear_of(name, outputs(name + ".weight"), inputs(name + ".weight")); }
  EncoderNorm norm(const std::string& name, bool rms = false) const { return rms ? rms_norm_of(name, 0.0F) : norm_of(name); }
  std::int64_t joined() const { return tower.encoder.width * tower.connector.side * tower.connector.side; }
  void add_products(const std::string& first, const std::string& second) {
    tower.connector.dense.push_back({linear(first), EncoderActivation::kGelu});
    tower.connector.dense.push_back({linear(second), EncoderActivation::kNone});
  }
};

void read_sizes(Mmproj& in) {
  EncoderShape& encoder = in.tower.encoder;
  encoder.width = in.keys.size("embedding_length", std::nullopt);
  encoder.embedded = encoder.width;
  encoder.heads = in.keys.size("attention.head_count", std::nullopt, 4096);
  encoder.kv_heads = encoder.heads;
  encoder.head_dim = static_cast<std::int32_t>(encoder.width / std::max(1, encoder.heads));
  encoder.epsilon = in.keys.number("attention.layer_norm_epsilon", 1e-5, 0.0, 1.0);
  in.tower.patch = in.keys.size("patch_size", std::nullopt, 4096);
  if (!in.keys.error && encoder.width % encoder.heads != 0)
    in.keys.fail(ErrorCode::kBadFile, fmt::format("a width of {} is no multiple of {} heads", encoder.width, encoder.heads));
  const auto flag = [&](const char* name) {
    const Result<bool> set = in.file.bool_or(name, false);
    return set && *set;
  };
  encoder.activation = flag("clip.use_gelu")   ? EncoderActivation::kGeluTanh
                       : flag("clip.use_silu") ? EncoderActivation::kSilu
                                               : EncoderActivation::kGeluQuick;
}

void read_patches(Mmproj& in) {
  TowerShape& tower = in.tower;
  tower.patches = linear_of("v.patch_embd", tower.encoder.width, std::int64_t{3} * tower.patch * tower.patch);
  if (in.has("v.patch_embd.weight.1"))
    tower.forms.push_back({.name = "v.patch_embd.weight", .kind = TensorForm::Kind::kSum, .by = "v.patch_embd.weight.1"});
  if (in.has("v.class_embd")) tower.first = "v.class_embd";
  if (in.has("v.pre_ln.weight")) tower.encoder.embedding_norm = in.norm("v.pre_ln");
  if (!in.has("v.position_embd.weight")) return;
  tower.encoder.positions = "v.position_embd.weight";
  tower.encoder.first_position = tower.first.empty() ? 0 : 1;
  tower.encoder.context = static_cast<std::int32_t>(in.outputs("v.position_embd.weight") - tower.encoder.first_position);
  tower.places = PatchPlaces::kEach;
}

void scale_rows_by(TowerShape& tower, const std::string& product, const std::string& by) {
  for (const char* part : {".weight", ".bias"})
    tower.forms.push_back({.name = product + part, .kind = TensorForm::Kind::kScaledRows, .by = by});
}

// As many as the file says and has: of LLaVA's the last one, which nobody reads, is left out.
void read_blocks(Mmproj& in, bool rms, bool norms_heads) {
  TowerShape& tower = in.tower;
  const std::int64_t width = tower.encoder.width;
  const std::int64_t inner = in.keys.size("feed_forward_length", std::nullopt);
  const std::int64_t count = in.keys.size("block_count", std::nullopt, kMostBlocks);
  for (std::int64_t i = 0; i < count && !in.keys.error; ++i) {
    const std::string own = fmt::format("v.blk.{}.", i);
    if (!in.has(own + "ln1.weight")) break;
    EncoderLayer& layer = tower.encoder.layers.emplace_back();
    layer.before_attention = in.norm(own + "ln1", rms);
    if (in.has(own + "attn_qkv.weight")) {
      layer.query = linear_of(own + "attn_qkv", width, width);
      layer.key = linear_of(own + "attn_qkv", width, width, width);
      layer.value = linear_of(own + "attn_qkv", width, width, 2 * width);
    } else {
      layer.query = linear_of(own + "attn_q", width, width);
      layer.key = linear_of(own + "attn_k", width, width);
      layer.value = linear_of(own + "attn_v", width, width);
    }
    layer.out = linear_of(own + "attn_out", width, width);
    layer.before_feed_forward = in.norm(own + "ln2", rms);
    if (in.has(own + "ffn_gate.weight")) layer.gate = linear_of(own + "ffn_gate", inner, width);
    // Older files have the two the other way round.
    const bool swapped = in.inputs(own + "ffn_up.weight") == inner && in.inputs(own + "ffn_down.weight") == width && inner != width;
    layer.up = linear_of(own + (swapped ? "ffn_down" : "ffn_up"), inner, width);
    layer.down = linear_of(own + (swapped ? "ffn_up" : "ffn_down"), width, inner);
    if (in.has(own + "attn_q_norm.weight") && !norms_heads)
      in.keys.fail(ErrorCode::kUnsupported, "the tower norms queries and keys, which this build cannot compute");
    if (in.has(own + "ls1.weight")) scale_rows_by(tower, own + "attn_out", own + "ls1.weight");
    if (in.has(own + "ls2.weight")) scale_rows_by(tower, own + (swapped ? "ffn_up" : "ffn_down"), own + "ls2.weight");
  }
  if (in.has("v.post_ln.weight")) tower.encoder.final_norm = in.norm("v.post_ln", rms);
}

// Of tables that are stored with more than two dimensions.
void take_all_places(Mmproj& in) {
  const files::GgufTensor* const table = in.file.tensor("v.position_embd.weight");
  std::int64_t places = 1;
  for (std::size_t i = 1; table != nullptr && i < table->shape.size(); ++i)
    places = std::min<std::int64_t>(places * table->shape[i], 1 << 24);
  in.tower.encoder.context = static_cast<std::int32_t>(table != nullptr ? places : 0);
  in.tower.forms.push_back({.name = "v.position_embd.weight", .kind = TensorForm::Kind::kColumns, .count = in.tower.encoder.width});
}

std::int32_t side_of(Mmproj& in, std::string_view key, std::uint64_t fallback) { return in.keys.size(key, fallback, 64); }

// OneVision's files are LLaVA's that say how many tiles' vectors an image may take.
void finish_llava(Mmproj& in) {
  TowerShape& tower = in.tower;
  in.add_products("mm.0", "mm.2");
  if (tower.first.empty()) tower.encoder.activation = EncoderActivation::kGeluTanh;  // SigLIP's, which the converter does not name
  if (!in.has("v.image_newline") && !in.has("model.image_newline")) return;
  tower.order = TileOrder::kMosaic;
  tower.newline = in.has("v.image_newline") ? "v.image_newline" : "model.image_newline";
  constexpr std::string_view kForm = "anyres_max_";
  const Result<std::string> ratio = in.file.string_or("clip.vision.image_aspect_ratio", "");
  if (!ratio || !ratio->starts_with(kForm)) return;
  tower.order = TileOrder::kReducedMosaic;
  const char* const end = ratio->data() + ratio->size();
  if (std::from_chars(ratio->data() + kForm.size(), end, tower.most_tiles).ptr != end || tower.most_tiles < 1)
    in.keys.fail(ErrorCode::kUnsupported, fmt::format("image_aspect_ratio is \"{}\", expected anyres_max_9 or the like", *ratio));
}

void finish_gemma3(Mmproj& in) {
  TowerShape& tower = in.tower;
  const auto patches = std::llround(std::sqrt(static_cast<double>(tower.encoder.context)));
  constexpr std::int64_t kVectors = 16;  // of a side, unless the file says how many patches make one
  tower.connector.side = side_of(in, "projector.scale_factor", static_cast<std::uint64_t>(std::max<std::int64_t>(1, patches / kVectors)));
  tower.connector.averages = true;
  tower.connector.epsilon = tower.encoder.epsilon;
  tower.connector.after = rms_norm_of("mm.soft_emb_norm", 0.0F);  // the converter has added 1
  const std::string projection = "mm.input_projection.weight";
  tower.forms.push_back({.name = projection, .kind = TensorForm::Kind::kTransposed});
  tower.connector.dense.push_back(
      {{.weight = projection, .bias = {}, .outputs = in.inputs(projection), .inputs = tower.encoder.width}, {}});
  tower.both_ways = true;
}

// Of each product what its file has, whose limits lie beside it.
void hold_within_limits(const Mmproj& in, EncoderLinear& linear) {
  constexpr std::string_view kWeight = "weight";
  const std::string own = linear.weight.substr(0, linear.weight.size() - kWeight.size());
  if (linear && in.has(own + "input_min")) linear.limits = own;
}

void finish_gemma4_layer(Mmproj& in, const std::string& own, EncoderLayer& layer) {
  EncoderShape& encoder = in.tower.encoder;
  const std::int64_t kv_width = std::int64_t{encoder.kv_heads} * encoder.head_dim;
  layer.key.outputs = layer.value.outputs = kv_width;
  layer.query_norm = rms_norm_of(own + "attn_q_norm", 0.0F);
  layer.key_norm = rms_norm_of(own + "attn_k_norm", 0.0F);
  layer.value_norm = {.weight = {}, .bias = {}, .rms = true, .plain = true};
  layer.after_attention = rms_norm_of(own + "attn_post_norm", 0.0F);
  layer.after_feed_forward = rms_norm_of(own + "ffn_post_norm", 0.0F);
  for (EncoderLinear* linear : {&layer.query, &layer.key, &layer.value, &layer.out, &layer.gate, &layer.up, &layer.down})
    hold_within_limits(in, *linear);
  const auto reorder = [&](const std::string& name, std::int64_t rows) {
    in.tower.forms.push_back(
        {.name = name, .kind = TensorForm::Kind::kHeadOrder, .count = rows, .order = gemma_head_order(encoder.head_dim)});
  };
  reorder(layer.query.weight, encoder.width);
  reorder(layer.key.weight, kv_width);
  reorder(layer.query_norm.weight, encoder.head_dim);
  reorder(layer.key_norm.weight, encoder.head_dim);
  if (in.has(own + "out_scale.weight"))
    in.keys.fail(ErrorCode::kUnsupported, "the tower scales what its layers give, which this build cannot compute");
}

// What the file leaves out is the same in all of this family.
void finish_gemma4(Mmproj& in) {
  TowerShape& tower = in.tower;
  EncoderShape& encoder = tower.encoder;
  encoder.activation = EncoderActivation::kGeluTanh;
  encoder.score_scale = 1.0F;
  encoder.kv_heads = static_cast<std::int32_t>(in.outputs("v.blk.0.attn_k.weight") / std::max(1, encoder.head_dim));
  if (encoder.kv_heads < 1 || encoder.heads % encoder.kv_heads != 0)
    return in.keys.fail(ErrorCode::kBadFile, fmt::format("{} heads of queries belong to {} of keys", encoder.heads, encoder.kv_heads));
  for (std::size_t i = 0; i < encoder.layers.size(); ++i) finish_gemma4_layer(in, fmt::format("v.blk.{}.", i), encoder.layers[i]);
  tower.pixel_scale = 2.0F;
  tower.pixel_shift = -1.0F;
  tower.places = PatchPlaces::kCrossed;
  take_all_places(in);
  tower.rotation = PatchRotation{.base = 100.0};
  ConnectorShape& connector = tower.connector;
  connector.side = side_of(in, "projector.scale_factor", 3);
  connector.averages = true;
  connector.scale = std::sqrt(static_cast<float>(encoder.width));
  if (in.has("v.std_bias")) connector.less = "v.std_bias";
  if (in.has("v.std_scale")) connector.times = "v.std_scale";
  connector.epsilon = encoder.epsilon;
  connector.after = {.weight = {}, .bias = {}, .rms = true, .plain = true};
  connector.dense.push_back({in.linear("mm.input_projection"), EncoderActivation::kNone});
  hold_within_limits(in, connector.dense.back().linear);
  // Of the language models that it belongs to, E2B and E4B see an image's tokens as they see text; their width tells which they are.
  const std::int64_t text_width = tower.vector_width();
  tower.both_ways = text_width != 1536 && text_width != 2560;
}

void finish_idefics3(Mmproj& in) {
  in.tower.connector.side = side_of(in, "projector.scale_factor", 2);
  in.tower.connector.dense.push_back({in.linear("mm.model.fc"), EncoderActivation::kNone});
}

// Of the larger tower (InternViT 6B) no key tells, but its norms have no biases.
void finish_internvl(Mmproj& in) {
  in.tower.encoder.activation = EncoderActivation::kGelu;
  const bool rms = !in.has("v.blk.0.ln1.bias");
  in.tower.encoder.norms_all_heads = in.has("v.blk.0.attn_q_norm.weight");
  for (std::size_t i = 0; i < in.tower.encoder.layers.size(); ++i) {
    const std::string own = fmt::format("v.blk.{}.", i);
    EncoderLayer& layer = in.tower.encoder.layers[i];
    layer.before_attention = in.norm(own + "ln1", rms);
    layer.before_feed_forward = in.norm(own + "ln2", rms);
    if (!in.tower.encoder.norms_all_heads) continue;
    layer.query_norm = in.norm(own + "attn_q_norm", rms);
    layer.key_norm = in.norm(own + "attn_k_norm", rms);
  }
  in.tower.connector.side = side_of(in, "projector.scale_factor", 2);
  in.tower.connector.after = in.norm("mm.model.mlp.0");
  in.add_products("mm.model.mlp.1", "mm.model.mlp.3");
}

// The converter has put the pairs of a head that turn by columns before those that turn by rows; here pairs lie half a head apart, those that
// turn by rows first.
std::vector<std::int32_t> parted_head_order(std::int32_t head_dim) {
  std::vector<std::int32_t> order;
  for (const std::int32_t of_pair : {0, 1})
    for (const std::int32_t by_row : {1, 0})
      for (std::int32_t i = 0; i < head_dim / 4; ++i) order.push_back(by_row * (head_dim / 2) + 2 * i + of_pair);
  return order;
}

// The file's epsilon is that of the connector.
void finish_kimi(Mmproj& in) {
  TowerShape& tower = in.tower;
  tower.connector.side = side_of(in, "projector.scale_factor", 2);
  tower.connector.epsilon = std::exchange(tower.encoder.epsilon, 1e-5);
  tower.encoder.activation = EncoderActivation::kGeluTanh;
  tower.places = PatchPlaces::kCubic;
  take_all_places(in);
  tower.rotation = PatchRotation{};
  for (std::size_t i = 0; i < tower.encoder.layers.size(); ++i)
    for (const char* part : {"weight", "bias"})
      tower.forms.push_back({.name = fmt::format("v.blk.{}.attn_qkv.{}", i, part),
                             .kind = TensorForm::Kind::kHeadOrder,
                             .count = 2 * tower.encoder.width,
                             .order = parted_head_order(tower.encoder.head_dim)});
  tower.connector.before = in.norm("mm.input_norm");
  in.add_products("mm.1", "mm.2");
}

// Attention within squares, and what makes one of each, behind the layer that wa_layer_indexes names.
void add_merged_squares(Mmproj& in) {
  TowerShape& tower = in.tower;
  const std::int64_t width = tower.encoder.width;
  const std::size_t layers = tower.encoder.layers.size();
  const std::vector<std::int32_t> named = in.keys.sizes("wa_layer_indexes", 1, 6, std::max<std::size_t>(1, layers) - 1);
  if (in.keys.error) return;
  if (std::cmp_greater_equal(named.front(), layers))
    return in.keys.fail(ErrorCode::kBadFile, "wa_layer_indexes names no layer of the tower");
  EncoderLayer layer;
  layer.before_attention = in.norm("v.vit_merger.ln1");
  layer.query = linear_of("v.vit_merger.attn_q", width, width);
  layer.key = linear_of("v.vit_merger.attn_k", width, width);
  layer.value = linear_of("v.vit_merger.attn_v", width, width);
  layer.out = linear_of("v.vit_merger.attn_out", width, width);
  layer.within_parts = true;
  const std::int32_t behind = named.front() + 1;
  tower.encoder.layers.insert(tower.encoder.layers.begin() + behind, std::move(layer));
  tower.window = 1;
  TowerReduction& reduction = tower.reduction.emplace();
  reduction.layers = behind + 1;
  reduction.squares.side = tower.connector.side;
  reduction.squares.epsilon = tower.encoder.epsilon;
  reduction.squares.after = in.norm("v.vit_merger.ds_ln");
  reduction.squares.dense = {{in.linear("v.vit_merger.ds_ffn_up"), EncoderActivation::kGeluTanh},
                             {in.linear("v.vit_merger.ds_ffn_down"), EncoderActivation::kNone}};
  reduction.squares.adds_mean = true;
}

// MiniCPM-V 4.6: squares of four patches become a vector, or squares of four such.
void finish_minicpm(Mmproj& in) {
  TowerShape& tower = in.tower;
  const std::int32_t side = side_of(in, "projector.scale_factor", 4);
  if (side != 2 && side != 4) in.keys.fail(ErrorCode::kUnsupported, fmt::format("projector.scale_factor is {}, expected 2 or 4", side));
  tower.places = PatchPlaces::kNearest;
  tower.connector.side = 2;
  if (side == 4) add_merged_squares(in);
  tower.connector.epsilon = 1e-6;
  tower.connector.after = in.norm("mm.input_norm");
  in.add_products("mm.up", "mm.down");
}

// MiniCPM-V before 4.6: as many vectors of each tile as there are queries.
void finish_resampler(Mmproj& in) {
  TowerShape& tower = in.tower;
  constexpr std::uint64_t kFirstKnown = 3;  // 2.6
  const Result<std::uint64_t> version = in.file.unsigned_or("clip.minicpmv_version", 2);
  if (!version || *version < kFirstKnown)
    return in.keys.fail(ErrorCode::kUnsupported, "clip.minicpmv_version is below 3: MiniCPM-V's of before 2.6 are not known");
  const std::int64_t width = in.outputs("resampler.attn.out.weight");
  if (width < 1 || width % 128 != 0)
    return in.keys.fail(ErrorCode::kUnsupported, fmt::format("the resampler's width is {}, expected a multiple of 128", width));
  tower.places = PatchPlaces::kNearest;
  ResamplerShape& shape = tower.resampler.emplace();
  shape.width = width;
  shape.heads = resampler_heads(width);
  shape.count = static_cast<std::int32_t>(std::clamp<std::int64_t>(in.outputs("resampler.query"), 1, 4096));
  shape.inputs = tower.encoder.width;
  shape.queries = "resampler.query";
  if (in.has("resampler.kv.weight")) shape.joined = in.linear("resampler.kv");
  shape.query = in.linear("resampler.attn.q");
  shape.key = in.linear("resampler.attn.k");
  shape.value = in.linear("resampler.attn.v");
  shape.out = in.linear("resampler.attn.out");
  shape.query_norm = in.norm("resampler.ln_q");
  shape.patch_norm = in.norm("resampler.ln_kv");
  shape.after = in.norm("resampler.ln_post");
  shape.projection = in.linear("resampler.proj");
}

void finish_lfm2(Mmproj& in) {
  in.tower.places = PatchPlaces::kSmoothed;
  in.tower.connector.side = side_of(in, "projector.scale_factor", 2);
  if (in.has("mm.input_norm.weight")) in.tower.connector.after = in.norm("mm.input_norm");
  in.add_products("mm.1", "mm.2");
}

void finish_pixtral(Mmproj& in) {
  TowerShape& tower = in.tower;
  tower.encoder.embedding_norm = rms_norm_of("v.pre_ln", 0.0F);
  tower.rotation = PatchRotation{.base = in.keys.number("rope.freq_base", 10'000.0, 2.0, 1e12), .alternating = true};
  if (in.has("mm.patch_merger.weight")) {
    tower.connector.side = side_of(in, "spatial_merge_size", 2);
    const std::int32_t patches = tower.connector.side * tower.connector.side;
    tower.forms.push_back({.name = "mm.patch_merger.weight", .kind = TensorForm::Kind::kSquaresLast, .by = {}, .count = patches});
    tower.connector.before = rms_norm_of("mm.input_norm", 0.0F);
    tower.connector.dense.push_back({linear_of("mm.patch_merger", tower.encoder.width, in.joined()), EncoderActivation::kNone});
  }
  in.add_products("mm.1", "mm.2");
}

// The norm that belongs to the connector has the name of the tower's last one.
void finish_qwen(Mmproj& in) {
  TowerShape& tower = in.tower;
  tower.rotation = PatchRotation{};
  tower.connector.side = side_of(in, "spatial_merge_size", 2);
  tower.connector.epsilon = tower.encoder.epsilon;
  tower.connector.before = std::exchange(tower.encoder.final_norm, {});
  in.add_products("mm.0", "mm.2");
  tower.grid_positions = true;
}

void finish_qwen25(Mmproj& in) {
  TowerShape& tower = in.tower;
  finish_qwen(in);
  constexpr std::uint64_t kWindowPixels = 112;
  tower.window = in.keys.size("window_size", kWindowPixels, 1 << 15) / tower.patch / tower.connector.side;
  if (tower.window < 1) in.keys.fail(ErrorCode::kUnsupported, "window_size is less than a square of patches");
  const std::int32_t period = in.keys.size("n_wa_pattern", 8, kMaxLayers);  // each so many-th layer sees all
  for (std::size_t i = 0; i < tower.encoder.layers.size(); ++i)
    tower.encoder.layers[i].within_parts = (i + 1) % static_cast<std::size_t>(period) != 0;
}

void finish_qwen3(Mmproj& in) {
  TowerShape& tower = in.tower;
  finish_qwen(in);
  tower.places = PatchPlaces::kBlended;
  for (std::size_t i = 0; i < tower.encoder.layers.size(); ++i) {
    const std::string own = fmt::format("v.deepstack.{}.", i);
    if (!in.has(own + "fc1.weight")) continue;
    DeepConnector& deep = tower.deep.emplace_back();
    deep.layers = static_cast<std::int32_t>(i + 1);
    deep.connector.side = tower.connector.side;
    deep.connector.epsilon = tower.encoder.epsilon;
    deep.connector.after = in.norm(own + "norm");
    deep.connector.dense = {{in.linear(own + "fc1"), EncoderActivation::kGelu}, {in.linear(own + "fc2"), EncoderActivation::kNone}};
  }
}

struct Kind {
  std::string_view projector;
  void (*finish)(Mmproj& in);
  bool rms = false;          // the tower's norms
  bool norms_heads = false;  // queries and keys are normed, and `finish` says how
};

constexpr std::array kKinds = std::to_array<Kind>({
    {"mlp", finish_llava},
    {"gemma3", finish_gemma3},
    {"gemma4v", finish_gemma4, true, true},
    {"idefics3", finish_idefics3},
    {"internvl", finish_internvl, false, true},
    {"kimik25", finish_kimi},
    {"lfm2", finish_lfm2},
    {"minicpmv4_6", finish_minicpm},
    {"pixtral", finish_pixtral, true},
    {"resampler", finish_resampler},
    {"qwen2vl_merger", finish_qwen},
    {"qwen2.5vl_merger", finish_qwen25, true},
    {"qwen3vl_merger", finish_qwen3},
});

}  // namespace

bool is_tower_file(const files::GgufFile& file) {
  const auto architecture = file.string_or("general.architecture", "");
  return architecture && *architecture == kArchitecture;
}

Result<TowerShape> read_tower_gguf(const files::GgufFile& file) {
  Result<std::string> projector = file.string_or("clip.projector_type", "");
  if (projector && projector->empty()) projector = file.string_or("clip.vision.projector_type", "mlp");
  if (!projector) return projector.error();
  const auto* kind = std::ranges::find(kKinds, *projector, &Kind::projector);
  if (kind == kKinds.end())
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{}: clip.projector_type is \"{}\", which this build does not know", file.name(), *projector),
                 {}};
  Mmproj in{file, GgufKeys(file, kVision)};
  read_sizes(in);
  if (in.keys.error) return *in.keys.error;
  read_patches(in);
  read_blocks(in, kind->rms, kind->norms_heads);
  kind->finish(in);
  if (in.tower.rotation) in.tower.encoder.rotary.resize(1);
  in.tower.encoder.family = *projector;
  if (!in.keys.error) check_tower(in.tower, [&in](ErrorCode code, const std::string& message) { in.keys.fail(code, message); });
  if (in.keys.error) return *in.keys.error;
  return std::move(in.tower);
}

}  // namespace braid::model
