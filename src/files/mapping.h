// Anonymous memory by mmap: zeroed, page-aligned, given back at destruction.
#pragma once

#include "braid/result.h"

#include <cstddef>
#include <string_view>

namespace braid::files {

// Pages of 2 MiB: never; where the system finds them (transparent ones); or only such, from the pool of vm.nr_hugepages.
enum class HugePages { kOff, kTransparent, kExplicit };

class Mapping {
 public:
  Mapping() = default;
  // `purpose` names the memory in the error sentence.
  static Result<Mapping> reserve(std::size_t bytes, std::string_view purpose, HugePages pages = HugePages::kTransparent);

  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }  // whole pages where they are explicit

  // The pages that lie in [begin, end) as a whole are the system's again: zeros, until somebody writes to them. Any thread.
  void discard(std::size_t begin, std::size_t end) const;

  // Bytes that are present. Any thread; reads a byte for each page.
  std::size_t resident() const;

  // Makes the pages of [begin, end) present and writable now. Any thread.
  void prefault(std::size_t begin, std::size_t end) const;

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t page_ = 0;  // bytes
};

}  // namespace braid::files
