// The bytes of one KV block on disk. A record says everything it depends on, so it is right or refused on its own: no other record
// has to be trusted.
//
//   header   magic, key, time, lengths, digest of the body, digest of the header
//   body     identity, adapter, salt, tokens [token_count], media [media_count], zeros to a multiple of 64, payload, zeros likewise
//
// Little-endian. `tokens` are all tokens from the beginning of the sequence to the end of the block, not only the block's own, and
// `media` all that stands behind them: they are compared on every hit, so neither an equal key nor a damaged parent can pass for a
// prefix. Digests are XXH3-128 of xxHash; the
// header's covers the body's, and so every byte of the record.
#pragma once

#include "cache/prefix_index.h"
#include "cache/sequence_view.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace braid::store {

inline constexpr std::size_t kHeaderBytes = 96;
inline constexpr std::size_t kRecordAlignment = 64;
inline constexpr std::uint32_t kMostIdentityBytes = 4096;
inline constexpr std::uint32_t kMostAdapterBytes = 256;
inline constexpr std::uint32_t kMostSaltBytes = 4096;
inline constexpr std::uint32_t kMostTokens = 1U << 24U;
inline constexpr std::uint32_t kMostMedia = 1U << 20U;
inline constexpr std::uint64_t kMostPayloadBytes = std::uint64_t{1} << 30U;

// What a payload stands for. Borrows.
struct Origin {
  std::string_view identity;     // model, KV type and layout, in the words of their owner
  cache::SequenceView sequence;  // to the end of the block
};

struct RecordHeader {
  cache::PrefixKey key;
  std::uint64_t written_at = 0;  // Unix seconds
  std::uint32_t identity_bytes = 0;
  std::uint32_t adapter_bytes = 0;
  std::uint32_t salt_bytes = 0;
  std::uint32_t token_count = 0;
  std::uint32_t media_count = 0;
  std::uint64_t payload_bytes = 0;
  cache::PrefixKey body_digest;

  std::size_t payload_offset() const;  // from the start of the record
  std::size_t record_bytes() const;
};

// What a record of this will have; only lengths are filled in.
RecordHeader lengths_of(const Origin& origin, std::size_t payload_bytes);

// Whether the format has room for these lengths.
bool can_record(const RecordHeader& lengths);

// Writes all of a record but payload and digests to the start of `record`, and returns its header. It can be recorded.
RecordHeader compose_record(std::span<std::byte> record, const cache::PrefixKey& key, const Origin& origin, std::size_t payload_bytes,
                            std::uint64_t written_at);

// Completes a composed record, whose payload is in place, with its digests.
void seal_record(std::span<std::byte> record, RecordHeader header);

// nullopt when this is not the header of a record: wrong magic, digest or lengths.
std::optional<RecordHeader> parse_header(std::span<const std::byte> bytes);

// The payload; nullopt unless the record is whole, undamaged, and of this key, origin and payload size.
std::optional<std::span<const std::byte>> read_record(std::span<const std::byte> record, const cache::PrefixKey& key, const Origin& origin,
                                                      std::size_t payload_bytes);

}  // namespace braid::store
