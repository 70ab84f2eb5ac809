// A tiny model with a head for tokens further on, as files have it.
#pragma once

#include "model/folder_models.h"
#include "support/gguf_writer.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace braid::model::test {

// One of the tiny models with a head behind its layers, made like the last one that has attention; what tensors hold may be changed.
class ModelWithHead {
 public:
  using Floats = std::vector<float>;

  explicit ModelWithHead(const std::string& folder)
      : contents_(read_folder(files::HfFolder::open(folder_path(folder)).value()).value()), architecture_(text("general.architecture")),
        embedding_(number("embedding_length")), layers_(number("block_count")) {
    const std::string behind = fmt::format("blk.{}.", layers_);
    const std::vector<files::GgufTensor> all = contents_.tensors;
    for (const files::GgufTensor& tensor : all)
      if (tensor.name.starts_with(copied_layer())) {
        contents_.tensors.push_back(tensor);
        contents_.tensors.back().name.replace(0, copied_layer().size(), behind);
      }
    const auto width = static_cast<std::size_t>(embedding_);
    std::mt19937 random(7);
    std::normal_distribution<float> draw(0.0F, 0.15F);
    Floats join(2 * width * width);
    for (float& value : join) value = draw(random);
    put(behind + "nextn.eh_proj.weight", {2 * embedding_, embedding_}, join);
    for (const char* norm : {"enorm", "hnorm", "shared_head_norm"})
      put(fmt::format("{}nextn.{}.weight", behind, norm), {embedding_}, Floats(width, 1.0F));
    set("block_count", std::uint64_t{static_cast<std::uint64_t>(layers_) + 1});
    set("nextn_predict_layers", std::uint64_t{1});
  }

  std::int64_t embedding() const { return embedding_; }
  std::int64_t vocab() const { return shape_of("token_embd.weight")[1]; }
  void join(const Floats& values) { put(fmt::format("blk.{}.nextn.eh_proj.weight", layers_), {2 * embedding_, embedding_}, values); }
  void put(const std::string& name, const std::vector<std::int64_t>& shape, const Floats& values) {
    const auto bytes = std::as_bytes(std::span(values));
    contents_.sources.push_back(std::make_shared<braid::test::OwnedBytes>(bytes, name));
    std::erase_if(contents_.tensors, [&](const files::GgufTensor& tensor) { return tensor.name == name; });
    contents_.tensors.push_back({.name = name, .type = 0, .shape = shape, .bytes = contents_.sources.back()->bytes()});
  }
  // Of all layers nothing is added to the residual stream, and the last norm only scales.
  void silence() {
    put("output_norm.weight", {embedding_}, Floats(static_cast<std::size_t>(embedding_), 1.0F));
    const std::vector<files::GgufTensor> all = contents_.tensors;
    for (const files::GgufTensor& tensor : all) {
      const bool ends_branch = tensor.name.find("attn_output.weight") != std::string::npos ||
                               tensor.name.find("ffn_down") != std::string::npos || tensor.name.find("ssm_out.weight") != std::string::npos;
      if (!ends_branch || tensor.name.find(".weight") == std::string::npos) continue;
      std::int64_t count = 1;
      for (const std::int64_t size : tensor.shape) count *= size;
      put(tensor.name, tensor.shape, Floats(static_cast<std::size_t>(count), 0.0F));
    }
  }

  files::GgufFile file() const { return files::GgufFile::from_contents(contents_); }

 private:
  std::string copied_layer() const {
    for (std::int64_t i = layers_; i-- > 0;) {
      std::string name = fmt::format("blk.{}.", i);
      for (const files::GgufTensor& tensor : contents_.tensors)
        if (tensor.name.starts_with(name + "attn_") && tensor.name.find("attn_output.weight") != std::string::npos) return name;
    }
    return {};
  }
  const std::vector<std::int64_t>& shape_of(std::string_view name) const {
    return std::ranges::find(contents_.tensors, name, &files::GgufTensor::name)->shape;
  }
  files::GgufValue& value(const std::string& key) {
    const auto found = std::ranges::find(contents_.metadata, key, [](const auto& entry) { return entry.first; });
    if (found != contents_.metadata.end()) return found->second;
    return contents_.metadata.emplace_back(key, std::uint64_t{0}).second;
  }
  std::string text(const std::string& key) { return std::get<std::string>(value(key)); }
  std::int64_t number(const std::string& key) {
    return static_cast<std::int64_t>(std::get<std::uint64_t>(value(architecture_ + "." + key)));
  }
  void set(const std::string& key, std::uint64_t number) { value(architecture_ + "." + key) = number; }

  files::GgufContents contents_;
  std::string architecture_;
  std::int64_t embedding_;
  std::int64_t layers_;
};

}  // namespace braid::model::test
