#include "files/safetensors.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <iterator>
#include <new>
#include <optional>
#include <simdjson.h>
#include <utility>

namespace braid::files {

namespace {

constexpr std::uint64_t kMostHeaderBytes = 100'000'000;  // as the reference implementation
constexpr std::uint64_t kMostValues = std::uint64_t{1} << 48U;

Error bad(const std::string& message) { return {ErrorCode::kBadFile, "safetensors: " + message, {}}; }

// 0: not known.
std::uint64_t value_bytes(std::string_view dtype) {
  struct Type {
    std::string_view name;
    std::uint64_t bytes;
  };
  constexpr Type kDtypes[] = {{"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"F8_E8M0", 1}, {"I64", 8},
                              {"U64", 8}, {"I32", 4}, {"U32", 4}, {"I16", 2},  {"U16", 2},     {"I8", 1},      {"U8", 1},      {"BOOL", 1}};
  const auto* found = std::ranges::find(kDtypes, dtype, &Type::name);
  return found == std::end(kDtypes) ? 0 : found->bytes;
}

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

struct Offsets {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// The bytes that a tensor of this type and shape takes; nullopt for nonsense.
std::optional<std::uint64_t> size_of(const SafeTensor& tensor) {
  std::uint64_t values = 1;
  for (const std::int64_t extent : tensor.shape) {
    if (extent < 0 || (extent > 0 && values > kMostValues / static_cast<std::uint64_t>(extent))) return std::nullopt;
    values *= static_cast<std::uint64_t>(extent);
  }
  return values * value_bytes(tensor.dtype);
}

Result<std::pair<SafeTensor, Offsets>> read_tensor(const std::string& name, const simdjson::dom::element& entry) {
  SafeTensor tensor;
  Offsets offsets;
  std::string_view dtype;
  simdjson::dom::array shape, range;
  if (entry["dtype"].get(dtype) != simdjson::SUCCESS || entry["shape"].get(shape) != simdjson::SUCCESS ||
      entry["data_offsets"].get(range) != simdjson::SUCCESS || range.size() != 2 || range.at(0).get(offsets.begin) != simdjson::SUCCESS ||
      range.at(1).get(offsets.end) != simdjson::SUCCESS)
    return bad(fmt::format("the tensor '{}' lacks dtype, shape or data_offsets", name));
  tensor.dtype = dtype;
  if (value_bytes(dtype) == 0) return bad(fmt::format("the tensor '{}' has the type '{}', which is not known", name, dtype));
  for (const simdjson::dom::element extent : shape)
    if (extent.get(tensor.shape.emplace_back()) != simdjson::SUCCESS)
      return bad(fmt::format("the shape of '{}' is no list of numbers", name));
  const auto size = size_of(tensor);
  if (!size || offsets.end < offsets.begin || offsets.end - offsets.begin != *size)
    return bad(fmt::format("the tensor '{}' has other bytes than its shape takes", name));
  return std::pair(std::move(tensor), offsets);
}

Result<void> read_metadata(const simdjson::dom::element& entry, SafeTensors& contents) {
  simdjson::dom::object object;
  if (entry.get(object) != simdjson::SUCCESS) return bad("__metadata__ is no object");
  for (const auto& [key, value] : object) {
    std::string_view text;
    if (value.get(text) != simdjson::SUCCESS) return bad("__metadata__ holds something other than texts");
    contents.metadata.emplace(key, text);
  }
  return {};
}

}  // namespace

std::vector<std::byte> write_safetensors(const SafeTensors& contents) {
  std::string header = "{\"__metadata__\":{";
  for (const auto& [key, value] : contents.metadata) {
    if (header.back() != '{') header += ',';
    header += json_text(key) + ":" + json_text(value);
  }
  header += '}';
  std::uint64_t offset = 0;
  for (const auto& [name, tensor] : contents.tensors) {
    fmt::format_to(std::back_inserter(header), ",{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}", json_text(name),
                   tensor.dtype, fmt::join(tensor.shape, ","), offset, offset + tensor.bytes.size());
    offset += tensor.bytes.size();
  }
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const std::uint64_t header_bytes = header.size();
  std::vector<std::byte> file;
  file.reserve(sizeof header_bytes + header.size() + offset);
  const auto append = [&](std::span<const std::byte> bytes) { file.insert(file.end(), bytes.begin(), bytes.end()); };
  append(std::as_bytes(std::span(&header_bytes, 1)));
  append(std::as_bytes(std::span(header)));
  for (const auto& [name, tensor] : contents.tensors) append(tensor.bytes);
  return file;
}

Result<SafeTensors> parse_safetensors(std::span<const std::byte> bytes) {
  std::uint64_t header_bytes = 0;
  if (bytes.size() < sizeof header_bytes) return bad("the file is too short for a header");
  std::memcpy(&header_bytes, bytes.data(), sizeof header_bytes);
  const auto rest = bytes.subspan(sizeof header_bytes);
  if (header_bytes > kMostHeaderBytes || header_bytes > rest.size()) return bad("the header is longer than the file");
  const auto data = rest.subspan(header_bytes);
  simdjson::dom::parser parser;
  simdjson::dom::object header;
  const simdjson::padded_string text(reinterpret_cast<const char*>(rest.data()), header_bytes);
  if (text.data() == nullptr) throw std::bad_alloc();  // which simdjson does not look at
  if (parser.parse(text).get(header) != simdjson::SUCCESS) return bad("the header is no JSON object");
  SafeTensors contents;
  std::map<std::uint64_t, std::uint64_t> ranges;
  for (const auto& [key, value] : header) {
    const std::string name(key);
    if (name == "__metadata__") {
      if (const auto read = read_metadata(value, contents); !read) return read.error();
      continue;
    }
    auto read = read_tensor(name, value);
    if (!read) return read.error();
    auto& [tensor, offsets] = *read;
    if (offsets.end > data.size()) return bad(fmt::format("the tensor '{}' lies beyond the end of the file", name));
    tensor.bytes = data.subspan(offsets.begin, offsets.end - offsets.begin);
    if (!contents.tensors.emplace(name, std::move(tensor)).second) return bad(fmt::format("there are two tensors '{}'", name));
    if (offsets.end > offsets.begin && !ranges.emplace(offsets.begin, offsets.end).second) return bad("two tensors overlap");
  }
  std::uint64_t end = 0;
  for (const auto& [first, last] : ranges)
    if (first != std::exchange(end, last)) return bad("the tensors overlap or leave gaps");
  return end == data.size() ? Result<SafeTensors>(std::move(contents)) : bad("bytes are left behind the last tensor");
}

}  // namespace braid::files
