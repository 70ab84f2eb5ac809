// What has been made of files lately, so that a conversation that goes on does not decode its images again.
#pragma once

#include "braid/image_reader.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

namespace braid::images {

// A digest of a file's bytes, and how it was to be read.
struct ReadKey {
  std::array<std::uint64_t, 2> digest{};
  ImageWish wish;

  static ReadKey of(std::string_view file, const ImageWish& wish);
  bool operator==(const ReadKey& other) const = default;
};

// Any thread.
class ReadCache {
 public:
  explicit ReadCache(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  std::optional<ReadImage> find(const ReadKey& key);
  // The ones used longest ago go. One that is larger than all of it is not kept.
  void add(const ReadKey& key, const ReadImage& image);

 private:
  static std::size_t bytes_of(const ReadImage& image) { return image.pixels->values.size() * sizeof(float) + image.text.size(); }

  const std::size_t most_bytes_;
  std::mutex mutex_;
  std::size_t bytes_ = 0;
  std::list<std::pair<ReadKey, ReadImage>> images_;  // the one used last in front
};

}  // namespace braid::images
