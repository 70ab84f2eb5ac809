#include "files/gguf_parts.h"

#include "files/gguf_write.h"

#include <fmt/format.h>
#include <span>

namespace braid::files {
namespace {

constexpr std::size_t kMostParts = 65535;  // split.no has 16 bits

std::vector<GgufEntry> without_split_keys(const GgufFile& file) {
  std::vector<GgufEntry> entries = entries_of(file);
  std::erase_if(entries, [](const GgufEntry& entry) { return entry.key.starts_with("split."); });
  return entries;
}

// Copies tensors, and tells how far it has come.
class TensorCopy {
 public:
  TensorCopy(const GgufFile& file, const Progress& progress) : file_(file), progress_(progress) {
    for (const GgufTensor& tensor : file.tensors()) total_ += tensor.bytes.size();
  }

  Result<void> write(const std::string& path, const std::vector<GgufEntry>& entries, std::span<const GgufTensor> tensors) {
    std::vector<GgufTensorHead> heads;
    for (const GgufTensor& tensor : tensors) heads.push_back({tensor.name, tensor.type, tensor.shape, tensor.bytes.size()});
    auto out = GgufOutput::create(path, entries, heads);
    if (!out) return out.error();
    for (const GgufTensor& tensor : tensors) {
      out->append(tensor.bytes);
      out->end_tensor();
      file_.drop_pages(tensor);
      done_ += tensor.bytes.size();
      if (progress_) progress_("tensors", done_, total_);
    }
    return out->finish();
  }

 private:
  const GgufFile& file_;
  const Progress& progress_;
  std::uint64_t done_ = 0;
  std::uint64_t total_ = 0;
};

// At least one, the last of which may be small.
std::vector<std::span<const GgufTensor>> cut(std::span<const GgufTensor> tensors, const PartBounds& bounds) {
  std::vector<std::span<const GgufTensor>> parts;
  for (std::size_t begin = 0; begin < tensors.size();) {
    std::size_t end = begin;
    std::uint64_t bytes = 0;
    while (end < tensors.size() && (end == begin || (end - begin < bounds.tensors && bytes + tensors[end].bytes.size() <= bounds.bytes)))
      bytes += tensors[end++].bytes.size();
    parts.push_back(tensors.subspan(begin, end - begin));
    begin = end;
  }
  if (parts.empty()) parts.emplace_back();
  return parts;
}

}  // namespace

std::vector<std::string> part_paths(const GgufFile& file, const std::string& stem, const PartBounds& bounds) {
  const std::size_t count = cut(file.tensors(), bounds).size();
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < count; ++i) paths.push_back(fmt::format("{}-{:05}-of-{:05}.gguf", stem, i + 1, count));
  return paths;
}

Result<std::vector<std::string>> split_model(const GgufFile& file, const std::string& stem, const PartBounds& bounds,
                                             const Progress& progress) {
  const auto parts = cut(file.tensors(), bounds);
  if (parts.size() > kMostParts)
    return invalid_argument(
        fmt::format("there would be {} parts, but there may be {} at most: let each hold more", parts.size(), kMostParts));
  TensorCopy copy(file, progress);
  std::vector<std::string> paths = part_paths(file, stem, bounds);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::vector<GgufEntry> entries = i == 0 ? without_split_keys(file) : std::vector<GgufEntry>();
    entries.push_back({"split.no", static_cast<std::uint16_t>(i)});
    entries.push_back({"split.count", static_cast<std::uint16_t>(parts.size())});
    entries.push_back({"split.tensors.count", GgufValue(static_cast<std::int64_t>(file.tensors().size()))});
    if (const auto written = copy.write(paths[i], entries, parts[i]); !written) return written.error();
  }
  return paths;
}

Result<void> merge_model(const GgufFile& file, const std::string& path, const Progress& progress) {
  return TensorCopy(file, progress).write(path, without_split_keys(file), file.tensors());
}

}  // namespace braid::files
