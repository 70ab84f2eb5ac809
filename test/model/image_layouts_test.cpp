// Folders as transformers writes them and as the hub has them of the model's own code: the same numbers give the same bits.
#include "files/byte_source.h"
#include "kernels/select.h"
#include "model/folder_models.h"
#include "model/forward_harness.h"
#include "model/image_models.h"

#include <fmt/format.h>
#include <span>

namespace braid::model::test {
namespace {

using Words = std::vector<std::pair<std::string, std::string>>;
using RowRuns = std::vector<std::pair<std::int64_t, std::int64_t>>;  // first and count

const Words kOwnWords = {{"vision_tower.", "vision_model."},
                         {"embeddings.cls_token", "embeddings.class_embedding"},
                         {"embeddings.patch_embeddings.projection", "embeddings.patch_embedding"},
                         {"embeddings.position_embeddings", "embeddings.position_embedding"},
                         {"encoder.layer.", "encoder.layers."},
                         {"attention.projection_layer", "attn.proj"},
                         {"attention.q_norm", "attn.q_norm"},
                         {"attention.k_norm", "attn.k_norm"},
                         {"layernorm_before", "norm1"},
                         {"layernorm_after", "norm2"},
                         {"lambda_1", "ls1"},
                         {"lambda_2", "ls2"},
                         {"multi_modal_projector.layer_norm", "mlp1.0"},
                         {"multi_modal_projector.linear_1", "mlp1.1"},
                         {"multi_modal_projector.linear_2", "mlp1.3"}};
const Words kInternLm2Words = {{"model.embed_tokens", "model.tok_embeddings"}, {"self_attn.o_proj", "attention.wo"},
                               {"mlp.gate_proj", "feed_forward.w1"},           {"mlp.up_proj", "feed_forward.w3"},
                               {"mlp.down_proj", "feed_forward.w2"},           {"input_layernorm", "attention_norm"},
                               {"post_attention_layernorm", "ffn_norm"},       {"lm_head", "output"}};

std::string renamed(std::string name, const Words& words, bool back) {
  for (const auto& [theirs, own] : words) {
    const std::string& from = back ? own : theirs;
    if (const std::size_t at = name.find(from); at != std::string::npos) name.replace(at, from.size(), back ? theirs : own);
  }
  return name;
}

// A folder on its way to its other names.
class OtherNames {
 public:
  explicit OtherNames(const std::string& name) : from_(files::HfFolder::open(image_model_path(name)).value()), sources_(from_.sources()) {}

  const std::map<std::string, files::SafeTensor>& stored() const { return from_.tensors(); }
  void keep(const std::string& name, const std::string& stored_name) { tensors_[name] = stored().at(stored_name); }
  // Of the rows of some tensors, one behind the other.
  void join(const std::string& name, const std::vector<std::pair<std::string, RowRuns>>& parts) {
    std::vector<std::byte> bytes;
    std::int64_t count = 0;
    files::SafeTensor joined;
    for (const auto& [part, rows] : parts) {
      const files::SafeTensor& tensor = stored().at(part);
      const std::size_t row_bytes = tensor.bytes.size() / static_cast<std::size_t>(tensor.shape[tensor.shape.size() == 3 ? 1 : 0]);
      joined = tensor;
      for (const auto& [first, taken] : rows) {
        const auto own = tensor.bytes.subspan(static_cast<std::size_t>(first) * row_bytes, static_cast<std::size_t>(taken) * row_bytes);
        bytes.insert(bytes.end(), own.begin(), own.end());
        count += taken;
      }
    }
    sources_.push_back(files::owned_bytes(std::move(bytes), name));
    joined.shape[joined.shape.size() == 3 ? 1 : 0] = count;  // tables of places have a dimension in front
    joined.bytes = sources_.back()->bytes();
    tensors_[name] = std::move(joined);
  }
  // Of [matrices, rows, columns] in two bytes each.
  void turn(const std::string& name) {
    files::SafeTensor tensor = stored().at(name);
    const auto rows = static_cast<std::size_t>(tensor.shape[1]);
    const auto columns = static_cast<std::size_t>(tensor.shape[2]);
    std::vector<std::byte> bytes(tensor.bytes.size());
    for (std::size_t i = 0; i < bytes.size() / 2; ++i) {
      const std::size_t place = i / (rows * columns) * (rows * columns) + i % columns * rows + i / columns % rows;
      std::copy_n(tensor.bytes.begin() + static_cast<std::ptrdiff_t>(2 * i), 2, bytes.begin() + static_cast<std::ptrdiff_t>(2 * place));
    }
    std::swap(tensor.shape[1], tensor.shape[2]);
    sources_.push_back(files::owned_bytes(std::move(bytes), name));
    tensor.bytes = sources_.back()->bytes();
    tensors_[name] = std::move(tensor);
  }
  std::string config() const { return from_.config(); }
  std::string part_of_config(const char* name) const {
    simdjson::dom::parser parser;
    return simdjson::minify(simdjson::dom::element(parser.parse(from_.config()))[name]);
  }
  files::HfFolder finish(const std::string& config) { return files::HfFolder::of_tensors("other", config, tensors_, sources_); }

 private:
  files::HfFolder from_;
  std::map<std::string, files::SafeTensor> tensors_;
  std::vector<std::shared_ptr<const files::ByteSource>> sources_;
};

// Qwen 2 and the smaller tower, from transformers' names.
files::HfFolder in_own_names() {
  OtherNames made("internvl");
  for (const auto& [name, tensor] : made.stored()) {
    const std::size_t at = name.find("attention.q_proj");
    if (at != std::string::npos) {
      const std::string of = name.substr(0, at) + "attention.";
      const RowRuns all = {{0, tensor.shape.front()}};
      made.join(renamed(name.substr(0, at), kOwnWords, false) + "attn.qkv.weight",
                {{of + "q_proj.weight", all}, {of + "k_proj.weight", all}, {of + "v_proj.weight", all}});
    } else if (name.find("attention.k_proj") == std::string::npos && name.find("attention.v_proj") == std::string::npos) {
      made.keep(renamed(name, kOwnWords, false), name);
    }
  }
  return made.finish(R"({"model_type":"internvl_chat","downsample_ratio":0.5,"ps_version":"v2","select_layer":-1,"force_image_size":56,)"
                     R"("vision_config":{"model_type":"intern_vit_6b","hidden_size":24,"num_attention_heads":2,"num_hidden_layers":3,)"
                     R"("intermediate_size":40,"image_size":56,"patch_size":14,"norm_type":"layer_norm","qk_normalization":false},)"
                     R"("llm_config":)" +
                     made.part_of_config("text_config") + "}");
}

const RowRuns kPlaces = {{0, 17}};  // of a table that is as large as a tile: that of the file is larger

files::HfFolder with_smaller_table() {
  OtherNames made("internvl-chat");
  for (const auto& [name, tensor] : made.stored())
    name.ends_with("position_embedding") ? made.join(name, {{name, kPlaces}}) : made.keep(name, name);
  std::string config = made.config();
  const std::string_view size = "\"image_size\": 70";
  config.replace(config.find(size), size.size(), "\"image_size\": 56");
  return made.finish(config);
}

// InternLM 2 and the larger tower, from its own names.
files::HfFolder in_transformers_names() {
  OtherNames made("internvl-chat");
  constexpr std::int64_t kHead = 8;
  constexpr std::int64_t kQueries = 2;  // that share a head of keys, of which there are two
  for (const auto& [name, tensor] : made.stored()) {
    const std::string theirs = renamed(renamed(name, kInternLm2Words, true), kOwnWords, true);
    if (const std::size_t at = name.find("attn.qkv"); at != std::string::npos) {
      const std::string of = renamed(name.substr(0, at), kOwnWords, true) + "attention.";
      const std::int64_t rows = tensor.shape.front() / 3;
      for (std::int64_t i = 0; i < 3; ++i) made.join(fmt::format("{}{}_proj.weight", of, "qkv"[i]), {{name, {{i * rows, rows}}}});
    } else if (const std::size_t joined = name.find("attention.wqkv"); joined != std::string::npos) {
      const std::string of = name.substr(0, joined) + "self_attn.";
      const std::int64_t group = (kQueries + 2) * kHead;
      const auto of_both = [&](std::int64_t first, std::int64_t count) { return RowRuns{{first, count}, {group + first, count}}; };
      made.join(of + "q_proj.weight", {{name, of_both(0, kQueries * kHead)}});
      made.join(of + "k_proj.weight", {{name, of_both(kQueries * kHead, kHead)}});
      made.join(of + "v_proj.weight", {{name, of_both((kQueries + 1) * kHead, kHead)}});
    } else if (name.ends_with("position_embedding")) {
      made.join(theirs, {{name, kPlaces}});
    } else {
      made.keep(theirs, name);
    }
  }
  std::string text = made.part_of_config("llm_config");
  text.replace(text.find("internlm2"), std::string_view("internlm2").size(), "llama");
  return made.finish(R"({"model_type":"internvl","downsample_ratio":0.5,"vision_feature_layer":-2,"vision_config":{"hidden_size":36,)"
                     R"("num_attention_heads":3,"num_hidden_layers":4,"intermediate_size":40,"image_size":[56,56],"patch_size":[14,14],)"
                     R"("norm_type":"rms_norm","use_qk_norm":true},"text_config":)" +
                     text + "}");
}

std::vector<float> logits_of(const files::HfFolder& folder) {
  const files::GgufFile file = files::GgufFile::from_contents(read_folder(folder).value());
  return ForwardHarness(file, kernels::best_kernel_table(), {.float_type = kernels::WeightType::kF32}).logits({3, 141, 59, 26, 300, 7});
}

std::vector<float> vectors_of(const files::HfFolder& folder, const Pixels& pixels) {
  kernels::ThreadTeam team(1);
  TowerShape shape = read_tower_folder(folder).value();
  TowerWeights weights =
      load_tower_weights(shape, FolderTensors(folder.tensors()), kernels::best_kernel_table(), kernels::WeightType::kF32).value();
  ImageTower tower(std::move(shape), std::move(weights), kernels::best_kernel_table(), team);
  return encode_image(tower, pixels);
}

TEST(InternVlLayouts, OfItsOwnCodeGiveTheBitsOfTransformersFolder) {
  const files::HfFolder theirs = files::HfFolder::open(image_model_path("internvl")).value();
  const files::HfFolder own = in_own_names();
  const Pixels pixels = read_image_reference("internvl").pixels;
  EXPECT_EQ(vectors_of(own, pixels), vectors_of(theirs, pixels));
  EXPECT_EQ(logits_of(own), logits_of(theirs));
}

TEST(InternVlLayouts, OfInternLm2GiveTheBitsOfLlama) {
  const files::HfFolder own = with_smaller_table();
  const files::HfFolder theirs = in_transformers_names();
  const Pixels pixels = read_image_reference("internvl-chat").pixels;
  EXPECT_EQ(vectors_of(theirs, pixels), vectors_of(own, pixels));
  EXPECT_EQ(logits_of(theirs), logits_of(own));
}

// The hub's files have experts' inputs first.
TEST(QwenVlLayouts, OfExpertsTurnedRoundGiveTheSameBits) {
  const files::HfFolder theirs = files::HfFolder::open(image_model_path("qwen3-vl-moe")).value();
  OtherNames made("qwen3-vl-moe");
  for (const auto& [name, tensor] : made.stored()) name.find("mlp.experts") != std::string::npos ? made.turn(name) : made.keep(name, name);
  EXPECT_EQ(logits_of(made.finish(made.config())), logits_of(theirs));
}

}  // namespace
}  // namespace braid::model::test
