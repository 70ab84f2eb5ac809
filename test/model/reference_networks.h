// The networks of reference/networks, with what torch made of them (make_networks.py).
#pragma once

#include "braid/tensor.h"
#include "files/safetensors.h"
#include "kernels/kernel_table.h"
#include "model/networks/network.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <map>
#include <simdjson.h>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace braid::model::test::networks {

inline std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::string base64_bytes(std::string_view text) {
  static constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6U | static_cast<std::uint32_t>(kDigits.find(c));
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> static_cast<unsigned>(count) & 255U);
  }
  return bytes;
}

inline Tensor tensor_of(const simdjson::dom::element& json) {
  Tensor tensor;
  tensor.type = std::string_view(json["dtype"]) == "int64" ? ElementType::kInt64 : ElementType::kFloat32;
  for (const std::int64_t extent : json["shape"].get_array()) tensor.shape.push_back(extent);
  const std::string bytes = base64_bytes(json["data"]);
  const auto count = static_cast<std::size_t>(value_count(tensor.shape));
  const bool floats = tensor.type == ElementType::kFloat32;
  EXPECT_EQ(bytes.size(), count * (floats ? 4 : 8));
  if (floats) tensor.floats.resize(count);
  if (!floats) tensor.integers.resize(count);
  std::memcpy(floats ? static_cast<void*>(tensor.floats.data()) : tensor.integers.data(), bytes.data(), bytes.size());
  return tensor;
}

struct Case {
  std::map<std::string, Tensor> inputs;
  std::map<std::string, Tensor> outputs;
};

struct Files {
  std::string config;
  std::string tensors;

  explicit Files(const std::string& name) {
    const std::string folder = std::string(BRAID_SOURCE_DIR "/test/model/reference/networks/") + name;
    config = read(folder + "/config.json");
    tensors = read(folder + "/model.safetensors");
    simdjson::dom::parser parser;
    std::istringstream lines(read(folder + "/cases.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const simdjson::dom::element json = parser.parse(line);
      Case& each = cases.emplace_back();
      for (const auto& [key, value] : json["inputs"].get_object()) each.inputs.emplace(key, tensor_of(value));
      for (const auto& [key, value] : json["outputs"].get_object()) each.outputs.emplace(key, tensor_of(value));
    }
    EXPECT_FALSE(cases.empty()) << name;
  }

  Result<Network> load(const kernels::KernelTable& table) const {
    const auto parsed = files::parse_safetensors(std::as_bytes(std::span(tensors)));
    if (!parsed) return parsed.error();
    return Network::load(config, *parsed, table);
  }

  std::vector<Case> cases;
};

}  // namespace braid::model::test::networks
