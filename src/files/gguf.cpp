#include "files/gguf.h"

#include "files/gguf_cursor.h"
#include "files/gguf_part.h"
#include "files/gguf_split.h"

#include <fmt/format.h>
#include <unordered_map>
#include <utility>

namespace braid::files {

struct GgufFile::Contents {
  std::vector<std::shared_ptr<const ByteSource>> sources;
  std::vector<std::string> notes;
  GgufPart joined;                                                            // version and metadata of the first part, tensors of all
  std::unordered_map<std::string_view, std::size_t> key_index, tensor_index;  // into `joined`, which owns the names
};

namespace {

const char* kind_of(const GgufValue& value) {
  struct Names {
    const char* operator()(std::uint64_t) const { return "an unsigned integer"; }
    const char* operator()(std::int64_t) const { return "a signed integer"; }
    const char* operator()(double) const { return "a floating-point number"; }
    const char* operator()(bool) const { return "a boolean"; }
    const char* operator()(const std::string&) const { return "a string"; }
    const char* operator()(const GgufArray&) const { return "an array"; }
  };
  return std::visit(Names(), value);
}

Error wrong_kind(const std::string& file, std::string_view key, const GgufValue& value, std::string_view expected) {
  return {
      ErrorCode::kBadFile, fmt::format("{}: metadata key {}: found {}, expected {}", file, in_quotes(key), kind_of(value), expected), {}};
}

}  // namespace

GgufFile::GgufFile(std::unique_ptr<Contents> contents) : contents_(std::move(contents)) {
  const auto& pairs = contents_->joined.metadata;
  const auto& tensors = contents_->joined.tensors;
  for (std::size_t i = 0; i < pairs.size(); ++i) contents_->key_index.emplace(pairs[i].first, i);
  for (std::size_t i = 0; i < tensors.size(); ++i) contents_->tensor_index.emplace(tensors[i].name, i);
}
GgufFile::GgufFile(GgufFile&&) noexcept = default;
GgufFile& GgufFile::operator=(GgufFile&&) noexcept = default;
GgufFile::~GgufFile() = default;

Result<GgufFile> GgufFile::open(const std::string& path) {
  auto source = map_file(path);
  if (!source) return source.error();
  auto first = parse_gguf(**source);
  if (!first) return first.error();
  auto contents = std::make_unique<Contents>();
  contents->sources.push_back(std::move(*source));
  contents->joined = std::move(*first);
  auto rest = open_other_parts(path, contents->joined);
  if (!rest) return rest.error();
  for (auto& part : *rest) contents->sources.push_back(std::move(part));
  return GgufFile(std::move(contents));
}

Result<GgufFile> GgufFile::from_bytes(std::shared_ptr<const ByteSource> source) {
  auto part = parse_gguf(*source);
  if (!part) return part.error();
  auto split = split_position(source->name(), *part);
  if (!split) return split.error();
  if (split->count > 1) return Error{ErrorCode::kUnsupported, source->name() + ": a split model cannot be opened from memory", {}};
  auto contents = std::make_unique<Contents>();
  contents->sources.push_back(std::move(source));
  contents->joined = std::move(*part);
  return GgufFile(std::move(contents));
}

GgufFile GgufFile::from_contents(GgufContents contents) {
  auto own = std::make_unique<Contents>();
  own->sources = std::move(contents.sources);
  own->notes = std::move(contents.notes);
  own->joined = {.version = 0, .metadata = std::move(contents.metadata), .tensors = std::move(contents.tensors)};
  return GgufFile(std::move(own));
}

GgufContents GgufFile::contents() const {
  return {.sources = contents_->sources,
          .metadata = contents_->joined.metadata,
          .tensors = contents_->joined.tensors,
          .notes = contents_->notes};
}

GgufFile GgufFile::with_metadata(std::vector<std::pair<std::string, GgufValue>> metadata) const {
  return from_contents(
      {.sources = contents_->sources, .metadata = std::move(metadata), .tensors = contents_->joined.tensors, .notes = contents_->notes});
}

const std::string& GgufFile::name() const { return contents_->sources.front()->name(); }
std::uint32_t GgufFile::version() const { return contents_->joined.version; }

std::uint64_t GgufFile::file_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& source : contents_->sources) sum += source->bytes().size();
  return sum;
}

const GgufValue* GgufFile::find(std::string_view key) const {
  const auto found = contents_->key_index.find(key);
  return found == contents_->key_index.end() ? nullptr : &contents_->joined.metadata[found->second].second;
}

Result<std::uint64_t> GgufFile::unsigned_or(std::string_view key, std::uint64_t fallback) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return fallback;
  if (const auto* number = std::get_if<std::uint64_t>(value)) return *number;
  // Some converters write counts as signed numbers.
  if (const auto* number = std::get_if<std::int64_t>(value); number != nullptr && *number >= 0) return static_cast<std::uint64_t>(*number);
  return wrong_kind(name(), key, *value, "an integer that is not negative");
}

Result<double> GgufFile::number_or(std::string_view key, double fallback) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return fallback;
  if (const auto* number = std::get_if<double>(value)) return *number;
  if (const auto* number = std::get_if<std::uint64_t>(value)) return static_cast<double>(*number);
  if (const auto* number = std::get_if<std::int64_t>(value)) return static_cast<double>(*number);
  return wrong_kind(name(), key, *value, "a number");
}

Result<bool> GgufFile::bool_or(std::string_view key, bool fallback) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return fallback;
  if (const auto* flag = std::get_if<bool>(value)) return *flag;
  return wrong_kind(name(), key, *value, "a boolean");
}

Result<std::string> GgufFile::string_or(std::string_view key, std::string fallback) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return fallback;
  if (const auto* text = std::get_if<std::string>(value)) return *text;
  return wrong_kind(name(), key, *value, "a string");
}

const std::vector<std::pair<std::string, GgufValue>>& GgufFile::metadata() const { return contents_->joined.metadata; }
const std::vector<std::string>& GgufFile::notes() const { return contents_->notes; }
const std::vector<std::span<const std::byte>>& GgufFile::stored_values() const { return contents_->joined.stored_values; }
const std::vector<GgufTensor>& GgufFile::tensors() const { return contents_->joined.tensors; }

const GgufTensor* GgufFile::tensor(std::string_view name) const {
  const auto found = contents_->tensor_index.find(name);
  return found == contents_->tensor_index.end() ? nullptr : &contents_->joined.tensors[found->second];
}

void GgufFile::drop_pages(const GgufTensor& tensor) const {
  drop_pages(tensor.bytes);
  if (!tensor.coded) return;
  for (const std::span<const std::byte> other : tensor.coded->other_bytes()) drop_pages(other);
}

void GgufFile::drop_pages(std::span<const std::byte> dropped) const {
  for (const auto& source : contents_->sources) {
    const auto bytes = source->bytes();
    if (dropped.data() < bytes.data() || dropped.data() >= bytes.data() + bytes.size()) continue;
    source->drop_pages(static_cast<std::size_t>(dropped.data() - bytes.data()), dropped.size());
  }
}

}  // namespace braid::files
