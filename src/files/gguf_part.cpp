#include "files/gguf_part.h"

#include "files/gguf_cursor.h"
#include "files/gguf_foreign.h"
#include "files/gguf_tensor_type.h"

#include <bit>
#include <fmt/format.h>
#include <limits>
#include <unordered_set>

namespace braid::files {
namespace {

constexpr std::uint64_t kMaxNameBytes = 65535;  // the specification's limit for keys
constexpr std::uint64_t kMaxStringBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kMaxAlignment = std::uint64_t{1} << 20;
constexpr std::uint64_t kDefaultAlignment = 32;
constexpr std::uint32_t kMaxDimensions = 4;
// Smallest encodings: key length, type, a one-byte value; name length, dimension count, type, offset.
constexpr std::uint64_t kMinPairBytes = 8 + 4 + 1;
constexpr std::uint64_t kMinTensorBytes = 8 + 4 + 4 + 8;

enum class ValueType : std::uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64
};

std::uint64_t min_bytes(ValueType type) {
  switch (type) {
    case ValueType::kUint8:
    case ValueType::kInt8:
    case ValueType::kBool:
      return 1;
    case ValueType::kUint16:
    case ValueType::kInt16:
      return 2;
    case ValueType::kUint32:
    case ValueType::kInt32:
    case ValueType::kFloat32:
      return 4;
    case ValueType::kString:
    case ValueType::kArray:
    case ValueType::kUint64:
    case ValueType::kInt64:
    case ValueType::kFloat64:
      return 8;
  }
  return 8;
}

// A tensor's header as it stands in the file; its bytes can be located only after the last header.
struct TensorHeader {
  GgufTensor tensor;
  std::uint64_t at = 0;      // of the header, for messages
  std::uint64_t offset = 0;  // relative to the data section
};

class PartParser {
 public:
  explicit PartParser(const ByteSource& source) : source_(source), cursor_(source.bytes(), source.name()) {}

  Result<GgufPart> parse() {
    if (auto foreign = recognise_foreign(source_)) return std::move(*foreign);
    read_header();
    for (std::uint64_t i = 0; i < pair_count_ && !cursor_.failed(); ++i) read_pair();
    std::vector<TensorHeader> headers;
    for (std::uint64_t i = 0; i < tensor_count_ && !cursor_.failed(); ++i) headers.push_back(read_tensor_header());
    if (!cursor_.failed()) locate(headers);
    if (cursor_.failed()) return cursor_.take_error();
    return std::move(part_);
  }

 private:
  void read_header() {
    cursor_.read<std::uint32_t>("the magic number");  // recognise_foreign has checked it
    const std::uint64_t at = cursor_.offset();
    part_.version = cursor_.read<std::uint32_t>("the version");
    if (cursor_.failed()) return;
    if (part_.version != 0 && (part_.version & 0xffffU) == 0) {
      cursor_.fail(at, "a big-endian GGUF file", "a little-endian one; convert the model anew without --bigendian",
                   ErrorCode::kUnsupported);
    } else if (part_.version != 2 && part_.version != 3) {
      cursor_.fail(at, fmt::format("GGUF version {}", part_.version),
                   part_.version == 1 ? "version 2 or 3; convert the model anew" : "version 2 or 3", ErrorCode::kUnsupported);
    }
    tensor_count_ = cursor_.read_count("the number of tensors", kMinTensorBytes);
    pair_count_ = cursor_.read_count("the number of metadata entries", kMinPairBytes);
  }

  void read_pair() {
    const std::uint64_t at = cursor_.offset();
    std::string key = cursor_.read_string("a metadata key", kMaxNameBytes);
    if (cursor_.failed()) return;
    if (key.empty()) return cursor_.fail(at, "an empty metadata key", "a name");
    if (!names_.insert(key).second) return cursor_.fail(at, "metadata key " + in_quotes(key) + " again", "each key once");
    const std::uint64_t type_at = cursor_.offset();
    const std::string what = "the value of " + in_quotes(key);
    const ValueType type = read_type(what);
    const std::uint64_t value_at = cursor_.offset();
    GgufValue value = read_value(type, what);
    if (cursor_.failed()) return;
    if (key == "general.alignment") read_alignment(value, type, type_at, value_at);
    part_.metadata.emplace_back(std::move(key), std::move(value));
    part_.stored_values.push_back(source_.bytes().subspan(type_at, cursor_.offset() - type_at));
  }

  ValueType read_type(const std::string& what) {
    const std::uint64_t at = cursor_.offset();
    const auto type = cursor_.read<std::uint32_t>("the type of " + what);
    if (type > static_cast<std::uint32_t>(ValueType::kFloat64))
      cursor_.fail(at, fmt::format("type {} for {}", type, what), "a type from 0 to 12");
    return static_cast<ValueType>(type);
  }

  void read_alignment(const GgufValue& value, ValueType type, std::uint64_t type_at, std::uint64_t value_at) {
    if (type != ValueType::kUint32)
      return cursor_.fail(type_at, fmt::format("type {} for general.alignment", static_cast<std::uint32_t>(type)), "4 (uint32)");
    alignment_ = std::get<std::uint64_t>(value);
    if (!std::has_single_bit(alignment_) || alignment_ < 8 || alignment_ > kMaxAlignment)
      cursor_.fail(value_at, fmt::format("general.alignment = {}", alignment_), fmt::format("a power of two from 8 to {}", kMaxAlignment));
  }

  bool read_bool(std::string_view what) {
    const std::uint64_t at = cursor_.offset();
    const auto value = cursor_.read<std::uint8_t>(what);
    if (value > 1) cursor_.fail(at, fmt::format("{} as {}", value, what), "0 or 1");
    return value == 1;
  }

  std::uint64_t read_unsigned(ValueType type, std::string_view what) {
    if (type == ValueType::kUint8) return cursor_.read<std::uint8_t>(what);
    if (type == ValueType::kUint16) return cursor_.read<std::uint16_t>(what);
    if (type == ValueType::kUint32) return cursor_.read<std::uint32_t>(what);
    return cursor_.read<std::uint64_t>(what);
  }

  std::int64_t read_signed(ValueType type, std::string_view what) {
    if (type == ValueType::kInt8) return cursor_.read<std::int8_t>(what);
    if (type == ValueType::kInt16) return cursor_.read<std::int16_t>(what);
    if (type == ValueType::kInt32) return cursor_.read<std::int32_t>(what);
    return cursor_.read<std::int64_t>(what);
  }

  double read_float(ValueType type, std::string_view what) {
    return type == ValueType::kFloat32 ? static_cast<double>(cursor_.read<float>(what)) : cursor_.read<double>(what);
  }

  GgufValue read_value(ValueType type, const std::string& what) {
    switch (type) {
      case ValueType::kBool:
        return read_bool(what);
      case ValueType::kString:
        return cursor_.read_string(what, kMaxStringBytes);
      case ValueType::kFloat32:
      case ValueType::kFloat64:
        return read_float(type, what);
      case ValueType::kInt8:
      case ValueType::kInt16:
      case ValueType::kInt32:
      case ValueType::kInt64:
        return read_signed(type, what);
      case ValueType::kUint8:
      case ValueType::kUint16:
      case ValueType::kUint32:
      case ValueType::kUint64:
        return read_unsigned(type, what);
      case ValueType::kArray:
        return read_array(what);
    }
    return {};
  }

  GgufArray read_array(const std::string& what) {
    const std::uint64_t at = cursor_.offset();
    const std::string element = "an element of " + what;
    const ValueType type = read_type(element);
    if (!cursor_.failed() && type == ValueType::kArray)
      cursor_.fail(at, "an array of arrays as " + what, "an array of numbers, booleans or strings", ErrorCode::kUnsupported);
    const std::uint64_t count = cursor_.read_count("the length of the array that is " + what, min_bytes(type));
    if (cursor_.failed()) return {};
    const auto fill = [&](auto items, auto read_one) {
      items.reserve(static_cast<std::size_t>(count));
      for (std::uint64_t i = 0; i < count && !cursor_.failed(); ++i) items.push_back(read_one());
      return GgufArray{std::move(items)};
    };
    switch (type) {
      case ValueType::kBool:
        return fill(std::vector<bool>(), [&] { return read_bool(element); });
      case ValueType::kString:
        return fill(std::vector<std::string>(), [&] { return cursor_.read_string(element, kMaxStringBytes); });
      case ValueType::kFloat32:
      case ValueType::kFloat64:
        return fill(std::vector<double>(), [&] { return read_float(type, element); });
      case ValueType::kInt8:
      case ValueType::kInt16:
      case ValueType::kInt32:
      case ValueType::kInt64:
        return fill(std::vector<std::int64_t>(), [&] { return read_signed(type, element); });
      case ValueType::kUint8:
      case ValueType::kUint16:
      case ValueType::kUint32:
      case ValueType::kUint64:
        return fill(std::vector<std::uint64_t>(), [&] { return read_unsigned(type, element); });
      case ValueType::kArray:
        break;  // refused above
    }
    return {};
  }

  TensorHeader read_tensor_header() {
    TensorHeader header;
    header.at = cursor_.offset();
    header.tensor.name = cursor_.read_string("a tensor's name", kMaxNameBytes);
    const std::string name = in_quotes(header.tensor.name);
    const std::uint64_t dimensions_at = cursor_.offset();
    const auto dimensions = cursor_.read<std::uint32_t>("the number of dimensions of tensor " + name);
    if (dimensions > kMaxDimensions) cursor_.fail(dimensions_at, fmt::format("{} dimensions for tensor {}", dimensions, name), "at most 4");
    for (std::uint32_t i = 0; i < dimensions && !cursor_.failed(); ++i) read_dimension(header.tensor, name);
    if (dimensions == 0) header.tensor.shape.push_back(1);  // a scalar
    header.tensor.type = cursor_.read<std::uint32_t>("the type of tensor " + name);
    header.offset = cursor_.read<std::uint64_t>("the offset of tensor " + name);
    return header;
  }

  void read_dimension(GgufTensor& tensor, const std::string& name) {
    const std::uint64_t at = cursor_.offset();
    const auto size = cursor_.read<std::uint64_t>("a dimension of tensor " + name);
    // The largest scalar has 8 bytes: byte counts below stay within 63 bits too.
    std::uint64_t limit = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / 8;
    for (const std::int64_t other : tensor.shape) limit /= static_cast<std::uint64_t>(other);
    if (!cursor_.failed() && (size == 0 || size > limit))
      return cursor_.fail(at, fmt::format("{} as dimension {} of tensor {}", size, tensor.shape.size(), name),
                          fmt::format("1 to {}", limit));
    tensor.shape.push_back(static_cast<std::int64_t>(size));
  }

  // Gives every tensor its bytes.
  void locate(std::vector<TensorHeader>& headers) {
    const std::uint64_t data = (cursor_.offset() + alignment_ - 1) / alignment_ * alignment_;
    names_.clear();
    for (TensorHeader& header : headers) {
      if (!names_.insert(header.tensor.name).second)
        return cursor_.fail(header.at, "tensor " + in_quotes(header.tensor.name) + " again", "each name once");
      locate(header, data);
      if (cursor_.failed()) return;
      part_.tensors.push_back(std::move(header.tensor));
    }
  }

  void locate(TensorHeader& header, std::uint64_t data) {
    const std::string name = in_quotes(header.tensor.name);
    if (header.offset % alignment_ != 0)
      return cursor_.fail(header.at, fmt::format("offset {} for tensor {}", header.offset, name),
                          fmt::format("a multiple of the alignment {}", alignment_));
    const std::uint64_t file_bytes = source_.bytes().size();
    const std::uint64_t available = data < file_bytes ? file_bytes - data : 0;
    const GgufTensorType* type = gguf_tensor_type(header.tensor.type);
    std::uint64_t size = 0;
    if (type != nullptr) {
      const auto columns = static_cast<std::uint64_t>(header.tensor.shape[0]);
      if (columns % type->block_values != 0)
        return cursor_.fail(header.at, fmt::format("tensor {} of type {} with rows of {} values", name, type->name, columns),
                            fmt::format("a multiple of {}", type->block_values));
      size = columns / type->block_values * type->block_bytes;
      for (std::size_t i = 1; i < header.tensor.shape.size(); ++i) size *= static_cast<std::uint64_t>(header.tensor.shape[i]);
    }
    if (header.offset > available || size > available - header.offset)
      return cursor_.fail(header.at,
                          fmt::format("tensor {} of {} bytes at {} in a data section of {} bytes", name, size, header.offset, available),
                          fmt::format("it to end within the file of {} bytes; the download is probably incomplete", file_bytes));
    if (size > 0)
      header.tensor.bytes = source_.bytes().subspan(static_cast<std::size_t>(data + header.offset), static_cast<std::size_t>(size));
  }

  const ByteSource& source_;
  GgufCursor cursor_;
  GgufPart part_;
  std::uint64_t tensor_count_ = 0;
  std::uint64_t pair_count_ = 0;
  std::uint64_t alignment_ = kDefaultAlignment;
  std::unordered_set<std::string> names_;  // seen so far, of metadata first and then of tensors
};

}  // namespace

Result<GgufPart> parse_gguf(const ByteSource& source) { return PartParser(source).parse(); }

}  // namespace braid::files
