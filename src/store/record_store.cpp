#include "store/record_store.h"

#include <algorithm>
#include <utility>

namespace braid::store {
namespace {

constexpr std::uint32_t kTokensOfAnImage = 16;  // or more: where they are smaller on average there is no room for the record

}  // namespace

std::size_t most_record_bytes(const StoreOptions& options) {
  RecordHeader lengths;
  lengths.identity_bytes = static_cast<std::uint32_t>(options.identity.size());
  lengths.adapter_bytes = kMostAdapterBytes;
  lengths.salt_bytes = kMostSaltBytes;
  lengths.token_count = static_cast<std::uint32_t>(options.most_tokens);
  lengths.media_count = lengths.token_count / kTokensOfAnImage;
  lengths.payload_bytes = options.payload_bytes;
  return lengths.record_bytes();
}

BufferPool record_buffers(const StoreOptions& options) {
  const std::size_t bytes = most_record_bytes(options);
  return {bytes, std::max(options.least_buffers, options.buffer_memory / bytes)};
}

std::optional<PendingRecord> compose_in(BufferPool& buffers, const cache::PrefixKey& key, const Origin& origin, std::size_t payload_bytes,
                                        std::uint64_t written_at) {
  const RecordHeader lengths = lengths_of(origin, payload_bytes);
  Buffer buffer;
  if (can_record(lengths)) buffer = buffers.acquire();
  if (!buffer || lengths.record_bytes() > buffer.bytes().size()) return std::nullopt;
  PendingRecord record;
  record.header = compose_record(buffer.bytes(), key, origin, payload_bytes, written_at);
  record.payload = buffer.bytes().subspan(record.header.payload_offset(), payload_bytes);
  record.buffer = std::move(buffer);
  return record;
}

}  // namespace braid::store
