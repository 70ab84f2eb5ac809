// The tensors of an encoder by name, as floats, whatever they are stored as.
#pragma once

#include "braid/result.h"
#include "files/gguf.h"
#include "files/safetensors.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace braid::model {

struct EncoderTensor {
  std::vector<std::int64_t> shape;  // the contiguous dimension is the last one
  std::vector<float> values;
  bool is_computed = false;  // of what is stored: a type that holds that exactly may not hold these
};

// Borrows what it reads from.
class EncoderTensors {
 public:
  virtual ~EncoderTensors() = default;
  virtual bool has(const std::string& name) const = 0;
  // kBadFile: there is none of that name; kUnsupported: its type.
  virtual Result<EncoderTensor> read(const std::string& name) const = 0;
};

// The name of a part of the matrix `weight`, "X.weight", where torch's parametrizations took its place: "original", "0.lora_A".
std::string part_of(const std::string& weight, std::string_view part);

// A folder's: F32, F16 and BF16. Where a matrix has parts, its name stands for the original.
class FolderTensors final : public EncoderTensors {
 public:
  explicit FolderTensors(const std::map<std::string, files::SafeTensor>& tensors) : tensors_(tensors) {}
  bool has(const std::string& name) const override { return find(name) != nullptr; }
  Result<EncoderTensor> read(const std::string& name) const override;

 private:
  const files::SafeTensor* find(const std::string& name) const;

  const std::map<std::string, files::SafeTensor>& tensors_;
};

// Those of a GGUF file, of any type that this build computes with.
class GgufTensors final : public EncoderTensors {
 public:
  explicit GgufTensors(const files::GgufFile& file) : file_(file) {}
  bool has(const std::string& name) const override { return file_.tensor(name) != nullptr; }
  Result<EncoderTensor> read(const std::string& name) const override;

 private:
  const files::GgufFile& file_;
};

}  // namespace braid::model
