// Makes small GGUF files for tests, byte by byte.
#pragma once

#include "files/byte_source.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace braid::test {

// Bytes in memory that a test owns. 64-byte aligned, like a mapping.
class OwnedBytes final : public files::ByteSource {
 public:
  OwnedBytes(std::span<const std::byte> bytes, std::string name)
      : storage_((bytes.size() + sizeof(Line) - 1) / sizeof(Line)), size_(bytes.size()), name_(std::move(name)) {
    if (size_ > 0) std::memcpy(storage_.data(), bytes.data(), size_);
  }
  std::span<const std::byte> bytes() const override { return {reinterpret_cast<const std::byte*>(storage_.data()), size_}; }
  const std::string& name() const override { return name_; }
  void drop_pages(std::size_t, std::size_t) const override {}

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> storage_;
  std::size_t size_;
  std::string name_;
};

class GgufWriter {
 public:
  explicit GgufWriter(std::uint32_t version = 3) : version_(version) {}

  GgufWriter& u16(std::string_view key, std::uint16_t value) { return scalar(key, 2, value); }
  GgufWriter& u32(std::string_view key, std::uint32_t value) { return scalar(key, 4, value); }
  GgufWriter& i32(std::string_view key, std::int32_t value) { return scalar(key, 5, value); }
  GgufWriter& f32(std::string_view key, float value) { return scalar(key, 6, value); }
  GgufWriter& boolean(std::string_view key, bool value) { return scalar(key, 7, static_cast<std::uint8_t>(value)); }
  GgufWriter& u64(std::string_view key, std::uint64_t value) { return scalar(key, 10, value); }

  GgufWriter& string(std::string_view key, std::string_view value) {
    begin(key, 8);
    put_string(pairs_, value);
    return *this;
  }
  GgufWriter& strings(std::string_view key, const std::vector<std::string>& values) {
    begin_array(key, 8, values.size());
    for (const std::string& value : values) put_string(pairs_, value);
    return *this;
  }
  GgufWriter& i32s(std::string_view key, const std::vector<std::int32_t>& values) { return array(key, 5, values); }
  GgufWriter& u32s(std::string_view key, const std::vector<std::uint32_t>& values) { return array(key, 4, values); }
  GgufWriter& f32s(std::string_view key, const std::vector<float>& values) { return array(key, 6, values); }
  GgufWriter& booleans(std::string_view key, const std::vector<bool>& values) {
    begin_array(key, 7, values.size());
    for (const bool value : values) put(pairs_, static_cast<std::uint8_t>(value));
    return *this;
  }

  // Any value, well-formed or not: `payload` follows the type as it is.
  GgufWriter& raw(std::string_view key, std::uint32_t type, std::span<const std::byte> payload) {
    begin(key, type);
    pairs_.insert(pairs_.end(), payload.begin(), payload.end());
    return *this;
  }

  // `shape` in ggml order: shape[0] is the contiguous dimension.
  GgufWriter& tensor(std::string_view name, std::uint32_t type, const std::vector<std::int64_t>& shape, std::span<const std::byte> bytes) {
    return tensor_at(name, type, shape, data_.size(), bytes);
  }
  GgufWriter& tensor_f32(std::string_view name, const std::vector<std::int64_t>& shape, std::span<const float> values) {
    return tensor(name, 0, shape, std::as_bytes(values));
  }
  // With an offset of the caller's choice in the header, right or wrong.
  GgufWriter& tensor_at(std::string_view name, std::uint32_t type, const std::vector<std::int64_t>& shape, std::uint64_t offset,
                        std::span<const std::byte> bytes) {
    put_string(headers_, name);
    put(headers_, static_cast<std::uint32_t>(shape.size()));
    for (const std::int64_t size : shape) put(headers_, size);
    put(headers_, type);
    put(headers_, offset);
    ++tensors_;
    data_.insert(data_.end(), bytes.begin(), bytes.end());
    pad(data_);
    return *this;
  }

  // Call before the first tensor.
  GgufWriter& alignment(std::uint32_t bytes) {
    alignment_ = bytes;
    return u32("general.alignment", bytes);
  }

  std::vector<std::byte> bytes() const {
    std::vector<std::byte> out;
    for (const char c : {'G', 'G', 'U', 'F'}) out.push_back(static_cast<std::byte>(c));
    put(out, version_);
    put(out, tensors_);
    put(out, pair_count_);
    out.insert(out.end(), pairs_.begin(), pairs_.end());
    out.insert(out.end(), headers_.begin(), headers_.end());
    pad(out);
    out.insert(out.end(), data_.begin(), data_.end());
    return out;
  }

  std::shared_ptr<const files::ByteSource> source(std::string name = "test.gguf") const {
    return std::make_shared<OwnedBytes>(bytes(), std::move(name));
  }

  void write(const std::string& path) const {
    const auto all = bytes();
    std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(all.data()), static_cast<std::streamsize>(all.size()));
  }

 private:
  using Bytes = std::vector<std::byte>;

  template <class T>
  static void put(Bytes& out, T value) {
    static_assert(std::is_arithmetic_v<T> && std::endian::native == std::endian::little);
    const auto raw = std::as_bytes(std::span(&value, 1));
    out.insert(out.end(), raw.begin(), raw.end());
  }
  static void put_string(Bytes& out, std::string_view text) {
    put(out, static_cast<std::uint64_t>(text.size()));
    const auto raw = std::as_bytes(std::span(text));
    out.insert(out.end(), raw.begin(), raw.end());
  }
  void pad(Bytes& out) const {
    while (out.size() % alignment_ != 0) out.push_back(std::byte{0});
  }
  void begin(std::string_view key, std::uint32_t type) {
    put_string(pairs_, key);
    put(pairs_, type);
    ++pair_count_;
  }
  void begin_array(std::string_view key, std::uint32_t type, std::size_t count) {
    begin(key, 9);
    put(pairs_, type);
    put(pairs_, static_cast<std::uint64_t>(count));
  }
  template <class T>
  GgufWriter& scalar(std::string_view key, std::uint32_t type, T value) {
    begin(key, type);
    put(pairs_, value);
    return *this;
  }
  template <class T>
  GgufWriter& array(std::string_view key, std::uint32_t type, const std::vector<T>& values) {
    begin_array(key, type, values.size());
    for (const T value : values) put(pairs_, value);
    return *this;
  }

  std::uint32_t version_;
  std::uint64_t tensors_ = 0;
  std::uint64_t pair_count_ = 0;
  std::size_t alignment_ = 32;
  Bytes pairs_, headers_, data_;
};

}  // namespace braid::test
