// A descriptor that can be waited for beside others, and rings once.
#pragma once

#include "braid/result.h"
#include "store/directory.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <memory>
#include <unistd.h>
#include <utility>

namespace braid::store {

// A pipe of which nothing is ever read or written: it rings by closing its end.
class Bell {
 public:
  // kIo: this process may have no more files open.
  static Result<Bell> make() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Error{ErrorCode::kIo, fmt::format("cannot make a pipe: {}", std::strerror(errno)), {}};
    return Bell(std::make_unique<const OpenFile>(ends[0]), std::make_unique<const OpenFile>(ends[1]));
  }

  int descriptor() const { return out_->descriptor(); }  // can be read once it has rung
  void ring() { in_.reset(); }                           // by one thread at a time

 private:
  Bell(std::unique_ptr<const OpenFile> out, std::unique_ptr<const OpenFile> in) : out_(std::move(out)), in_(std::move(in)) {}

  std::unique_ptr<const OpenFile> out_;
  std::unique_ptr<const OpenFile> in_;
};

}  // namespace braid::store
