// What a file with an image tower says of its processor, as the folder that it was made of would say it.
#include "images/reader.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace braid::images {
namespace {

constexpr std::string_view kVision = "clip.vision.";

class Metadata {
 public:
  explicit Metadata(const files::GgufFile& file) : file_(file) {}

  std::int64_t number(std::string_view name, std::int64_t fallback) const {
    const auto value = file_.unsigned_or(fmt::format("{}{}", kVision, name), static_cast<std::uint64_t>(fallback));
    return value ? static_cast<std::int64_t>(*value) : fallback;
  }

  std::string projector() const {
    for (const char* key : {"clip.vision.projector_type", "clip.projector_type"}) {
      const Result<std::string> type = file_.string_or(key, "");
      if (type && !type->empty()) return *type;
    }
    return {};
  }

  std::string text(std::string_view name) const {
    const Result<std::string> value = file_.string_or(fmt::format("{}{}", kVision, name), "");
    return value ? *value : std::string();
  }

  // As JSON; empty where it has none.
  std::string list(std::string_view name) const {
    const files::GgufValue* value = file_.find(fmt::format("{}{}", kVision, name));
    const auto* array = value != nullptr ? std::get_if<files::GgufArray>(value) : nullptr;
    if (array == nullptr) return {};
    return std::visit([](const auto& items) { return join(items); }, array->items);
  }

 private:
  template <class Item>
  static std::string join(const std::vector<Item>& items) {
    std::string out;
    if constexpr (!std::is_same_v<Item, std::string>)
      for (const auto item : items) out += fmt::format("{}{}", out.empty() ? "" : ",", item);
    return out;
  }

  const files::GgufFile& file_;
};

// Members of preprocessor_config.json that all kinds have.
std::string common(const Metadata& file, std::string_view name) {
  std::string out = fmt::format(R"("image_processor_type":"{}","patch_size":{})", name, file.number("patch_size", 14));
  for (const auto& [own, theirs] : {std::pair{"image_mean", "image_mean"}, std::pair{"image_std", "image_std"}}) {
    const std::string list = file.list(own);
    if (!list.empty()) out += fmt::format(R"(,"{}":[{}])", theirs, list);
  }
  return out;
}

std::string square(std::string_view name, std::int64_t side) {
  return fmt::format(R"(,"{}":{{"height":{},"width":{}}})", name, side, side);
}

// Pairs of width and height, as llama.cpp has them.
std::string pinpoints(const std::string& list) {
  std::string out;
  std::vector<std::string> numbers(1);
  for (const char c : list) {
    if (c == ',') {
      numbers.emplace_back();
    } else {
      numbers.back() += c;
    }
  }
  for (std::size_t i = 0; i + 1 < numbers.size(); i += 2)
    out += fmt::format("{}[{},{}]", out.empty() ? "" : ",", numbers[i + 1], numbers[i]);
  return out;
}

struct Texts {
  std::string pictures;  // without braces
  std::string words = {};
};

Texts llava(const Metadata& file, std::int64_t size) {
  const std::string grid = file.list("image_grid_pinpoints");
  const std::string ratio = file.text("image_aspect_ratio");
  if (ratio.starts_with("anyres_max_") && std::ranges::all_of(ratio.substr(11), [](unsigned char c) { return std::isdigit(c) != 0; }))
    return {common(file, "LlavaOnevisionImageProcessor") + square("size", size) +
                (grid.empty() ? "" : fmt::format(R"(,"image_grid_pinpoints":[{}])", pinpoints(grid))),
            fmt::format(R"("vision_aspect_ratio":"{}")", ratio)};
  Texts out{common(file, grid.empty() ? "CLIPImageProcessor" : "LlavaNextImageProcessor")};
  out.pictures += fmt::format(R"(,"size":{{"shortest_edge":{}}})", size) + square("crop_size", size);
  if (!grid.empty()) out.pictures += fmt::format(R"(,"image_grid_pinpoints":[{}])", pinpoints(grid));
  return out;
}

Texts kimi(const Metadata& file, std::int64_t patch, std::int64_t merge) {
  Texts out{common(file, "Kimi_K25ImageProcessor") + fmt::format(R"(,"merge_size":{})", merge)};
  const std::int64_t most = file.number("image_max_pixels", 0) / std::max<std::int64_t>(1, patch * patch);
  if (most > 0) out.pictures += fmt::format(R"(,"max_patches":{})", most);
  return out;
}

Texts of_projector(const Metadata& file, std::string_view type) {
  const std::int64_t size = file.number("image_size", 336);
  const std::int64_t patch = file.number("patch_size", 14);
  const std::int64_t scale = file.number("projector.scale_factor", type == "idefics3" || type == "gemma3" ? 4 : 2);
  const std::int64_t side = scale > 0 && patch > 0 ? size / patch / scale : 1;
  const std::string vectors = std::to_string(side * side);
  if (type == "mlp" || type == "mlp_norm") return llava(file, size);
  if (type == "gemma3") return {common(file, "Gemma3ImageProcessor") + square("size", size), R"("image_seq_length":)" + vectors};
  if (type == "idefics3")
    return {common(file, "Idefics3ImageProcessor") + fmt::format(R"(,"size":{{"longest_edge":{}}},"max_image_size":{{"longest_edge":{}}})",
                                                                 file.number("preproc_image_size", 4 * size), size),
            R"("image_seq_len":)" + vectors};
  if (type == "internvl")
    return {
        common(file, "GotOcr2ImageProcessor") + square("size", size) +
            fmt::format(R"(,"min_patches":{},"max_patches":{})", file.number("preproc_min_tiles", 1), file.number("preproc_max_tiles", 12)),
        R"("image_seq_length":)" + vectors};
  if (type == "pixtral")
    return {common(file, "PixtralImageProcessor") + fmt::format(R"(,"size":{{"longest_edge":{}}})", size),
            fmt::format(R"("spatial_merge_size":{})", file.number("spatial_merge_size", 1))};
  if (type == "qwen2vl_merger" || type == "qwen2.5vl_merger" || type == "qwen3vl_merger")
    return {common(file, "Qwen2VLImageProcessor") + fmt::format(R"(,"merge_size":{})", file.number("spatial_merge_size", 2))};
  if (type == "lfm2")
    return {common(file, "Lfm2VlImageProcessor") + fmt::format(R"(,"encoder_patch_size":{},"downsample_factor":{})", patch, scale)};
  if (type == "gemma4v")
    return {common(file, "Gemma4ImageProcessor") + fmt::format(R"(,"pooling_kernel_size":{})", file.number("projector.scale_factor", 3))};
  if (type == "kimik25") return kimi(file, patch, scale);
  if (type == "resampler") return {common(file, "MiniCPMVImageProcessor") + fmt::format(R"(,"scale_resolution":{})", size)};
  if (type == "minicpmv4_6")
    return {common(file, "MiniCPMV4_6ImageProcessor") + fmt::format(R"(,"scale_resolution":{},"downsample_mode":"{}")", size,
                                                                    file.number("projector.scale_factor", 4) == 2 ? "4x" : "16x")};
  return {};
}

}  // namespace

Result<Settings> mmproj_settings(const files::GgufFile& file) {
  const Metadata metadata(file);
  const std::string type = metadata.projector();
  const Texts texts = of_projector(metadata, type);
  if (texts.pictures.empty())
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{}: image towers with a projector of the type '{}' are not supported", file.name(), type), ""};
  return Settings::read("{" + texts.pictures + "}", "{" + texts.words + "}", "");
}

}  // namespace braid::images
