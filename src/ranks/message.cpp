#include "ranks/message.h"

#include <cstring>
#include <type_traits>

namespace braid::ranks {
namespace {

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

// The fields of each message, in order.
template <class Use>
void fields(Use&& use, auto& value) requires requires {
  value.key;
}
{ use(value.key), use(value.version), use(value.rank), use(value.ranks); }

template <class Use>
void fields(Use&& use, auto& value) requires requires {
  value.model;
}
{
  use(value.model), use(value.isa), use(value.float_weights), use(value.kv_type), use(value.float_type), use(value.rotated),
      use(value.context);
  use(value.block_tokens), use(value.kv_limit), use(value.pass_rows), use(value.logit_rows), use(value.threads);
}

template <class Use>
void fields(Use&& use, auto& value) requires requires {
  value.weight_bytes;
}
{ use(value.isa), use(value.kv_type), use(value.weight_bytes), use(value.block_bytes); }

template <class Use>
void fields(Use&& use, auto& value) requires requires {
  value.what;
}
{ use(value.what), use(value.done), use(value.total); }

template <class Use>
void fields(Use&& use, auto& value) requires requires {
  value.forks;
}
{ use(value.forks), use(value.given_back); }

template <class Use>
void fields(Use&& use, auto& value) requires requires {
  value.picked;
}
{
  use(value.tokens), use(value.picked), use(value.blocks), use(value.given), use(value.given_parts), use(value.sequences),
      use(value.snapshots);
}

template <class T>
void write_fields(const T& value, Bytes& out) {
  Writer writer(out);
  fields(writer, value);
}

template <class T>
bool read_fields(std::span<const std::byte> bytes, T& out) {
  Reader reader(bytes);
  fields(reader, out);
  return reader.done();
}

template <class T>
bool read_value(std::span<const std::byte> bytes, T& out) {
  Reader reader(bytes);
  reader(out);
  return reader.done();
}

}  // namespace

void write(const Greeting& value, Bytes& out) { write_fields(value, out); }
void write(const Setup& value, Bytes& out) { write_fields(value, out); }
void write(const Ready& value, Bytes& out) { write_fields(value, out); }
void write(const LoadStage& value, Bytes& out) { write_fields(value, out); }
void write(const Times& value, Bytes& out) { Writer{out}(value); }
void write(const Moves& value, Bytes& out) { write_fields(value, out); }
void write(const step::Pass& value, Bytes& out) { write_fields(value, out); }
void write(const Wanted& value, Bytes& out) { Writer{out}(value); }
void write(std::int32_t value, Bytes& out) { Writer{out}(value); }

bool read(std::span<const std::byte> bytes, Greeting& out) { return read_fields(bytes, out); }
bool read(std::span<const std::byte> bytes, Setup& out) { return read_fields(bytes, out); }
bool read(std::span<const std::byte> bytes, Ready& out) { return read_fields(bytes, out); }
bool read(std::span<const std::byte> bytes, LoadStage& out) { return read_fields(bytes, out); }
bool read(std::span<const std::byte> bytes, Times& out) { return read_value(bytes, out); }
bool read(std::span<const std::byte> bytes, Moves& out) { return read_fields(bytes, out); }
bool read(std::span<const std::byte> bytes, step::Pass& out) { return read_fields(bytes, out); }
bool read(std::span<const std::byte> bytes, Wanted& out) { return read_value(bytes, out); }
bool read(std::span<const std::byte> bytes, std::int32_t& out) { return read_value(bytes, out); }

}  // namespace braid::ranks
