// Values as bytes, for processes that were built from the same sources for the same architecture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace braid::ranks {

// Values that can be copied as they lie in memory, texts, and lists of such values, one after the other.
class Writer {
 public:
  explicit Writer(Bytes& out) : out_(out) { out_.clear(); }

  template <class T>
  void operator()(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    append(&value, sizeof value);
  }
  void operator()(const std::string& text) { list(text); }
  template <class T>
  void operator()(const std::vector<T>& values) {
    list(values);
  }

 private:
  template <class List>
  void list(const List& values) {
    static_assert(std::is_trivially_copyable_v<typename List::value_type>);
    (*this)(std::uint64_t{values.size()});
    append(values.data(), values.size() * sizeof(typename List::value_type));
  }
  void append(const void* data, std::size_t size) {
    if (size == 0) return;
    const auto* bytes = static_cast<const std::byte*>(data);
    out_.insert(out_.end(), bytes, bytes + size);
  }

  Bytes& out_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  void operator()(T& value) {
    take(&value, sizeof value);
  }
  void operator()(std::string& text) { list(text); }
  template <class T>
  void operator()(std::vector<T>& values) {
    list(values);
  }

  // All of it was read, and nothing was missing.
  bool done() const { return sound_ && bytes_.empty(); }
  bool is_sound() const { return sound_; }  // nothing was missing so far
  std::span<const std::byte> rest() const { return bytes_; }

 private:
  template <class List>
  void list(List& values) {
    std::uint64_t count = 0;
    (*this)(count);
    sound_ = sound_ && count <= bytes_.size() / sizeof(typename List::value_type);
    if (!sound_) return;
    values.resize(static_cast<std::size_t>(count));
    take(values.data(), values.size() * sizeof(typename List::value_type));
  }
  void take(void* out, std::size_t size) {
    sound_ = sound_ && size <= bytes_.size();
    if (!sound_ || size == 0) return;
    std::memcpy(out, bytes_.data(), size);
    bytes_ = bytes_.subspan(size);
  }

  std::span<const std::byte> bytes_;
  bool sound_ = true;
};

}  // namespace braid::ranks
