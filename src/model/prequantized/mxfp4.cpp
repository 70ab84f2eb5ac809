// mxfp4: the experts of gpt-oss, "<stem>.<part>_blocks" [experts, rows, groups, 16] of two E2M1 codes a byte and "_scales" [experts, rows,
// groups] of powers of two.
#include "model/families/gguf_keys.h"
#include "model/prequantized/methods.h"

#include <algorithm>
#include <fmt/format.h>

namespace braid::model {
namespace {

constexpr std::int64_t kGroup = 32;

bool fits(const files::SafeTensor& blocks, const files::SafeTensor& scales) {
  const std::vector<std::int64_t>& shape = blocks.shape;
  return blocks.dtype == "U8" && scales.dtype == "U8" && shape.size() == 4 && shape[3] == kGroup / 2 &&
         std::ranges::equal(scales.shape, std::span(shape).first(3)) &&
         std::ranges::all_of(shape, [](std::int64_t extent) { return extent >= 1 && extent <= static_cast<std::int64_t>(kMaxDimension); });
}

}  // namespace

void read_mxfp4(const files::HfFolder& folder, FolderConfig& /*own*/, FolderConfig& config, Prequantized& out) {
  for (const auto& [name, blocks] : folder.tensors()) {
    constexpr std::string_view kEnding = "_blocks";
    if (!name.ends_with(kEnding)) continue;
    const std::string matrix = name.substr(0, name.size() - kEnding.size());
    const auto scales = folder.tensors().find(matrix + "_scales");
    if (scales == folder.tensors().end() || !fits(blocks, scales->second))
      return config.fail(ErrorCode::kBadFile, fmt::format("the tensor {} has no scales that fit it", name));
    CodedParts parts;
    parts.rows = blocks.shape[0] * blocks.shape[1];
    parts.columns = blocks.shape[2] * kGroup;
    parts.group = kGroup;
    parts.codes = {.bytes = blocks.bytes, .bits = 4, .other_stride = parts.columns / 2};
    parts.numbers = Numbers::kE2M1;
    parts.scales = {.bytes = scales->second.bytes, .type = GroupFloats::Type::kE8M0, .row_stride = blocks.shape[2], .group_stride = 1};
    out.matrices.emplace(matrix, std::make_shared<CodedMatrix>(std::move(parts)));
    out.used.insert(name);
    out.used.insert(scales->first);
  }
}

}  // namespace braid::model
