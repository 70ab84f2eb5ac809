// Models with adapters, as tests load and compare them.
#pragma once

#include "kernels/select.h"
#include "model/adapter_models.h"
#include "model/families/families.h"
#include "model/folder_models.h"
#include "model/step_driver.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <initializer_list>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace braid::model::test::adapting {

inline constexpr std::int32_t kAdapterBlocks = 96;

inline std::unique_ptr<LanguageModel> load(const files::GgufFile& file, const kernels::KernelTable& table) {
  LoadOptions options{.kv_type = kernels::KvType::kF32, .max_batch = 4, .end_tokens = {}, .progress = {}};
  options.packing.float_type = kernels::WeightType::kF32;
  auto model = LanguageModel::load(file, table, options).value();
  model->allocate_kv(kAdapterBlocks).value();
  return model;
}

inline files::GgufFile open_model(const std::string& path) {
  return files::GgufFile::from_contents(read_folder(files::HfFolder::open(path).value()).value());
}

// Log-probabilities of a prompt's tokens and those of a short greedy answer.
inline DrivenAnswer scores(LanguageModel& model, std::uint32_t adapter = 0) {
  std::mt19937 random(3);
  DrivenRequest request{.prompt = std::vector<TokenId>(40),
                        .sampling = {.temperature = 0.0F, .top_logprobs = 0},
                        .stop = {.max_tokens = 4, .stop_token_ids = {}}};
  for (TokenId& id : request.prompt) id = static_cast<TokenId>(3 + random() % 110);
  request.prompt_logprobs = 0;
  request.adapter = adapter;
  return StepDriver(model, kAdapterBlocks).run({request}, {}).front();
}

inline float distance(const DrivenAnswer& a, const DrivenAnswer& b) {
  float most = 0.0F;
  for (std::size_t i = 0; i < a.scored.size(); ++i) most = std::max(most, std::fabs(a.scored[i].logprob - b.scored[i].logprob));
  return most;
}

inline bool has_any(const std::string& text, std::initializer_list<const char*> parts) {
  return std::ranges::any_of(parts, [&](const char* part) { return text.find(part) != std::string::npos; });
}

// A module of a layer that is a matrix, and that this build adapts.
inline bool is_adapted(const std::string& name, const files::SafeTensor& tensor) {
  return name.ends_with(".weight") && tensor.shape.size() == 2 && has_any(name, {".layers.", ".h.", ".blocks."}) &&
         !has_any(name, {"norm", "ln_", "conv", "embed", "shared_expert_gate", "q_proj.0.", "alpha", ".A_log", "altup."}) &&
         has_any(tensor.dtype, {"F32", "BF16", "F16"});
}

// Weights or biases of a norm, of a layer or of the model.
inline bool is_of_norm(const std::string& name, const files::SafeTensor& tensor) {
  return (name.ends_with(".weight") || name.ends_with(".bias")) && tensor.shape.size() <= 2 && has_any(name, {"norm", "ln_"});
}

inline std::shared_ptr<const Adapter> adapter_of(const std::string& path, LanguageModel& model, const std::string& base,
                                                 const kernels::KernelTable& table) {
  const Result<StoredAdapter> stored = read_adapter(path, {model.shape(), base});
  EXPECT_TRUE(stored) << (stored ? "" : stored.error().message);
  if (!stored) return nullptr;
  const auto built = build_adapter(*stored, model.shape(), *model.first()->weights, table);
  EXPECT_TRUE(built) << (built ? "" : built.error().message);
  return built ? *built : nullptr;
}

inline void write_adapter(const std::string& path, const std::string& config, const Tensors& tensors) {
  write_file(path + "/adapter_config.json", config);
  write_file(path + "/adapter_model.safetensors", tensors.file());
}

// What reading it says; nothing: it is taken. `base`: the folder of the model's, or none.
inline std::string fault_of(const std::string& path, LanguageModel& model, const std::string& base) {
  const Result<StoredAdapter> stored = read_adapter(path, {model.shape(), base});
  if (!stored) return stored.error().message;
  const auto built = build_adapter(*stored, model.shape(), *model.first()->weights, kernels::best_kernel_table());
  return built ? "" : built.error().message;
}

inline std::vector<std::string> adapted_families() {
  std::vector<std::string> names = folder_models();
  std::erase_if(names, [](const std::string& name) { return name == "gpt-oss-mxfp4" || name == "gemma3-wrapped"; });
  return names;
}

}  // namespace braid::model::test::adapting
