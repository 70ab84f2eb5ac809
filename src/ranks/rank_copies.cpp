#include "ranks/rank_copies.h"

#include <utility>

namespace braid::ranks {

void RankCopies::add(std::uint64_t number, std::shared_ptr<const model::Adapter> adapter) {
  const std::lock_guard lock(mutex_);
  adapters_[number] = std::move(adapter);
}

void RankCopies::add(std::uint64_t number, std::shared_ptr<const model::Decoder> decoder) {
  const std::lock_guard lock(mutex_);
  decoders_[number] = std::move(decoder);
}

void RankCopies::forget(std::uint64_t number) {
  std::shared_ptr<const void> adapter, decoder;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  if (const auto found = adapters_.find(number); found != adapters_.end()) {
    adapter = std::move(found->second);
    adapters_.erase(found);
  }
  if (const auto found = decoders_.find(number); found != decoders_.end()) {
    decoder = std::move(found->second);
    decoders_.erase(found);
  }
}

std::shared_ptr<const model::Adapter> RankCopies::adapter(std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  const auto found = adapters_.find(number);
  return found != adapters_.end() ? found->second : nullptr;
}

std::shared_ptr<const model::Decoder> RankCopies::decoder(std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  const auto found = decoders_.find(number);
  return found != decoders_.end() ? found->second : nullptr;
}

}  // namespace braid::ranks
