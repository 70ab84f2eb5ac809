#include "model/drafting/held_tokens.h"

#include <algorithm>
#include <cstring>

namespace braid::model {
namespace {

// A collision costs guesses, never a token of an answer.
std::uint64_t digest_behind(std::uint64_t digest, std::span<const TokenId> tokens) {
  for (const TokenId token : tokens) {
    digest = (digest ^ static_cast<std::uint32_t>(token)) * 0x9E3779B97F4A7C15ULL + 0xD1B54A32D192ED03ULL;
    digest ^= digest >> 29U;
  }
  return digest;
}

}  // namespace

HeldTokens::HeldTokens(std::int32_t blocks, std::int32_t block_tokens)
    : width_(static_cast<std::size_t>(block_tokens)), records_(static_cast<std::size_t>(blocks)), tokens_(records_.size() * width_) {}

std::size_t HeldTokens::common(std::span<const TokenId> text, std::span<const std::int32_t> blocks) const {
  std::size_t held = 0;
  std::uint64_t before = kBeginning;
  for (const std::int32_t block : blocks) {
    const Record& own = record(block);
    if (own.count == 0 || own.before != before) break;
    const std::span<const TokenId> tokens = tokens_of(block).first(static_cast<std::size_t>(own.count));
    const std::span<const TokenId> wanted = text.subspan(held);
    const auto common = static_cast<std::size_t>(std::ranges::mismatch(tokens, wanted).in1 - tokens.begin());
    held += common;
    if (common < width_) break;
    before = own.behind;
  }
  return held;
}

void HeldTokens::cut(std::span<const std::int32_t> blocks, std::size_t begin, std::size_t end) {
  for (std::size_t place = begin / width_; place * width_ < end; ++place) {
    Record& own = record(blocks[place]);
    const std::size_t first = place * width_;
    own.count = begin > first ? std::min(own.count, static_cast<std::int32_t>(begin - first)) : 0;
  }
}

void HeldTokens::put(std::span<const std::int32_t> blocks, std::size_t begin, std::span<const TokenId> tokens) {
  for (const TokenId token : tokens) {
    const std::size_t place = begin / width_;
    const std::size_t offset = begin % width_;
    const std::int32_t block = blocks[place];
    Record& own = record(block);
    if (offset == 0) own.before = place == 0 ? kBeginning : record(blocks[place - 1]).behind;
    tokens_of(block)[offset] = token;
    own.count = static_cast<std::int32_t>(offset) + 1;
    if (offset + 1 == width_) own.behind = digest_behind(own.before, tokens_of(block));
    ++begin;
  }
}

void HeldTokens::copy(std::int32_t from, std::int32_t to) {
  record(to) = record(from);
  std::ranges::copy(tokens_of(from), tokens_of(to).begin());
}

// A multiple of what blocks are aligned to in a buffer.
std::size_t HeldTokens::record_bytes() const {
  constexpr std::size_t kAlignment = 64;
  return (sizeof(Record) + width_ * sizeof(TokenId) + kAlignment - 1) / kAlignment * kAlignment;
}

void HeldTokens::write(std::int32_t block, std::span<std::byte> bytes) const {
  const Record own = record(block);
  std::memset(bytes.data(), 0, record_bytes());
  std::memcpy(bytes.data(), &own.before, sizeof(own.before));
  std::memcpy(bytes.data() + sizeof(own.before), &own.behind, sizeof(own.behind));
  std::memcpy(bytes.data() + 2 * sizeof(own.before), &own.count, sizeof(own.count));
  std::memcpy(bytes.data() + sizeof(Record), tokens_of(block).data(), static_cast<std::size_t>(own.count) * sizeof(TokenId));
}

void HeldTokens::read(std::int32_t block, std::span<const std::byte> bytes) {
  Record own;
  std::memcpy(&own.before, bytes.data(), sizeof(own.before));
  std::memcpy(&own.behind, bytes.data() + sizeof(own.before), sizeof(own.behind));
  std::memcpy(&own.count, bytes.data() + 2 * sizeof(own.before), sizeof(own.count));
  if (own.count < 0 || static_cast<std::size_t>(own.count) > width_) own = {};
  record(block) = own;
  std::memcpy(tokens_of(block).data(), bytes.data() + sizeof(Record), static_cast<std::size_t>(own.count) * sizeof(TokenId));
}

}  // namespace braid::model
