#include "files/gguf_split.h"

#include "files/gguf_cursor.h"

#include <fmt/format.h>
#include <optional>
#include <unordered_set>

namespace braid::files {
namespace {

Error bad(const std::string& name, const std::string& sentence) { return {ErrorCode::kBadFile, name + ": " + sentence, {}}; }

// Integers only; null when absent.
Result<std::optional<std::uint64_t>> number(const std::string& name, const GgufPart& part, std::string_view key) {
  for (const auto& [pair_key, value] : part.metadata) {
    if (pair_key != key) continue;
    if (const auto* found = std::get_if<std::uint64_t>(&value)) return std::optional(*found);
    if (const auto* found = std::get_if<std::int64_t>(&value); found != nullptr && *found >= 0)
      return std::optional(static_cast<std::uint64_t>(*found));
    return bad(name, fmt::format("metadata key '{}' is not a count", key));
  }
  return std::optional<std::uint64_t>();
}

std::string suffix(std::uint64_t number, std::uint64_t count) { return fmt::format("-{:05}-of-{:05}.gguf", number + 1, count); }

}  // namespace

Result<SplitPosition> split_position(const std::string& name, const GgufPart& part) {
  const auto count = number(name, part, "split.count");
  const auto index = number(name, part, "split.no");
  const auto tensors = number(name, part, "split.tensors.count");
  for (const auto* value : {&count, &index, &tensors})
    if (!*value) return value->error();
  SplitPosition position;
  position.count = count->value_or(1);
  if (position.count <= 1) return SplitPosition{0, 1, part.tensors.size()};
  if (!*index || !*tensors) return bad(name, "found 'split.count' without 'split.no' and 'split.tensors.count', expected all three");
  position.number = **index;
  position.tensors = **tensors;
  if (position.number >= position.count)
    return bad(name, fmt::format("found split.no = {}, expected less than split.count = {}", position.number, position.count));
  return position;
}

Result<std::vector<std::shared_ptr<const ByteSource>>> open_other_parts(const std::string& path, GgufPart& first) {
  std::vector<std::shared_ptr<const ByteSource>> sources;
  const auto position = split_position(path, first);
  if (!position) return position.error();
  if (position->count == 1) return sources;
  const std::string own_suffix = suffix(position->number, position->count);
  if (!path.ends_with(own_suffix))
    return bad(path, fmt::format("this is part {} of {} of a split model: its name must end with '{}' for the other parts to be found",
                                 position->number + 1, position->count, own_suffix));
  const std::string stem = path.substr(0, path.size() - own_suffix.size());
  if (position->number != 0)
    return bad(path, fmt::format("this is part {} of {} of a split model: open the first part, '{}'", position->number + 1, position->count,
                                 stem + suffix(0, position->count)));
  std::unordered_set<std::string> names;
  for (const GgufTensor& tensor : first.tensors) names.insert(tensor.name);
  for (std::uint64_t i = 1; i < position->count; ++i) {
    const std::string part_path = stem + suffix(i, position->count);
    auto source = map_file(part_path);
    if (!source)
      return Error{source.error().code, fmt::format("{} (part {} of {} of the model)", source.error().message, i + 1, position->count), {}};
    auto part = parse_gguf(**source);
    if (!part) return part.error();
    const auto own = split_position(part_path, *part);
    if (!own) return own.error();
    if (own->number != i || own->count != position->count)
      return bad(part_path,
                 fmt::format("found part {} of {}, expected part {} of {}", own->number + 1, own->count, i + 1, position->count));
    for (GgufTensor& tensor : part->tensors) {
      if (!names.insert(tensor.name).second)
        return bad(part_path, fmt::format("tensor {} is in an earlier part too, expected each name once", in_quotes(tensor.name)));
      first.tensors.push_back(std::move(tensor));
    }
    sources.push_back(std::move(*source));
  }
  if (first.tensors.size() != position->tensors)
    return bad(path, fmt::format("found {} tensors in all {} parts, expected split.tensors.count = {}", first.tensors.size(),
                                 position->count, position->tensors));
  return sources;
}

}  // namespace braid::files
