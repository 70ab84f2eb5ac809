// A model of random numbers whose weights and adapters get newer ones.
#pragma once

#include "app/serving/model_weights.h"
#include "kernels/select.h"
#include "model/adapter_models.h"
#include "model/tiny_model.h"
#include "support/folder.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace braid::app::updated {

struct UpdatedModel {
  // `those_who_compute`: null: this process.
  explicit UpdatedModel(RunningRequests those, std::shared_ptr<model::PassRunner> those_who_compute = {})
      : passes(std::move(those_who_compute)), running(std::move(those)) {}

  const std::shared_ptr<model::PassRunner> passes;
  const braid::test::Folder folder;
  boost::asio::io_context loop;
  boost::asio::thread_pool workers{1};
  const kernels::KernelTable& table = kernels::best_kernel_table();
  const files::GgufFile file = model::test::TinyModel().file();
  std::unique_ptr<model::LanguageModel> language_model =
      model::LanguageModel::load(file, table, {.max_batch = 2, .end_tokens = {2}, .progress = {}, .passes = passes}).value();
  const RunningRequests running;
  ModelRevisions revisions{workers, *language_model};
  ModelAdapters adapters{workers, revisions, AdapterBase{*language_model, table, "", "loaded"}, running};
  ModelWeights weights{workers,  *language_model, std::make_shared<const model::LoadedTensors>(model::LoadedTensors::of(file)),
                       "loaded", revisions,       adapters,
                       running};
  std::mt19937 random{1};

  // The folder of an adapter of rank 2. With magnitudes it follows from the weights, so that an update makes it anew.
  std::string write_adapter(const std::string& name, bool is_dora) {
    model::test::adapting::Tensors tensors;
    const std::string module = "base_model.model.model.layers.0.self_attn.q_proj.";
    tensors.add(module + "lora_A.weight", random_values({2, 64}, 0.1F));
    tensors.add(module + "lora_B.weight", random_values({64, 2}, 0.1F));
    if (is_dora) tensors.add(module + "lora_magnitude_vector", random_values({64}, 1.0F));
    const std::string path = folder / name;
    std::filesystem::create_directories(path);
    model::test::adapting::write_file(path + "/adapter_config.json",
                                      std::string(R"({"peft_type":"LORA","r":2,"lora_alpha":4,"target_modules":["q_proj"],"use_dora":)") +
                                          (is_dora ? "true}" : "false}"));
    model::test::adapting::write_file(path + "/adapter_model.safetensors", tensors.file());
    return path;
  }

  // Others each time.
  WeightSource newer_weights() { return newer_weights({{"output_norm.weight", {64}}, {"blk.0.attn_q.weight", {64, 64}}}); }
  WeightSource newer_weights(const std::vector<std::pair<std::string, std::vector<std::int64_t>>>& shapes) {
    model::test::adapting::Tensors tensors;
    for (const auto& [name, shape] : shapes) tensors.add(name, random_values(shape, shape.size() == 1 ? 1.0F : 0.1F));
    const std::vector<std::byte> bytes = tensors.file();
    return {.path = {}, .tensors = std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), .partial = true, .checksum = {}};
  }

 private:
  model::test::adapting::Values random_values(std::vector<std::int64_t> shape, float scale) {
    return model::test::adapting::random_values(random, std::move(shape), scale);
  }
};

}  // namespace braid::app::updated
