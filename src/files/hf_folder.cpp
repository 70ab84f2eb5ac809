#include "files/hf_folder.h"

#include "files/python_json.h"

#include <filesystem>
#include <fmt/format.h>
#include <set>
#include <simdjson.h>
#include <system_error>
#include <utility>

namespace braid::files {
namespace {

constexpr std::uintmax_t kMaxTextBytes = std::uintmax_t{256} << 20U;  // of a tokenizer.json; the largest known has 33 MB

Error damaged(const std::string& path, const std::string& what) { return {ErrorCode::kBadFile, fmt::format("{}: {}", path, what), {}}; }

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

Result<std::string> read_text(const std::string& path) {
  auto source = map_file(path);
  if (!source) return source.error();
  const auto bytes = (*source)->bytes();
  if (bytes.size() > kMaxTextBytes) return damaged(path, fmt::format("has {} bytes, expected at most {}", bytes.size(), kMaxTextBytes));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return path.ends_with(".json") ? plain_json(text) : std::string(text);
}

// What a folder without safetensors holds instead.
Error without_weights(const std::string& path) {
  if (exists(path + "/pytorch_model.bin") || exists(path + "/pytorch_model.bin.index.json"))
    return {ErrorCode::kUnsupported,
            path + ": its weights are PyTorch checkpoints (.bin): save the model as safetensors, or download a version that has them",
            {}};
  if (exists(path + "/adapter_config.json"))
    return {ErrorCode::kUnsupported, path + ": holds an adapter, not a model: name the folder of its base model", {}};
  return damaged(path, "found neither model.safetensors nor model.safetensors.index.json; the download is probably incomplete");
}

// A file of the folder itself.
bool is_plain_name(std::string_view name) { return !name.empty() && name.find('/') == std::string_view::npos && name != ".."; }

}  // namespace

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

Result<HfFolder> HfFolder::open(const std::string& path) {
  HfFolder folder;
  folder.path_ = path;
  while (folder.path_.size() > 1 && folder.path_.back() == '/') folder.path_.pop_back();
  const std::string config = folder.path_ + "/config.json";
  if (!exists(config))
    return damaged(folder.path_,
                   "is a folder without config.json: expected a GGUF file, or a model's folder as the Hugging Face hub has it");
  auto text = read_text(config);
  if (!text) return text.error();
  folder.config_ = std::move(*text);
  const std::string single = folder.path_ + "/model.safetensors";
  const std::string index = single + ".index.json";
  if (!exists(single) && !exists(index)) return without_weights(folder.path_);
  const Result<void> added = exists(single) ? folder.add_weights("model.safetensors") : folder.add_shards(index);
  if (!added) return added.error();
  return folder;
}

HfFolder HfFolder::of_config(std::string path, std::string config) {
  HfFolder folder;
  folder.path_ = std::move(path);
  folder.config_ = std::move(config);
  return folder;
}

HfFolder HfFolder::of_tensors(std::string path, std::string config, std::map<std::string, SafeTensor> tensors,
                              std::vector<std::shared_ptr<const ByteSource>> sources) {
  HfFolder folder = of_config(std::move(path), std::move(config));
  folder.tensors_ = std::move(tensors);
  folder.sources_ = std::move(sources);
  return folder;
}

Result<std::optional<std::string>> HfFolder::text(std::string_view name) const {
  const std::string path = fmt::format("{}/{}", path_, name);
  if (!exists(path)) return std::optional<std::string>();
  auto text = read_text(path);
  if (!text) return text.error();
  return std::optional(std::move(*text));
}

Result<void> HfFolder::add_weights(const std::string& file) {
  auto source = map_file(fmt::format("{}/{}", path_, file));
  if (!source) return source.error();
  auto contents = parse_safetensors((*source)->bytes());
  if (!contents) return Error{contents.error().code, fmt::format("{}: {}", (*source)->name(), contents.error().message), {}};
  for (auto& [name, tensor] : contents->tensors)
    if (!tensors_.emplace(name, std::move(tensor)).second)
      return damaged((*source)->name(), fmt::format("the tensor '{}' is in another file too", name));
  sources_.push_back(std::move(*source));
  return {};
}

// Every file that the index names is read, and holds the tensors that it says.
Result<void> HfFolder::add_shards(const std::string& index) {
  auto text = read_text(index);
  if (!text) return text.error();
  simdjson::dom::parser parser;
  simdjson::dom::object map;
  if (parser.parse(*text)["weight_map"].get(map) != simdjson::SUCCESS) return damaged(index, "found no object 'weight_map'");
  std::map<std::string, std::set<std::string>> files;
  for (const auto& [tensor, value] : map) {
    std::string_view file;
    if (value.get(file) != simdjson::SUCCESS || !is_plain_name(file))
      return damaged(index, fmt::format("the file of '{}' is not the name of one in this folder", tensor));
    files[std::string(file)].emplace(tensor);
  }
  if (files.empty()) return damaged(index, "'weight_map' is empty");
  for (const auto& [file, names] : files) {
    if (!exists(fmt::format("{}/{}", path_, file)))
      return damaged(index, fmt::format("names the file '{}', which is missing; the download is probably incomplete", file));
    if (const auto added = add_weights(file); !added) return added.error();
    for (const std::string& name : names)
      if (!tensors_.contains(name)) return damaged(index, fmt::format("'{}' is to be in '{}', where it is not", name, file));
  }
  return {};
}

}  // namespace braid::files
