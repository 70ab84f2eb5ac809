#include "model/adapters/read_adapter.h"

#include <filesystem>
#include <fmt/format.h>
#include <system_error>
#include <utility>

namespace braid::model {
namespace {

constexpr std::size_t kMostConfigBytes = std::size_t{4} << 20U;

}  // namespace

Result<PeftFolder> read_peft_folder(const std::string& path) {
  const std::string config_path = path + "/adapter_config.json";
  const auto text = files::copy_file(config_path);
  if (!text) return text.error();
  const auto bytes = (*text)->bytes();
  if (bytes.size() > kMostConfigBytes)
    return Error{
        ErrorCode::kBadFile, fmt::format("{}: has {} bytes, expected at most {}", config_path, bytes.size(), kMostConfigBytes), {}};
  auto config = PeftConfig::parse(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), config_path);
  if (!config) return config.error();
  if (std::error_code fault;
      !std::filesystem::exists(path + "/adapter_model.safetensors", fault) && std::filesystem::exists(path + "/adapter_model.bin", fault))
    return Error{
        ErrorCode::kUnsupported, path + ": its tensors are a PyTorch checkpoint (adapter_model.bin): save the adapter as safetensors", {}};
  auto tensors = files::copy_file(path + "/adapter_model.safetensors");
  if (!tensors) return tensors.error();
  return PeftFolder{std::make_shared<const PeftConfig>(std::move(*config)), std::move(*tensors)};
}

Result<StoredAdapter> read_adapter(const std::string& path, const AdaptedBase& base) {
  if (files::is_folder(path)) {
    Result<PeftFolder> folder = read_peft_folder(path);
    if (!folder) return folder.error();
    return read_peft_tensors(std::move(folder->config), std::move(folder->tensors), base);
  }
  auto source = files::copy_file(path);
  if (!source) return source.error();
  return read_gguf_adapter(std::move(*source), base.shape.architecture, base.shape.input.name);
}

}  // namespace braid::model
