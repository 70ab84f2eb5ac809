// Adapters of random numbers in PEFT's form, and what a base is with one merged into it.
#pragma once

#include "files/hf_folder.h"
#include "files/safetensors.h"
#include "kernels/weight_type.h"
#include "model/adapters/build.h"
#include "model/adapters/matrices.h"
#include "model/adapters/read_adapter.h"
#include "model/language_model.h"
#include "support/folder.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace braid::model::test::adapting {

// A matrix of floats, rows first.
struct Values {
  std::vector<std::int64_t> shape;
  std::vector<float> at;

  std::int64_t rows() const { return shape.front(); }
  std::int64_t columns() const { return shape.back(); }
};

inline Values random_values(std::mt19937& random, std::vector<std::int64_t> shape, float deviation) {
  std::normal_distribution<float> draw(0.0F, deviation);
  Values values{std::move(shape), {}};
  std::int64_t count = 1;
  for (const std::int64_t size : values.shape) count *= size;
  values.at.resize(static_cast<std::size_t>(count));
  for (float& value : values.at) value = draw(random);
  return values;
}

inline Values values_of(const files::SafeTensor& tensor) {
  using kernels::WeightType;
  const WeightType type = tensor.dtype == "F32" ? WeightType::kF32 : tensor.dtype == "F16" ? WeightType::kF16 : WeightType::kBF16;
  Values values{tensor.shape, {}};
  values.at.resize(tensor.bytes.size() / (type == WeightType::kF32 ? 4 : 2));
  kernels::dequantize_row(type, tensor.bytes.data(), static_cast<std::int64_t>(values.at.size()), values.at.data());
  return values;
}

// Tensors of a file, which own what they point to.
class Tensors {
 public:
  void add(const std::string& name, const Values& values) {
    std::vector<std::byte>& bytes = bytes_[name];
    bytes.resize(values.at.size() * 4);
    std::memcpy(bytes.data(), values.at.data(), bytes.size());
    contents_.tensors[name] = {"F32", values.shape, bytes};
  }
  void add(const std::string& name, files::SafeTensor tensor) { contents_.tensors[name] = std::move(tensor); }
  void remove(const std::string& name) { contents_.tensors.erase(name); }
  // The part of names that is `from`.
  void rename(const std::string& from, const std::string& to) {
    for (auto& [name, tensor] : std::exchange(contents_.tensors, {}))
      if (const std::size_t at = name.find(from); at != std::string::npos)
        contents_.tensors.emplace(name.substr(0, at) + to + name.substr(at + from.size()), tensor);
      else
        contents_.tensors.emplace(name, tensor);
  }
  files::SafeTensor& operator[](const std::string& name) { return contents_.tensors.at(name); }

  std::vector<std::byte> file() const { return files::write_safetensors(contents_); }

 private:
  std::map<std::string, std::vector<std::byte>> bytes_;
  files::SafeTensors contents_;
};

inline void write_file(const std::string& path, const std::vector<std::byte>& bytes) {
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}
inline void write_file(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

// W + scale B A, where `turned` matrices lie as [inputs, outputs].
inline void merge(Values& weights, const Values& up, const Values& down, float scale, bool turned) {
  for (std::int64_t o = 0; o < up.rows(); ++o)
    for (std::int64_t i = 0; i < down.columns(); ++i) {
      double sum = 0.0;
      for (std::int64_t r = 0; r < up.columns(); ++r)
        sum += double{up.at[static_cast<std::size_t>(o * up.columns() + r)]} * down.at[static_cast<std::size_t>(r * down.columns() + i)];
      float& w = weights.at[static_cast<std::size_t>(turned ? i * up.rows() + o : o * down.columns() + i)];
      w = static_cast<float>(double{w} + double{scale} * sum);
    }
}

// Each row to that length.
inline void set_lengths(Values& weights, const std::vector<float>& lengths) {
  for (std::int64_t row = 0; row < weights.rows(); ++row) {
    float* w = &weights.at[static_cast<std::size_t>(row * weights.columns())];
    double squares = 0.0;
    for (std::int64_t i = 0; i < weights.columns(); ++i) squares += double{w[i]} * w[i];
    for (std::int64_t i = 0; i < weights.columns(); ++i)
      w[i] = static_cast<float>(w[i] * lengths[static_cast<std::size_t>(row)] / std::sqrt(squares));
  }
}

// A folder like `base` with other tensors in the place of some.
inline void write_folder(const files::HfFolder& base, const std::map<std::string, Values>& changed, const std::string& path,
                         const std::string& config) {
  Tensors tensors;
  for (const auto& [name, tensor] : base.tensors()) tensors.add(name, tensor);
  for (const auto& [name, values] : changed) tensors.add(name, values);
  write_file(path + "/config.json", config);
  write_file(path + "/model.safetensors", tensors.file());
}

inline std::shared_ptr<const AdapterSet> only(std::shared_ptr<const Adapter> adapter, float scale = 1.0F) {
  return std::make_shared<AdapterSet>(std::vector<AdapterSet::Part>{{std::move(adapter), scale}});
}

// Of every layer of a model, made of random numbers: of float32 or bf16, with magnitudes or without, or with every other matrix, all norms and
// some tokens' rows whole.
struct RandomAdapter {
  std::uint32_t seed = 1;
  std::int64_t rank = 4;
  bool half = false;
  bool magnitudes = false;
  bool whole = false;

  std::shared_ptr<const Adapter> build(const LanguageModel& model, const kernels::KernelTable& table, const Measure& measure = {}) const {
    std::mt19937 random(seed);
    StoredAdapter stored{.name = "random", .sources = {}, .matrices = {}};
    std::vector<std::vector<std::byte>> owned;
    owned.reserve(100000);
    const auto tensor = [&](std::vector<std::int64_t> shape, float mean, float deviation, bool short_values) {
      const Values values = random_values(random, shape, deviation);
      std::vector<std::byte>& bytes = owned.emplace_back(values.at.size() * (short_values ? 2 : 4));
      for (std::size_t i = 0; i < values.at.size(); ++i) {
        const float value = mean + values.at[i];
        const auto bits = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16U);
        short_values ? std::memcpy(&bytes[2 * i], &bits, 2) : std::memcpy(&bytes[4 * i], &value, 4);
      }
      return StoredTensor{.name = "random",
                          .type = short_values ? kernels::WeightType::kBF16 : kernels::WeightType::kF32,
                          .shape = std::move(shape),
                          .bytes = bytes};
    };
    for (const ModelMatrix& base : matrices_of(model.shape(), *model.first()->weights)) {
      const bool is_product = base.role == ModelMatrix::Role::kProduct;
      const std::int64_t inputs = base.role == ModelMatrix::Role::kEmbedding ? base.shape.outputs : base.shape.inputs;
      const std::int64_t outputs = base.role == ModelMatrix::Role::kEmbedding ? base.shape.inputs : base.shape.outputs;
      StoredMatrix& matrix = stored.matrices.emplace_back();
      matrix.name = base.shape.name;
      matrix.expert = base.expert;
      matrix.scale = 0.5F;
      if (whole && is_product && stored.matrices.size() % 2 == 0) {
        matrix.replacement = tensor({outputs, inputs}, 0.0F, 1.0F / std::sqrt(static_cast<float>(inputs)), false);
        continue;
      }
      if (whole && !is_product) {
        matrix.rows = tensor({3, base.shape.inputs}, 0.0F, 0.3F, half);
        matrix.tokens = {7, static_cast<std::int32_t>(base.shape.outputs) - 1, 5};
        continue;
      }
      matrix.down = tensor({rank, inputs}, 0.0F, is_product ? 1.0F / std::sqrt(static_cast<float>(inputs)) : 0.2F, half);
      matrix.up = tensor({outputs, rank}, 0.0F, 0.1F, half);
      if (magnitudes && is_product) matrix.magnitude = tensor({outputs}, 1.0F, 0.1F, false);
    }
    std::set<std::string> norms;  // two branches may read through one
    for (const ModelNorm& base : norms_of(model.shape(), *model.first()->weights)) {
      if (!whole || !norms.insert(base.shape->name).second) continue;
      StoredMatrix& norm = stored.matrices.emplace_back();
      norm.name = base.shape->name;
      norm.replacement = tensor({std::ssize(base.weights->weight)}, 1.0F, 0.1F, false);
      if (!base.weights->bias.empty()) norm.bias = tensor({std::ssize(base.weights->bias)}, 0.0F, 0.1F, false);
    }
    return build_adapter(stored, model.shape(), *model.first()->weights, table, measure).value();
  }
};

}  // namespace braid::model::test::adapting
