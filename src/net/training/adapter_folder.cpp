#include "net/training/adapter_folder.h"

#include "braid/tensor.h"
#include "net/predict/tensor_file.h"

#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::net::training {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWeightName = "base_model.model.score.weight";
constexpr std::string_view kBiasName = "base_model.model.score.bias";
constexpr std::string_view kMark = "braid_training.json";  // in folders that jobs have written
constexpr std::string_view kConfig =
    R"({"peft_type": "LORA", "task_type": "SEQ_CLS", "r": 1, "lora_alpha": 1, "target_modules": [], "modules_to_save": ["score"]})";

// Beside it first, so that nobody ever reads half a file.
Result<void> write(const fs::path& path, std::string_view bytes) {
  const fs::path beside = path.string() + ".new";
  std::ofstream file(beside, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  std::error_code failure;
  if (file) fs::rename(beside, path, failure);
  if (!file || failure) return Error{ErrorCode::kIo, fmt::format("{} cannot be written", path.string()), ""};
  return {};
}

}  // namespace

Result<void> write_head(const std::string& folder, const LinearHead& head) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) return Error{ErrorCode::kIo, fmt::format("{} cannot be made: {}", folder, failure.message()), ""};
  Tensor weight = Tensor::zeros(ElementType::kFloat32, {1, static_cast<std::int64_t>(head.weight.size())});
  weight.floats = head.weight;
  Tensor bias = Tensor::zeros(ElementType::kFloat32, {1});
  bias.floats = {head.bias};
  const std::array metadata = {std::pair<std::string, std::string>("format", "pt")};
  const std::array tensors = {predict::NamedTensor{std::string(kWeightName), &weight}, predict::NamedTensor{std::string(kBiasName), &bias}};
  const fs::path path(folder);
  Result<void> written = write(path / kMark, "{}\n");
  if (written) written = write(path / "adapter_config.json", kConfig);
  if (written) written = write(path / "adapter_model.safetensors", predict::write_tensor_file(metadata, tensors));
  return written;
}

Result<LinearHead> read_head(const std::string& folder, std::size_t width) {
  const fs::path path = fs::path(folder) / "adapter_model.safetensors";
  const auto refusal = [&] {
    return invalid_argument(fmt::format("there is no checkpoint of this model's width in {}", folder), "resume");
  };
  std::ifstream file(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  if (!predict::is_tensor_file(bytes)) return refusal();
  auto tensors = predict::read_tensor_file(bytes);
  if (!tensors) return refusal();
  LinearHead head;
  for (auto& [name, tensor] : tensors->tensors) {
    if (name == kWeightName) head.weight = std::move(tensor.floats);
    if (name == kBiasName && tensor.floats.size() == 1) head.bias = tensor.floats.front();
  }
  if (head.weight.size() != width) return refusal();
  return head;
}

bool is_of_others(const std::string& folder) {
  std::error_code unknown;
  return fs::exists(folder, unknown) && !fs::exists(fs::path(folder) / kMark, unknown);
}

}  // namespace braid::net::training
