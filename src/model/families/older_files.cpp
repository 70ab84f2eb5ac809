#include "model/families/older_files.h"

#include "model/families/gguf_keys.h"
#include "model/families/latent_heads.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::model {
namespace {

// Whose attention is to latents; files of the second one never have another form.
constexpr std::array<std::string_view, 2> kLatentArchitectures = {"deepseek2", "minicpm3"};

bool makes_keys_and_values(const files::GgufTensor& tensor) { return tensor.name.ends_with(fmt::format(".{}.weight", kLatentHeads)); }

void set_key(files::GgufContents& contents, std::string_view architecture, std::string_view key, std::int64_t number) {
  std::string name = fmt::format("{}.{}", architecture, key);
  std::erase_if(contents.metadata, [&](const auto& entry) { return entry.first == name; });
  contents.metadata.emplace_back(std::move(name), static_cast<std::uint64_t>(number));
}

// What the keys say of heads as they are once their keys and values are made, in today's words.
Result<LatentHeads> name_latents(const files::GgufFile& file, std::string_view architecture, files::GgufContents& contents) {
  GgufKeys keys(file, architecture);
  const std::int32_t rank = keys.size("attention.kv_lora_rank", std::nullopt, kMaxHeadDim / 2);
  const std::int32_t rotated = keys.size("rope.dimension_count", std::nullopt, kMaxHeadDim);
  const std::int32_t head = keys.size("attention.key_length", std::nullopt, kMaxHeadDim);
  const std::int32_t count = keys.size("attention.head_count", std::nullopt, kMaxHeads);
  const auto usual = static_cast<std::uint64_t>(std::max(1, keys.size("embedding_length", std::nullopt) / count));
  const LatentHeads heads{.count = count, .plain = head - rotated, .value = keys.size("attention.value_length", usual, kMaxHeadDim)};
  if (!keys.error && heads.plain < 1)
    keys.fail(ErrorCode::kBadFile,
              fmt::format("{} is {}, expected more than the {} that rotate", keys.full("attention.key_length"), head, rotated));
  if (keys.error) return *keys.error;
  set_key(contents, architecture, "attention.head_count_kv", 1);
  set_key(contents, architecture, "attention.key_length", rank + rotated);
  set_key(contents, architecture, "attention.value_length", rank);
  set_key(contents, architecture, "attention.key_length_mla", head);
  set_key(contents, architecture, "attention.value_length_mla", heads.value);
  return heads;
}

}  // namespace

Result<files::GgufFile> in_todays_form(files::GgufFile file) {
  const Result<std::string> architecture = file.string_or("general.architecture", "");
  const bool is_latent = architecture && std::ranges::find(kLatentArchitectures, *architecture) != kLatentArchitectures.end();
  if (!is_latent || std::ranges::none_of(file.tensors(), makes_keys_and_values)) return file;
  files::GgufContents contents = file.contents();
  const std::vector<files::GgufTensor> tensors = std::exchange(contents.tensors, {});
  if (file.find(fmt::format("{}.attention.key_length_mla", *architecture)) != nullptr) {
    std::ranges::remove_copy_if(tensors, std::back_inserter(contents.tensors), makes_keys_and_values);
    return files::GgufFile::from_contents(std::move(contents));
  }
  const Result<LatentHeads> heads = name_latents(file, *architecture, contents);
  if (!heads) return heads.error();
  for (const files::GgufTensor& tensor : tensors) {
    if (!makes_keys_and_values(tensor)) {
      contents.tensors.push_back(tensor);
      continue;
    }
    Result<PartedHeads> parted = part_heads(tensor, *heads);
    if (!parted) return Error{parted.error().code, fmt::format("{}: {}", file.name(), parted.error().message), {}};
    contents.sources.push_back(files::owned_bytes(std::move(parted->key_bytes), parted->keys.name));
    parted->keys.bytes = contents.sources.back()->bytes();
    contents.tensors.push_back(std::move(parted->keys));
    contents.tensors.push_back(std::move(parted->values));
  }
  return files::GgufFile::from_contents(std::move(contents));
}

}  // namespace braid::model
