// Host memory of a fixed size, for records on their way between arena and disk.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

namespace braid::store {

// Move-only handle of one buffer; gives it back at destruction. Loop only, as is its pool, which may go first.
class Buffer;

class BufferPool {
 public:
  BufferPool(std::size_t buffer_bytes, std::size_t count) : shared_(std::make_shared<Shared>(Shared{buffer_bytes, count, {}})) {
    shared_->idle.reserve(count);  // giving one back needs no memory
  }

  // An empty handle when all are in use, or there is no memory for one more.
  Buffer acquire();
  std::size_t free() const { return shared_->left + shared_->idle.size(); }
  std::size_t buffer_bytes() const { return shared_->bytes; }

 private:
  friend class Buffer;
  struct Deleter {
    void operator()(std::byte* bytes) const { ::operator delete[](bytes, std::align_val_t{64}); }
  };
  using Bytes = std::unique_ptr<std::byte[], Deleter>;
  struct Shared {
    std::size_t bytes;
    std::size_t left;  // not allocated yet
    std::vector<Bytes> idle;

    // Null where there is no memory.
    Bytes allocate() const {
      try {
        return Bytes(static_cast<std::byte*>(::operator new[](bytes, std::align_val_t{64})));
      } catch (const std::bad_alloc&) {
        return nullptr;
      }
    }
  };
  std::shared_ptr<Shared> shared_;
};

class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept = default;
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Buffer() {
    if (bytes_ != nullptr) pool_->idle.push_back(std::move(bytes_));
  }

  explicit operator bool() const { return bytes_ != nullptr; }
  std::span<std::byte> bytes() const { return {bytes_.get(), bytes_ != nullptr ? pool_->bytes : 0}; }

 private:
  friend class BufferPool;
  std::shared_ptr<BufferPool::Shared> pool_;
  BufferPool::Bytes bytes_;
};

inline Buffer BufferPool::acquire() {
  Buffer buffer;
  if (!shared_->idle.empty()) {
    buffer.bytes_ = std::move(shared_->idle.back());
    shared_->idle.pop_back();
  } else if (shared_->left > 0) {
    buffer.bytes_ = shared_->allocate();
    if (buffer) --shared_->left;
  }
  if (buffer) buffer.pool_ = shared_;
  return buffer;
}

}  // namespace braid::store
