// Owner of an open file.
#pragma once

#include <unistd.h>
#include <utility>

namespace braid::net {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int number) : number_(number) {}
  ~FileDescriptor() {
    if (number_ >= 0) ::close(number_);
  }
  FileDescriptor(FileDescriptor&& other) noexcept : number_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  int get() const { return number_; }  // -1: none
  int release() { return std::exchange(number_, -1); }

 private:
  int number_ = -1;
};

}  // namespace braid::net
