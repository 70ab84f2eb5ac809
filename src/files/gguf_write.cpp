#include "files/gguf_write.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <limits>
#include <system_error>
#include <type_traits>

namespace braid::files {
namespace {

constexpr std::uint64_t kTensorAlignment = 32;

// GGUF's numbers of types.
enum class OutputType : std::uint32_t { kU16 = 2, kU32 = 4, kI32 = 5, kF32 = 6, kBool = 7, kString = 8, kArray = 9, kU64 = 10, kI64 = 11 };

class HeadBuffer {
 public:
  template <class T>
  void put(T value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void put(OutputType type) { put(static_cast<std::uint32_t>(type)); }
  void text(const std::string& text) {
    put(static_cast<std::uint64_t>(text.size()));
    const auto bytes = std::as_bytes(std::span(text));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }

  // A value with its type.
  void value(const GgufValue& value) {
    std::visit([this](const auto& item) { this->whole(item); }, value);
  }
  void value(std::uint16_t value) {
    put(OutputType::kU16);
    put(value);
  }
  void value(std::span<const std::byte> stored) { bytes_.insert(bytes_.end(), stored.begin(), stored.end()); }

  std::size_t size() const { return bytes_.size(); }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  template <class T>
  void whole(const T& item) {
    if constexpr (std::is_same_v<T, GgufArray>) {
      std::visit([this](const auto& items) { this->array(items); }, item.items);
    } else {
      put(type_of(item));
      element(item, type_of(item));
    }
  }
  template <class Items>
  void array(const Items& items) {
    using Item = typename Items::value_type;
    OutputType type = type_of(Item{});
    for (std::size_t i = 0; i < items.size(); ++i)
      if (const OutputType own = type_of(static_cast<Item>(items[i])); own == OutputType::kU64 || own == OutputType::kI64) type = own;
    put(OutputType::kArray);
    put(type);
    put(static_cast<std::uint64_t>(items.size()));
    for (std::size_t i = 0; i < items.size(); ++i) element(static_cast<Item>(items[i]), type);
  }

  template <class T>
  static OutputType type_of(const T& item) {
    if constexpr (std::is_same_v<T, std::string>) return OutputType::kString;
    if constexpr (std::is_same_v<T, bool>) return OutputType::kBool;
    if constexpr (std::is_same_v<T, double>) return OutputType::kF32;
    if constexpr (std::is_same_v<T, std::uint64_t>)
      return item > std::numeric_limits<std::uint32_t>::max() ? OutputType::kU64 : OutputType::kU32;
    if constexpr (std::is_same_v<T, std::int64_t>)
      return item > std::numeric_limits<std::int32_t>::max() || item < std::numeric_limits<std::int32_t>::min() ? OutputType::kI64
                                                                                                                : OutputType::kI32;
    return OutputType::kString;
  }

  template <class T>
  void element(const T& item, OutputType type) {
    if constexpr (std::is_same_v<T, std::string>) {
      text(item);
    } else if constexpr (std::is_same_v<T, bool>) {
      put(static_cast<std::uint8_t>(item));
    } else if constexpr (std::is_same_v<T, double>) {
      put(static_cast<float>(item));
    } else if (type == OutputType::kU32) {
      put(static_cast<std::uint32_t>(item));
    } else if (type == OutputType::kI32) {
      put(static_cast<std::int32_t>(item));
    } else {
      put(item);
    }
  }

  std::vector<std::byte> bytes_;
};

std::uint64_t padding(std::uint64_t size) { return (kTensorAlignment - size % kTensorAlignment) % kTensorAlignment; }

}  // namespace

std::vector<GgufEntry> entries_of(const GgufFile& file) {
  std::vector<GgufEntry> entries;
  for (std::size_t i = 0; i < file.metadata().size(); ++i) {
    const auto& [key, value] = file.metadata()[i];
    if (key == "general.alignment") continue;
    if (file.stored_values().empty()) {
      entries.push_back({key, value});
    } else {
      entries.push_back({key, file.stored_values()[i]});
    }
  }
  return entries;
}

Result<GgufOutput> GgufOutput::create(const std::string& path, const std::vector<GgufEntry>& metadata,
                                      const std::vector<GgufTensorHead>& tensors) {
  HeadBuffer head;
  for (const char c : {'G', 'G', 'U', 'F'}) head.put(c);
  head.put(std::uint32_t{3});
  head.put(static_cast<std::uint64_t>(tensors.size()));
  head.put(static_cast<std::uint64_t>(metadata.size()));
  for (const GgufEntry& entry : metadata) {
    head.text(entry.key);
    std::visit([&](const auto& value) { head.value(value); }, entry.value);
  }
  std::uint64_t offset = 0;
  for (const GgufTensorHead& tensor : tensors) {
    head.text(tensor.name);
    head.put(static_cast<std::uint32_t>(tensor.shape.size()));
    for (const std::int64_t extent : tensor.shape) head.put(static_cast<std::uint64_t>(extent));
    head.put(tensor.type);
    head.put(offset);
    offset += tensor.bytes + padding(tensor.bytes);
  }
  for (std::uint64_t i = padding(head.size()); i > 0; --i) head.put(std::byte{0});
  GgufOutput out;
  out.path_ = path;
  out.file_.open(path, std::ios::binary | std::ios::trunc);
  if (!out.file_) return Error{ErrorCode::kIo, fmt::format("{}: cannot be written: {}", path, std::strerror(errno)), {}};
  out.append(head.bytes());
  out.written_ = 0;
  return out;
}

void GgufOutput::append(std::span<const std::byte> bytes) {
  file_.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  written_ += bytes.size();
}

void GgufOutput::end_tensor() {
  for (std::uint64_t i = padding(written_); i > 0; --i) file_.put('\0');
  written_ = 0;
}

Result<void> GgufOutput::finish() {
  file_.close();
  if (file_) return {};
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
  return Error{ErrorCode::kIo, fmt::format("{}: not all could be written: {}", path_, std::strerror(errno)), {}};
}

}  // namespace braid::files
