// What a rank has of adapters and of newer weights, which come while it computes.
#pragma once

#include "model/adapters/adapter.h"
#include "model/decoder.h"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace braid::ranks {

// By the server's numbers, which it gives once each. Any thread.
class RankCopies {
 public:
  void add(std::uint64_t number, std::shared_ptr<const model::Adapter> adapter);
  void add(std::uint64_t number, std::shared_ptr<const model::Decoder> decoder);
  void forget(std::uint64_t number);

  // Null: there is none.
  std::shared_ptr<const model::Adapter> adapter(std::uint64_t number) const;
  std::shared_ptr<const model::Decoder> decoder(std::uint64_t number) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<const model::Adapter>> adapters_;
  std::map<std::uint64_t, std::shared_ptr<const model::Decoder>> decoders_;
};

}  // namespace braid::ranks
