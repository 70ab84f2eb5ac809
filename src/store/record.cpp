#include "store/record.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

namespace braid::store {

namespace {

static_assert(std::endian::native == std::endian::little, "records are written as they lie in memory");

constexpr std::uint64_t kMagic = 0x31564B6469617262;  // "braidKV1"
constexpr std::size_t kDigestedHeaderBytes = kHeaderBytes - sizeof(cache::PrefixKey);

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + kRecordAlignment - 1) / kRecordAlignment * kRecordAlignment; }

class Writer {
 public:
  explicit Writer(std::byte* at) : at_(at) {}
  template <class T>
  void put(const T& value) {
    std::memcpy(at_, &value, sizeof value);
    at_ += sizeof value;
  }
  void put(std::span<const std::byte> bytes) { at_ = std::ranges::copy(bytes, at_).out; }
  std::byte* at() const { return at_; }

 private:
  std::byte* at_;
};

class Reader {
 public:
  explicit Reader(const std::byte* at) : at_(at) {}
  template <class T>
  T get() {
    T value;
    std::memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    return value;
  }

 private:
  const std::byte* at_;
};

void write_header(std::byte* at, const RecordHeader& header) {
  Writer writer(at);
  writer.put(kMagic);
  writer.put(header.key);
  writer.put(header.written_at);
  writer.put(header.identity_bytes);
  writer.put(header.salt_bytes);
  writer.put(header.token_count);
  writer.put(std::uint32_t{0});
  writer.put(header.payload_bytes);
  writer.put(header.body_digest);
  assert(writer.at() == at + kDigestedHeaderBytes);
  writer.put(cache::xxh3_key({at, kDigestedHeaderBytes}));
}

bool holds(std::span<const std::byte> stored, std::span<const std::byte> wanted) { return std::ranges::equal(stored, wanted); }

}  // namespace

std::size_t RecordHeader::payload_offset() const {
  return aligned(kHeaderBytes + identity_bytes + salt_bytes + std::size_t{token_count} * sizeof(std::int32_t));
}

std::size_t RecordHeader::record_bytes() const { return payload_offset() + aligned(payload_bytes); }

bool can_record(const Origin& origin, std::size_t payload_bytes) {
  return origin.identity.size() <= kMostIdentityBytes && origin.salt.size() <= kMostSaltBytes && origin.tokens.size() <= kMostTokens &&
         payload_bytes <= kMostPayloadBytes;
}

std::size_t record_bytes(std::size_t identity_bytes, std::size_t salt_bytes, std::size_t tokens, std::size_t payload_bytes) {
  return aligned(kHeaderBytes + identity_bytes + salt_bytes + tokens * sizeof(std::int32_t)) + aligned(payload_bytes);
}

RecordHeader compose_record(std::span<std::byte> record, const cache::PrefixKey& key, const Origin& origin, std::size_t payload_bytes,
                            std::uint64_t written_at) {
  assert(can_record(origin, payload_bytes));
  RecordHeader header;
  header.key = key;
  header.written_at = written_at;
  header.identity_bytes = static_cast<std::uint32_t>(origin.identity.size());
  header.salt_bytes = static_cast<std::uint32_t>(origin.salt.size());
  header.token_count = static_cast<std::uint32_t>(origin.tokens.size());
  header.payload_bytes = payload_bytes;
  assert(record.size() >= header.record_bytes());
  Writer writer(record.data() + kHeaderBytes);
  writer.put(std::as_bytes(std::span(origin.identity)));
  writer.put(std::as_bytes(std::span(origin.salt)));
  writer.put(std::as_bytes(origin.tokens));
  std::fill(writer.at(), record.data() + header.payload_offset(), std::byte{0});
  const std::size_t payload_end = header.payload_offset() + payload_bytes;
  std::fill(record.data() + payload_end, record.data() + header.record_bytes(), std::byte{0});
  return header;
}

void seal_record(std::span<std::byte> record, RecordHeader header) {
  header.body_digest = cache::xxh3_key(record.first(header.record_bytes()).subspan(kHeaderBytes));
  write_header(record.data(), header);
}

std::optional<RecordHeader> parse_header(std::span<const std::byte> bytes) {
  if (bytes.size() < kHeaderBytes) return std::nullopt;
  Reader reader(bytes.data());
  if (reader.get<std::uint64_t>() != kMagic) return std::nullopt;
  RecordHeader header;
  header.key = reader.get<cache::PrefixKey>();
  header.written_at = reader.get<std::uint64_t>();
  header.identity_bytes = reader.get<std::uint32_t>();
  header.salt_bytes = reader.get<std::uint32_t>();
  header.token_count = reader.get<std::uint32_t>();
  const auto reserved = reader.get<std::uint32_t>();
  header.payload_bytes = reader.get<std::uint64_t>();
  header.body_digest = reader.get<cache::PrefixKey>();
  if (reader.get<cache::PrefixKey>() != cache::xxh3_key(bytes.first(kDigestedHeaderBytes))) return std::nullopt;
  const bool is_sane = reserved == 0 && header.identity_bytes <= kMostIdentityBytes && header.salt_bytes <= kMostSaltBytes &&
                       header.token_count <= kMostTokens && header.payload_bytes <= kMostPayloadBytes;
  return is_sane ? std::optional(header) : std::nullopt;
}

std::optional<std::span<const std::byte>> read_record(std::span<const std::byte> record, const cache::PrefixKey& key, const Origin& origin,
                                                      std::size_t payload_bytes) {
  const std::optional<RecordHeader> header = parse_header(record);
  if (!header || header->record_bytes() != record.size() || header->key != key || header->payload_bytes != payload_bytes ||
      header->identity_bytes != origin.identity.size() || header->salt_bytes != origin.salt.size() ||
      header->token_count != origin.tokens.size())
    return std::nullopt;
  const std::size_t identity_at = kHeaderBytes;
  const std::size_t salt_at = identity_at + header->identity_bytes;
  const std::size_t tokens_at = salt_at + header->salt_bytes;
  if (!holds(record.subspan(identity_at, header->identity_bytes), std::as_bytes(std::span(origin.identity))) ||
      !holds(record.subspan(salt_at, header->salt_bytes), std::as_bytes(std::span(origin.salt))) ||
      !holds(record.subspan(tokens_at, origin.tokens.size_bytes()), std::as_bytes(origin.tokens)))
    return std::nullopt;
  if (cache::xxh3_key(record.subspan(kHeaderBytes)) != header->body_digest) return std::nullopt;
  return record.subspan(header->payload_offset(), payload_bytes);
}

}  // namespace braid::store
