// Heads of the EAGLE-3 kind, as folders.
#pragma once

#include "files/hf_folder.h"
#include "model/adapter_models.h"
#include "support/folder.h"

#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <map>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::model::test {

// A head's tensors, by the names of EAGLE-3's authors.
struct MadeEagle {
  static constexpr std::int32_t kHeads = 4;
  static constexpr std::int32_t kKvHeads = 2;
  static constexpr std::int32_t kHeadDim = 16;

  // Of the model that it is for.
  struct Of {
    std::int64_t width = 0;
    std::int32_t vocab = 0;
  };

  Of model;
  std::int64_t width = 0;
  std::map<std::string, adapting::Values> tensors;
  std::vector<std::int64_t> offsets;  // d2t; empty: it has all tokens
  std::string more;                   // of config.json
  bool norms_residual = false;

  std::int64_t own_tokens() const { return tensors.at("lm_head.weight").rows(); }
  const adapting::Values& at(const std::string& name) const { return tensors.at(name); }

  // All numbers are drawn.
  static MadeEagle random(std::uint32_t seed, const Of& model, std::int64_t width, std::int64_t own_tokens) {
    std::mt19937 random(seed);
    MadeEagle head{.model = model, .width = width, .tensors = {}, .offsets = {}, .more = {}};
    const auto draw = [&](const std::string& name, std::vector<std::int64_t> shape, float deviation, float mean = 0.0F) {
      adapting::Values& values = head.tensors[name + ".weight"] = adapting::random_values(random, std::move(shape), deviation);
      for (float& value : values.at) value += mean;
    };
    draw("fc", {width, 3 * model.width}, 0.1F);
    draw("midlayer.self_attn.q_proj", {kHeads * kHeadDim, 2 * width}, 0.15F);
    draw("midlayer.self_attn.k_proj", {kKvHeads * kHeadDim, 2 * width}, 0.15F);
    draw("midlayer.self_attn.v_proj", {kKvHeads * kHeadDim, 2 * width}, 0.15F);
    draw("midlayer.self_attn.o_proj", {width, kHeads * kHeadDim}, 0.2F);
    draw("midlayer.mlp.gate_proj", {80, width}, 0.2F);
    draw("midlayer.mlp.up_proj", {80, width}, 0.2F);
    draw("midlayer.mlp.down_proj", {width, 80}, 0.2F);
    for (const char* norm : {"midlayer.input_layernorm", "midlayer.hidden_norm", "midlayer.post_attention_layernorm", "norm"})
      draw(norm, {width}, 0.1F, 1.0F);
    draw("lm_head", {own_tokens, width}, 0.5F);
    if (width != model.width) draw("embed_tokens", {model.vocab, width}, 0.8F);
    return head;
  }

  // Each of its tokens is every second one of the model's.
  void skip_tokens() {
    for (std::int64_t i = 0; i < own_tokens(); ++i) offsets.push_back(i + 1);
  }

  std::string config() const {
    return fmt::format(R"({{"architectures":["LlamaForCausalLMEagle3"],"model_type":"llama","hidden_size":{},"num_hidden_layers":1,)"
                       R"("num_attention_heads":{},"num_key_value_heads":{},"head_dim":{},"intermediate_size":80,"hidden_act":"silu",)"
                       R"("max_position_embeddings":2048,"rms_norm_eps":1e-5,"rope_theta":10000.0,"vocab_size":{},"draft_vocab_size":{},)"
                       R"("tie_word_embeddings":false{}{}}})",
                       width, kHeads, kKvHeads, kHeadDim, model.vocab, own_tokens(),
                       norms_residual ? R"(,"norm_before_residual":true)" : "", more);
  }

  files::HfFolder folder(const braid::test::Folder& at, std::string_view layer = "midlayer.") const {
    adapting::Tensors file;
    for (const auto& [name, values] : tensors) {
      std::string own = name;
      if (own.starts_with("midlayer.")) own.replace(0, 9, layer);
      file.add(own, values);
    }
    const std::vector<std::byte> known(static_cast<std::size_t>(model.vocab));
    if (!offsets.empty()) {
      file.add("d2t", files::SafeTensor{"I64", {own_tokens()}, std::as_bytes(std::span(offsets))});
      file.add("t2d", files::SafeTensor{"BOOL", {model.vocab}, known});
    }
    adapting::write_file(at / "config.json", config());
    adapting::write_file(at / "model.safetensors", file.file());
    return files::HfFolder::open(at.path()).value();
  }
};

}  // namespace braid::model::test
