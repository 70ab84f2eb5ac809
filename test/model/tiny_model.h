// A small sound model whose metadata and tensors a test bends before it is written.
#pragma once

#include "files/gguf.h"
#include "files/gguf_tensor_type.h"
#include "support/gguf_writer.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace braid::model::test {

struct TinyModel {
  using Value = std::variant<std::uint32_t, float, std::string, std::vector<std::uint32_t>, bool>;
  struct Tensor {
    std::vector<std::int64_t> shape;
    std::uint32_t type = 0;
    std::vector<std::byte> bytes = {};  // made if there are none
  };

  std::map<std::string, Value> keys;
  std::map<std::string, Tensor> tensors;

  explicit TinyModel(const std::string& architecture = "llama") {
    const auto key = [&](const std::string& name) -> Value& { return keys[architecture + "." + name]; };
    keys["general.architecture"] = architecture;
    key("context_length") = 64U;
    key("block_count") = 1U;
    key("embedding_length") = 64U;
    key("feed_forward_length") = 96U;
    key("attention.head_count") = 4U;
    key("attention.head_count_kv") = 2U;
    key("attention.layer_norm_rms_epsilon") = 1e-5F;
    tensors["token_embd.weight"] = {{64, 40}};
    tensors["output_norm.weight"] = {{64}};
    const auto layer = [&](const std::string& name) -> Tensor& { return tensors["blk.0." + name + ".weight"]; };
    layer("attn_norm") = {{64}};
    layer("attn_q") = {{64, 64}};
    layer("attn_k") = {{64, 32}};
    layer("attn_v") = {{64, 32}};
    layer("attn_output") = {{64, 64}};
    layer("ffn_norm") = {{64}};
    layer("ffn_gate") = {{64, 96}};
    layer("ffn_up") = {{64, 96}};
    layer("ffn_down") = {{96, 64}};
  }

  bool zeros = false;  // all weights; otherwise those of quantised types only
  std::string spoilt;  // an F32 tensor of nothing but
  float spoilt_by = std::numeric_limits<float>::quiet_NaN();

  files::GgufFile file() const {
    braid::test::GgufWriter writer;
    for (const auto& [key, value] : keys) {
      if (const auto* number = std::get_if<std::uint32_t>(&value)) writer.u32(key, *number);
      if (const auto* number = std::get_if<float>(&value)) writer.f32(key, *number);
      if (const auto* text = std::get_if<std::string>(&value)) writer.string(key, *text);
      if (const auto* array = std::get_if<std::vector<std::uint32_t>>(&value)) writer.u32s(key, *array);
      if (const auto* flag = std::get_if<bool>(&value)) writer.boolean(key, *flag);
    }
    for (const auto& [name, tensor] : tensors) {
      std::int64_t values = 1;
      for (const std::int64_t size : tensor.shape) values *= size;
      const files::GgufTensorType* type = files::gguf_tensor_type(tensor.type);
      const std::size_t blocks = type != nullptr ? static_cast<std::size_t>(values) / type->block_values : 0;
      std::vector<std::byte> data(type != nullptr ? blocks * type->block_bytes : 64);
      for (std::size_t i = 0; tensor.type == 0 && !zeros && i < blocks; ++i) {
        const float value = name == spoilt ? spoilt_by : 0.01F * static_cast<float>(i * i % 31) - 0.15F;
        std::memcpy(data.data() + 4 * i, &value, 4);
      }
      if (!tensor.bytes.empty()) data = tensor.bytes;
      writer.tensor(name, tensor.type, tensor.shape, data);
    }
    return files::GgufFile::from_bytes(writer.source("tiny.gguf")).value();
  }
};

}  // namespace braid::model::test
