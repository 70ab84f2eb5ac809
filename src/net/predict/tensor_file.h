// Named tensors as a safetensors file: a body in and out.
#pragma once

#include "braid/result.h"
#include "braid/tensor.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::net::predict {

struct TensorFile {
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<std::pair<std::string, Tensor>> tensors;

  const std::string* find_metadata(std::string_view name) const {
    for (const auto& [own, text] : metadata)
      if (own == name) return &text;
    return nullptr;
  }
};

// Whether a body is one: JSON text never begins so.
bool is_tensor_file(std::string_view body);

// kInvalidArgument, with "inputs.NAME" for a tensor's fault. F32, I64, and I32 as int64; every offset is checked.
Result<TensorFile> read_tensor_file(std::string_view body);

struct NamedTensor {
  std::string name;
  const Tensor* tensor = nullptr;
};
std::string write_tensor_file(std::span<const std::pair<std::string, std::string>> metadata, std::span<const NamedTensor> tensors);

}  // namespace braid::net::predict
