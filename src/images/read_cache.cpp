#include "images/read_cache.h"

#define XXH_INLINE_ALL  // NOLINT: as xxhash.h wants it
#include <algorithm>
#include <xxhash.h>

namespace braid::images {

ReadKey ReadKey::of(std::string_view file, const ImageWish& wish) {
  const XXH128_hash_t hash = XXH3_128bits(file.data(), file.size());
  return {{hash.low64, hash.high64}, wish};
}

std::optional<ReadImage> ReadCache::find(const ReadKey& key) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(images_, key, &std::pair<ReadKey, ReadImage>::first);
  if (found == images_.end()) return std::nullopt;
  images_.splice(images_.begin(), images_, found);
  return images_.front().second;
}

void ReadCache::add(const ReadKey& key, const ReadImage& image) {
  const std::size_t bytes = bytes_of(image);
  if (bytes > most_bytes_) return;
  const std::lock_guard lock(mutex_);
  if (std::ranges::find(images_, key, &std::pair<ReadKey, ReadImage>::first) != images_.end()) return;
  images_.emplace_front(key, image);
  bytes_ += bytes;
  while (bytes_ > most_bytes_) {
    bytes_ -= bytes_of(images_.back().second);
    images_.pop_back();
  }
}

}  // namespace braid::images
