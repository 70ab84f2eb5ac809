// A random mixture of experts as a GGUF file, its matrices of any type.
#pragma once

#include "files/gguf.h"
#include "kernels/encode.h"
#include "support/gguf_writer.h"

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace braid::model::test {

// Qwen2-MoE's architecture: experts, and a network of all rows beside them with a gate of its own. All widths are kWidth.
struct MixtureModel {
  static constexpr std::int64_t kWidth = 256;
  static constexpr std::uint32_t kVocab = 200;

  kernels::WeightType type = kernels::WeightType::kF32;
  std::uint32_t layers = 2;
  std::uint32_t experts = 8;
  std::uint32_t chosen = 3;
  bool apart = false;       // a tensor for each expert, as files of early 2024 have
  bool tells_width = true;  // of experts, as those do not

  files::GgufFile file() const {
    braid::test::GgufWriter writer;
    writer.string("general.architecture", "qwen2moe");
    const auto key = [&](const std::string& name, std::uint32_t value) { writer.u32("qwen2moe." + name, value); };
    key("context_length", 256);
    key("block_count", layers);
    key("embedding_length", kWidth);
    key("feed_forward_length", tells_width ? kWidth : 3 * kWidth);
    if (tells_width) key("expert_feed_forward_length", kWidth);
    key("expert_count", experts);
    key("expert_used_count", chosen);
    key("attention.head_count", 4);
    key("attention.head_count_kv", 2);
    writer.f32("qwen2moe.attention.layer_norm_rms_epsilon", 1e-6F);
    std::mt19937 random(5);
    const auto add = [&](const std::string& name, std::vector<std::int64_t> shape, kernels::WeightType stored) {
      writer.tensor(name, static_cast<std::uint32_t>(stored), shape, values(shape, stored, random));
    };
    const auto exact = kernels::WeightType::kF32;
    add("token_embd.weight", {kWidth, kVocab}, type);
    add("output.weight", {kWidth, kVocab}, type);
    add("output_norm.weight", {kWidth}, exact);
    for (std::uint32_t i = 0; i < layers; ++i) {
      const std::string layer = "blk." + std::to_string(i) + ".";
      for (const char* norm : {"attn_norm", "ffn_norm"}) add(layer + norm + ".weight", {kWidth}, exact);
      for (const char* part : {"attn_q", "attn_output", "ffn_gate_shexp", "ffn_up_shexp", "ffn_down_shexp"})
        add(layer + part + ".weight", {kWidth, kWidth}, type);
      for (const char* part : {"attn_k", "attn_v"}) add(layer + part + ".weight", {kWidth, kWidth / 2}, type);
      add(layer + "ffn_gate_inp.weight", {kWidth, experts}, exact);
      add(layer + "ffn_gate_inp_shexp.weight", {kWidth}, exact);
      for (const std::string part : {"ffn_gate", "ffn_up", "ffn_down"}) {
        if (!apart) add(layer + part + "_exps.weight", {kWidth, kWidth, experts}, type);
        for (std::uint32_t expert = 0; apart && expert < experts; ++expert)
          add(layer + part + "." + std::to_string(expert) + ".weight", {kWidth, kWidth}, type);
      }
    }
    return files::GgufFile::from_bytes(writer.source("mixture.gguf")).value();
  }

 private:
  static std::vector<std::byte> values(const std::vector<std::int64_t>& shape, kernels::WeightType stored, std::mt19937& random) {
    const std::int64_t columns = shape.front();
    std::int64_t rows = 1;
    for (std::size_t i = 1; i < shape.size(); ++i) rows *= shape[i];
    const std::size_t row_bytes = kernels::stored_row_bytes(*kernels::weight_format(stored), columns);
    std::vector<std::byte> bytes(row_bytes * static_cast<std::size_t>(rows));
    std::normal_distribution<float> draw(0.0F, 1.6F / std::sqrt(static_cast<float>(columns)));
    std::vector<float> row(static_cast<std::size_t>(columns));
    for (std::int64_t i = 0; i < rows; ++i) {
      for (float& value : row) value = shape.size() == 1 ? 1.0F + draw(random) : draw(random);
      kernels::encode_row(stored, row.data(), columns, bytes.data() + static_cast<std::size_t>(i) * row_bytes);
    }
    return bytes;
  }
};

}  // namespace braid::model::test
