// The bytes of one KV block on disk. A record says everything it depends on, so it is right or refused on its own: no other record
// has to be trusted.
//
//   header   magic, key, time, lengths, digest of the body, digest of the header
//   body     identity, salt, tokens [token_count], zeros to a multiple of 64, payload, zeros to a multiple of 64
//
// Little-endian. `tokens` are all tokens from the beginning of the sequence to the end of the block, not only the block's own: they
// are compared on every hit, so neither an equal key nor a damaged parent can pass for a prefix. Digests are XXH3-128 of xxHash; the
// header's covers the body's, and so every byte of the record.
#pragma once

#include "cache/prefix_index.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace braid::store {

inline constexpr std::size_t kHeaderBytes = 88;
inline constexpr std::size_t kRecordAlignment = 64;
inline constexpr std::uint32_t kMostIdentityBytes = 4096;
inline constexpr std::uint32_t kMostSaltBytes = 4096;
inline constexpr std::uint32_t kMostTokens = 1U << 24U;
inline constexpr std::uint64_t kMostPayloadBytes = std::uint64_t{1} << 30U;

// What a payload stands for. Borrows.
struct Origin {
  std::string_view identity;             // model, adapter, KV type and layout, in the words of their owner
  std::string_view salt;                 // of the tenant
  std::span<const std::int32_t> tokens;  // from the beginning of the sequence
};

struct RecordHeader {
  cache::PrefixKey key;
  std::uint64_t written_at = 0;          // Unix seconds
  std::uint32_t identity_bytes = 0;
  std::uint32_t salt_bytes = 0;
  std::uint32_t token_count = 0;
  std::uint64_t payload_bytes = 0;
  cache::PrefixKey body_digest;

  std::size_t payload_offset() const;    // from the start of the record
  std::size_t record_bytes() const;
};

// Whether the format has room for it.
bool can_record(const Origin& origin, std::size_t payload_bytes);

// Bytes of a record with these lengths.
std::size_t record_bytes(std::size_t identity_bytes, std::size_t salt_bytes, std::size_t tokens, std::size_t payload_bytes);

// Writes all of a record but payload and digests to the start of `record`, and returns its header. can_record() holds.
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
