// Towers from GGUF files as llama.cpp's converter names them: made here of the folders of reference/images, whose bits they have to give.
#include "files/byte_source.h"
#include "kernels/select.h"
#include "model/folder_models.h"
#include "model/image_models.h"
#include "model/images/patch_grid.h"

#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <optional>

namespace braid::model::test {
namespace {

using Words = std::vector<std::pair<std::string, std::string>>;
using Metadata = std::vector<std::pair<std::string, files::GgufValue>>;

struct TowerFile {
  std::string folder;
  std::string projector;
  Words words;  // of the folder's names to the file's; what none of the first column's beginnings fits is left out
  Metadata more;
};

const Words kVitWords = {{"self_attn.q_proj", "attn_q"},
                         {"self_attn.k_proj", "attn_k"},
                         {"self_attn.v_proj", "attn_v"},
                         {"self_attn.out_proj", "attn_out"},
                         {"layer_norm1", "ln1"},
                         {"layer_norm2", "ln2"},
                         {"mlp.fc1", "ffn_up"},
                         {"mlp.fc2", "ffn_down"},
                         {"embeddings.patch_embedding", "patch_embd"},
                         {"embeddings.class_embedding", "class_embd"},
                         {"embeddings.position_embedding", "position_embd"},
                         {"pre_layrnorm", "pre_ln"},
                         {"post_layernorm", "post_ln"},
                         {"encoder.layers.", "blk."}};

Words with(Words first, const Words& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

const Words kQwenWords = {{"blocks.", "blk."},
                          {"attn.qkv", "attn_qkv"},
                          {"attn.proj", "attn_out"},
                          {"norm1", "ln1"},
                          {"norm2", "ln2"},
                          {"mlp.gate_proj", "ffn_gate"},
                          {"mlp.up_proj", "ffn_up"},
                          {"mlp.down_proj", "ffn_down"},
                          {"mlp.linear_fc1", "ffn_up"},
                          {"mlp.linear_fc2", "ffn_down"},
                          {"mlp.fc1", "ffn_up"},
                          {"mlp.fc2", "ffn_down"},
                          {"patch_embed.proj", "patch_embd"},
                          {"pos_embed", "position_embd"}};

const Words kGemma4Words = {{"model.embed_vision.embedding_projection", "mm.input_projection"},
                            {"model.vision_tower.", "v."},
                            {"patch_embedder.input_proj", "patch_embd"},
                            {"patch_embedder.position_embedding_table", "position_embd.weight"},
                            {"encoder.layers.", "blk."},
                            {".linear.weight", ".weight"},
                            {"self_attn.q_norm", "attn_q_norm"},
                            {"self_attn.k_norm", "attn_k_norm"},
                            {"self_attn.q_proj", "attn_q"},
                            {"self_attn.k_proj", "attn_k"},
                            {"self_attn.v_proj", "attn_v"},
                            {"self_attn.o_proj", "attn_out"},
                            {"post_attention_layernorm", "attn_post_norm"},
                            {"post_feedforward_layernorm", "ffn_post_norm"},
                            {"pre_feedforward_layernorm", "ln2"},
                            {"input_layernorm", "ln1"},
                            {"mlp.gate_proj", "ffn_gate"},
                            {"mlp.up_proj", "ffn_up"},
                            {"mlp.down_proj", "ffn_down"}};

std::uint64_t count(std::uint64_t value) { return value; }

std::vector<TowerFile> tower_files() {
  return {
      {"llava",
       "mlp",
       with({{"vision_tower.", "v."}, {"multi_modal_projector.linear_1", "mm.0"}, {"multi_modal_projector.linear_2", "mm.2"}}, kVitWords),
       {{"clip.vision.block_count", count(2)}, {"clip.vision.attention.layer_norm_epsilon", 1e-5}}},
      {"llava-next",
       "mlp",
       with({{"vision_tower.", "v."},
             {"image_newline", "v.image_newline"},
             {"multi_modal_projector.linear_1", "mm.0"},
             {"multi_modal_projector.linear_2", "mm.2"}},
            kVitWords),
       {{"clip.vision.block_count", count(2)}, {"clip.vision.attention.layer_norm_epsilon", 1e-5}}},
      {"llava-onevision",
       "mlp",
       with({{"vision_tower.", "v."},
             {"image_newline", "model.image_newline"},
             {"multi_modal_projector.linear_1", "mm.0"},
             {"multi_modal_projector.linear_2", "mm.2"}},
            kVitWords),
       {{"clip.use_gelu", false}, {"clip.vision.image_aspect_ratio", std::string("anyres_max_2")}}},
      {"gemma3",
       "gemma3",
       with({{"vision_tower.", "v."},
             {"multi_modal_projector.mm_input_projection_weight", "mm.input_projection.weight"},
             {"multi_modal_projector.mm_soft_emb_norm", "mm.soft_emb_norm"}},
            kVitWords),
       {{"clip.use_gelu", true}, {"clip.vision.projector.scale_factor", count(2)}}},
      {"idefics3",
       "idefics3",
       with({{"model.vision_model.", "v."}, {"model.connector.modality_projection.proj", "mm.model.fc"}}, kVitWords),
       {{"clip.use_gelu", true}, {"clip.vision.projector.scale_factor", count(2)}}},
      {"internvl",
       "internvl",
       {{"vision_tower.", "v."},
        {"multi_modal_projector.layer_norm", "mm.model.mlp.0"},
        {"multi_modal_projector.linear_1", "mm.model.mlp.1"},
        {"multi_modal_projector.linear_2", "mm.model.mlp.3"},
        {"embeddings.cls_token", "class_embd"},
        {"embeddings.patch_embeddings.projection", "patch_embd"},
        {"embeddings.position_embeddings", "position_embd.weight"},
        {"encoder.layer.", "blk."},
        {"layernorm_before", "ln1"},
        {"layernorm_after", "ln2"},
        {"attention.q_proj", "attn_q"},
        {"attention.k_proj", "attn_k"},
        {"attention.v_proj", "attn_v"},
        {"attention.projection_layer", "attn_out"},
        {"lambda_1", "ls1.weight"},
        {"lambda_2", "ls2.weight"},
        {"mlp.fc1", "ffn_up"},
        {"mlp.fc2", "ffn_down"}},
       {}},
      {"internvl-chat",
       "internvl",
       {{"vision_model.", "v."},
        {"mlp1.", "mm.model.mlp."},
        {"embeddings.class_embedding", "class_embd"},
        {"embeddings.patch_embedding", "patch_embd"},
        {"embeddings.position_embedding", "position_embd.weight"},
        {"encoder.layers.", "blk."},
        {"norm1", "ln1"},
        {"norm2", "ln2"},
        {"attn.qkv", "attn_qkv"},
        {"attn.proj", "attn_out"},
        {"attn.q_norm", "attn_q_norm"},
        {"attn.k_norm", "attn_k_norm"},
        {"ls1", "ls1.weight"},
        {"ls2", "ls2.weight"},
        {"mlp.fc1", "ffn_up"},
        {"mlp.fc2", "ffn_down"}},
       {}},
      {"mistral3",
       "pixtral",
       {{"vision_tower.", "v."},
        {"multi_modal_projector.norm", "mm.input_norm"},
        {"multi_modal_projector.patch_merger.merging_layer", "mm.patch_merger"},
        {"multi_modal_projector.linear_1", "mm.1"},
        {"multi_modal_projector.linear_2", "mm.2"},
        {"patch_conv", "patch_embd"},
        {"ln_pre", "pre_ln"},
        {"transformer.layers.", "blk."},
        {"attention_norm", "ln1"},
        {"ffn_norm", "ln2"},
        {"attention.q_proj", "attn_q"},
        {"attention.k_proj", "attn_k"},
        {"attention.v_proj", "attn_v"},
        {"attention.o_proj", "attn_out"},
        {"feed_forward.gate_proj", "ffn_gate"},
        {"feed_forward.up_proj", "ffn_up"},
        {"feed_forward.down_proj", "ffn_down"}},
       {{"clip.use_silu", true}, {"clip.vision.spatial_merge_size", count(2)}, {"clip.vision.attention.layer_norm_epsilon", 1e-5}}},
      {"qwen2-vl",
       "qwen2vl_merger",
       with({{"visual.merger.ln_q", "v.post_ln"}, {"visual.merger.mlp.0", "mm.0"}, {"visual.merger.mlp.2", "mm.2"}, {"visual.", "v."}},
            kQwenWords),
       {}},
      {"qwen2.5-vl",
       "qwen2.5vl_merger",
       with({{"visual.merger.ln_q", "v.post_ln"}, {"visual.merger.mlp.0", "mm.0"}, {"visual.merger.mlp.2", "mm.2"}, {"visual.", "v."}},
            kQwenWords),
       {{"clip.use_silu", true}, {"clip.vision.window_size", count(56)}, {"clip.vision.n_wa_pattern", count(2)}}},
      {"qwen3-vl",
       "qwen3vl_merger",
       with({{"model.visual.merger.norm", "v.post_ln"},
             {"model.visual.merger.linear_fc1", "mm.0"},
             {"model.visual.merger.linear_fc2", "mm.2"},
             {"model.visual.deepstack_merger_list.", "v.deepstack."},
             {"model.visual.", "v."},
             {"linear_fc1", "fc1"},
             {"linear_fc2", "fc2"}},
            kQwenWords),
       {{"clip.use_gelu", true}}},
      {"qwen3.5",
       "qwen3vl_merger",
       with({{"model.visual.merger.norm", "v.post_ln"},
             {"model.visual.merger.linear_fc1", "mm.0"},
             {"model.visual.merger.linear_fc2", "mm.2"},
             {"model.visual.", "v."}},
            kQwenWords),
       {{"clip.use_gelu", true}}},
      {"gemma4", "gemma4v", kGemma4Words, {}},
      {"gemma4-small", "gemma4v", kGemma4Words, {}},
      {"kimi-k2.5",
       "kimik25",
       {{"vision_tower.", "v."},
        {"mm_projector.pre_norm", "mm.input_norm"},
        {"mm_projector.proj.0", "mm.1"},
        {"mm_projector.proj.2", "mm.2"},
        {"patch_embed.pos_emb", "position_embd"},
        {"patch_embed.proj", "patch_embd"},
        {"encoder.final_layernorm", "post_ln"},
        {"encoder.blocks.", "blk."},
        {"wqkv", "attn_qkv"},
        {".wo.", ".attn_out."},
        {"norm0", "ln1"},
        {"norm1", "ln2"},
        {"mlp.fc0", "ffn_up"},
        {"mlp.fc1", "ffn_down"}},
       {{"clip.use_gelu", true}, {"clip.vision.projector.scale_factor", count(2)}, {"clip.vision.attention.layer_norm_epsilon", 1e-5}}},
      {"minicpm-v",
       "minicpmv4_6",
       with({{"model.vision_tower.vit_merger.pre_norm", "v.vit_merger.ds_ln"},
             {"model.vision_tower.vit_merger.linear_1", "v.vit_merger.ds_ffn_up"},
             {"model.vision_tower.vit_merger.linear_2", "v.vit_merger.ds_ffn_down"},
             {"model.merger.mlp.0.pre_norm", "mm.input_norm"},
             {"model.merger.mlp.0.linear_1", "mm.up"},
             {"model.merger.mlp.0.linear_2", "mm.down"},
             {"model.vision_tower.", "v."}},
            kVitWords),
       {{"clip.use_gelu", true},
        {"clip.vision.projector.scale_factor", count(4)},
        {"clip.vision.wa_layer_indexes", files::GgufArray{std::vector<std::uint64_t>{1}}}}},
      {"minicpm-v2.6",
       "resampler",
       with({{"vpm.", "v."},
             {"resampler.kv_proj", "resampler.kv"},
             {"resampler.attn.out_proj", "resampler.attn.out"},
             {"resampler.", "resampler."}},
            kVitWords),
       {{"clip.use_gelu", true}, {"clip.minicpmv_version", std::int64_t{3}}}},
      {"lfm2-vl",
       "lfm2",
       with({{"model.vision_tower.", "v."},
             {"model.multi_modal_projector.layer_norm", "mm.input_norm"},
             {"model.multi_modal_projector.linear_1", "mm.1"},
             {"model.multi_modal_projector.linear_2", "mm.2"}},
            kVitWords),
       {{"clip.use_gelu", true}, {"clip.vision.projector.scale_factor", count(2)}}},
  };
}

std::optional<std::string> named_in_file(const TowerFile& made, std::string name) {
  bool is_seen = false;
  for (const auto& [from, to] : made.words) {
    const std::size_t at = name.find(from);
    if (at == std::string::npos) continue;
    if (to.starts_with("v.") || to.starts_with("mm.") || to.starts_with("model.") || to.starts_with("resampler.")) {
      if (at != 0 || is_seen) continue;
      is_seen = true;
    }
    // The feed-forward's products of Qwen 3, not those of its connectors.
    if ((from == "linear_fc1" || from == "linear_fc2") && name.find(".deepstack.") == std::string::npos) continue;
    name.replace(at, from.size(), to);
  }
  return is_seen ? std::optional(name) : std::nullopt;
}

void add_floats(files::GgufContents& contents, const std::string& name, std::vector<std::int64_t> shape, const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  contents.sources.push_back(files::owned_bytes(std::move(bytes), name));
  contents.tensors.push_back({.name = name,
                              .type = static_cast<std::uint32_t>(kernels::WeightType::kF32),
                              .shape = {shape.rbegin(), shape.rend()},
                              .bytes = contents.sources.back()->bytes()});
}

// Of queries and keys of Kimi the pairs that turn by columns come first in a head, then those that turn by rows.
std::vector<float> with_parted_heads(const EncoderTensor& stored, std::size_t heads) {
  const auto rows = static_cast<std::size_t>(stored.shape.front());
  const std::size_t columns = stored.values.size() / rows;
  const std::size_t head = rows / 3 / heads;
  std::vector<float> values = stored.values;
  for (std::size_t row = 0; row < 2 * heads * head; ++row) {
    const std::size_t part = row % head / (head / 2);
    const std::size_t pair = row % (head / 2) / 2;
    const std::size_t from = row / head * head + 4 * pair + 2 * part + row % 2;
    std::copy_n(stored.values.begin() + static_cast<std::ptrdiff_t>(from * columns), columns,
                values.begin() + static_cast<std::ptrdiff_t>(row * columns));
  }
  return values;
}

// What the converter changes of a tensor; false: it stays as it is.
bool add_changed(files::GgufContents& contents, const TowerFile& made, const TowerShape& shape, const std::string& name,
                 const EncoderTensor& stored) {
  std::vector<float> values = stored.values;
  if (made.projector == "kimik25" && name.find("attn_qkv") != std::string::npos) {
    add_floats(contents, name, stored.shape, with_parted_heads(stored, static_cast<std::size_t>(shape.encoder.heads)));
    return true;
  }
  if (name.starts_with("resampler.attn.in_proj_")) {  // queries', keys' and values' products apart
    const std::size_t part = values.size() / 3;
    std::vector<std::int64_t> own = stored.shape;
    own.front() /= 3;
    for (std::size_t i = 0; i < 3; ++i)
      add_floats(contents, fmt::format("resampler.attn.{}.{}", "qkv"[i], name.substr(name.rfind('_') + 1)), own,
                 {values.begin() + static_cast<std::ptrdiff_t>(i * part), values.begin() + static_cast<std::ptrdiff_t>((i + 1) * part)});
    return true;
  }
  if (name == "resampler.proj") {
    const auto side = static_cast<std::size_t>(stored.shape.front());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = stored.values[i % side * side + i / side];
    add_floats(contents, "resampler.proj.weight", stored.shape, values);
    return true;
  }
  if (name == "mm.soft_emb_norm.weight") {
    for (float& value : values) value += 1.0F;
    add_floats(contents, name, stored.shape, values);
    return true;
  }
  if (name == "v.position_embd.weight" && made.folder == "internvl-chat") {  // for tiles of the size that the folder is read with
    constexpr std::int32_t kSide = 4;
    const auto width = static_cast<std::ptrdiff_t>(shape.encoder.width);
    const std::vector<float> places = cubic_places(std::span(values).subspan(static_cast<std::size_t>(width)), width, kSide, kSide);
    values.resize(static_cast<std::size_t>(width));
    values.insert(values.end(), places.begin(), places.end());
    add_floats(contents, name, {1 + kSide * kSide, width}, values);
    return true;
  }
  if (name != "v.patch_embd.weight") return false;
  if (stored.shape.size() == 5) {  // two frames
    const auto pixels = static_cast<std::size_t>(stored.shape[3] * stored.shape[4]);
    for (std::size_t frame = 0; frame < 2; ++frame) {
      std::vector<float> own;
      for (std::size_t at = frame * pixels; at < values.size(); at += 2 * pixels)
        own.insert(own.end(), values.begin() + static_cast<std::ptrdiff_t>(at), values.begin() + static_cast<std::ptrdiff_t>(at + pixels));
      add_floats(contents, frame == 0 ? name : name + ".1", {stored.shape[0], stored.shape[1], stored.shape[3], stored.shape[4]}, own);
    }
    return true;
  }
  if (stored.shape.size() != 2) return false;
  const std::size_t pixels = static_cast<std::size_t>(stored.shape[1]) / 3;  // whose planes lie last
  const auto side = static_cast<std::int64_t>(std::lround(std::sqrt(static_cast<double>(pixels))));
  for (std::size_t row = 0; row < static_cast<std::size_t>(stored.shape[0]); ++row)
    for (std::size_t i = 0; i < 3 * pixels; ++i) values[row * 3 * pixels + i % 3 * pixels + i / 3] = stored.values[row * 3 * pixels + i];
  add_floats(contents, name, {stored.shape[0], 3, side, side}, values);
  return true;
}

files::GgufContents tower_contents(const TowerFile& made, const files::HfFolder& folder, const TowerShape& shape) {
  files::GgufContents contents;
  contents.sources = folder.sources();
  contents.metadata = {{"general.architecture", std::string("clip")},
                       {made.projector == "gemma4v" ? "clip.vision.projector_type" : "clip.projector_type", made.projector},
                       {"clip.vision.embedding_length", count(static_cast<std::uint64_t>(shape.encoder.width))},
                       {"clip.vision.feed_forward_length", count(static_cast<std::uint64_t>(shape.encoder.layers.front().up.outputs))},
                       {"clip.vision.attention.head_count", count(static_cast<std::uint64_t>(shape.encoder.heads))},
                       {"clip.vision.patch_size", count(static_cast<std::uint64_t>(shape.patch))}};
  const auto add = [&](const std::string& key, files::GgufValue value) {
    for (const auto& [own, given] : made.more)
      if (own == key) return;
    contents.metadata.emplace_back(key, std::move(value));
  };
  add("clip.vision.block_count", count(shape.encoder.layers.size()));
  add("clip.vision.attention.layer_norm_epsilon", 1e-6);
  contents.metadata.insert(contents.metadata.end(), made.more.begin(), made.more.end());
  const FolderTensors tensors(folder.tensors());
  for (const auto& [stored_name, stored] : folder.tensors()) {
    const std::optional<std::string> name = named_in_file(made, stored_name);
    if (!name || (made.projector == "mlp" && name->starts_with("v.post_ln"))) continue;
    if (add_changed(contents, made, shape, *name, tensors.read(stored_name).value())) continue;
    files::GgufTensor& tensor = contents.tensors.emplace_back();
    tensor.name = *name;
    tensor.type = static_cast<std::uint32_t>(kernels::WeightType::kBF16);
    tensor.shape.assign(stored.shape.rbegin(), stored.shape.rend());
    if (tensor.shape.empty()) tensor.shape = {1};
    tensor.bytes = stored.bytes;
  }
  return contents;
}

files::GgufFile make_tower_file(const TowerFile& made, const files::HfFolder& folder, const TowerShape& shape) {
  return files::GgufFile::from_contents(tower_contents(made, folder, shape));
}

class TowerFiles : public testing::TestWithParam<std::size_t> {};

TEST_P(TowerFiles, OfLlamaCppGiveTheFoldersVectors) {
  const TowerFile made = tower_files()[GetParam()];
  const files::HfFolder folder = files::HfFolder::open(image_model_path(made.folder)).value();
  const files::GgufFile file = make_tower_file(made, folder, read_tower_folder(folder).value());
  ASSERT_TRUE(is_tower_file(file));
  kernels::ThreadTeam team(1);
  const kernels::KernelTable& table = kernels::best_kernel_table();
  TowerShape shape = read_tower_gguf(file).value();
  TowerWeights weights = load_tower_weights(shape, GgufTensors(file), table, kernels::WeightType::kF32).value();
  ImageTower tower(std::move(shape), std::move(weights), table, team);
  const auto own = load_tower(made.folder, table, team);
  const Pixels pixels = read_image_reference(made.folder).pixels;
  const std::vector<float> vectors = encode_image(tower, pixels);
  const std::vector<float> expected = encode_image(*own, pixels);
  ASSERT_EQ(vectors.size(), expected.size());
  for (std::size_t i = 0; i < vectors.size(); ++i) ASSERT_NEAR(vectors[i], expected[i], 1e-3 * (1.0 + std::abs(expected[i]))) << i;
  // Which a file tells by the width of its language model alone: this one has not that of the small ones.
  EXPECT_EQ(tower.shape().both_ways, own->shape().both_ways || made.folder == "gemma4-small");
  EXPECT_EQ(tower.shape().grid_positions, own->shape().grid_positions);
}

// A product that reads more than there is would read beyond it.
TEST_P(TowerFiles, WhoseProductsDoNotFitAreRefused) {
  const TowerFile made = tower_files()[GetParam()];
  const files::HfFolder folder = files::HfFolder::open(image_model_path(made.folder)).value();
  const TowerShape own = read_tower_folder(folder).value();
  const std::size_t count = tower_contents(made, folder, own).tensors.size();
  int changed = 0;
  for (std::size_t i = 0; i < count; ++i) {
    files::GgufContents contents = tower_contents(made, folder, own);
    files::GgufTensor& tensor = contents.tensors[i];
    const bool behind = tensor.name.starts_with("mm.") || tensor.name.starts_with("resampler.") || tensor.name.starts_with("v.deepstack.");
    if (!behind || !tensor.name.ends_with(".weight") || tensor.shape.size() != 2 || tensor.shape[1] % 2 != 0) continue;
    tensor.shape = {tensor.shape[0] * 2, tensor.shape[1] / 2};
    const std::string name = tensor.name;
    const files::GgufFile file = files::GgufFile::from_contents(std::move(contents));
    const Result<TowerShape> shape = read_tower_gguf(file);
    ++changed;
    if (!shape) continue;
    EXPECT_FALSE(load_tower_weights(*shape, GgufTensors(file), kernels::best_kernel_table(), kernels::WeightType::kF32)) << name;
  }
  EXPECT_GT(changed, 0);
}

std::string name_of_file(const testing::TestParamInfo<std::size_t>& info) {
  std::string name = tower_files()[info.param].folder;
  std::ranges::replace_if(
      name, [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, TowerFiles, testing::Range(std::size_t{0}, tower_files().size()), name_of_file);

}  // namespace
}  // namespace braid::model::test
