// What the blocks of a draft model's pool hold.
#pragma once

#include "braid/generation_request.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace braid::model {

// A block says itself which tokens' keys and values it has: these, and a digest of all before them. So one that somebody else wrote to, that
// was copied, or that came back from disk is known for what it is, and nobody has to tell whose it is. Strand only.
class HeldTokens {
 public:
  HeldTokens() = default;
  HeldTokens(std::int32_t blocks, std::int32_t block_tokens);

  std::int32_t blocks() const { return static_cast<std::int32_t>(records_.size()); }

  // How many tokens `text` begins with that these blocks, one after the other, hold.
  std::size_t common(std::span<const TokenId> text, std::span<const std::int32_t> blocks) const;

  // Positions [begin, end) of these blocks are about to be written to; what they held from `begin` on is gone.
  void cut(std::span<const std::int32_t> blocks, std::size_t begin, std::size_t end);
  // They have been: with `tokens` from position `begin` on, before which all is held.
  void put(std::span<const std::int32_t> blocks, std::size_t begin, std::span<const TokenId> tokens);

  void copy(std::int32_t from, std::int32_t to);
  void clear(std::int32_t block) { records_[static_cast<std::size_t>(block)] = {}; }
  std::int32_t count(std::int32_t block) const { return records_[static_cast<std::size_t>(block)].count; }

  // The same as bytes, record_bytes() of them. What is not such a record is read as that of a block that holds nothing.
  std::size_t record_bytes() const;
  void write(std::int32_t block, std::span<std::byte> record) const;
  void read(std::int32_t block, std::span<const std::byte> record);

 private:
  struct Record {
    std::uint64_t before = 0;  // digest of all tokens before the block
    std::uint64_t behind = 0;  // and of them and its own, when it is full
    std::int32_t count = 0;
  };
  static constexpr std::uint64_t kBeginning = 0;

  Record& record(std::int32_t block) { return records_[static_cast<std::size_t>(block)]; }
  const Record& record(std::int32_t block) const { return records_[static_cast<std::size_t>(block)]; }
  std::span<TokenId> tokens_of(std::int32_t block) { return std::span(tokens_).subspan(static_cast<std::size_t>(block) * width_, width_); }
  std::span<const TokenId> tokens_of(std::int32_t block) const {
    return std::span(tokens_).subspan(static_cast<std::size_t>(block) * width_, width_);
  }

  std::size_t width_ = 1;  // tokens of a block
  std::vector<Record> records_;
  std::vector<TokenId> tokens_;  // [blocks, width]
};

}  // namespace braid::model
