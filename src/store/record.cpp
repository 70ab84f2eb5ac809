#include "store/record.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

namespace braid::store {

namespace {

static_assert(std::endian::native == std::endian::little, "records are written as they lie in memory");

constexpr std::uint64_t kMagic = 0x32564B6469617262;  // "braidKV2"
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
  writer.put(header.adapter_bytes);
  writer.put(header.salt_bytes);
  writer.put(header.token_count);
  writer.put(header.media_count);
  writer.put(std::uint32_t{0});
  writer.put(header.payload_bytes);
  writer.put(header.body_digest);
  assert(writer.at() == at + kDigestedHeaderBytes);
  writer.put(cache::xxh3_key({at, kDigestedHeaderBytes}));
}

// The media behind the tokens of a sequence, which may have more.
std::size_t media_count(const cache::SequenceView& sequence) {
  const auto is_within = [&](const MediaSpan& span) { return span.first < static_cast<std::int32_t>(sequence.tokens.size()); };
  return static_cast<std::size_t>(std::ranges::partition_point(sequence.media, is_within) - sequence.media.begin());
}

// The body before the payload, piece by piece, to `take(bytes)`.
void for_each_part(const Origin& origin, const auto& take) {
  const auto& [scope, tokens, media] = origin.sequence;
  for (const std::string_view text : {origin.identity, scope.adapter, scope.salt}) take(std::as_bytes(std::span(text)));
  take(std::as_bytes(tokens));
  for (MediaSpan span : media.first(media_count(origin.sequence))) {
    span.count = std::min(span.count, static_cast<std::int32_t>(tokens.size()) - span.first);
    take(std::as_bytes(std::span(&span, 1)));
  }
}

}  // namespace

std::size_t RecordHeader::payload_offset() const {
  return aligned(kHeaderBytes + identity_bytes + adapter_bytes + salt_bytes + std::size_t{token_count} * sizeof(std::int32_t) +
                 std::size_t{media_count} * sizeof(MediaSpan));
}

std::size_t RecordHeader::record_bytes() const { return payload_offset() + aligned(payload_bytes); }

RecordHeader lengths_of(const Origin& origin, std::size_t payload_bytes) {
  RecordHeader lengths;
  lengths.identity_bytes = static_cast<std::uint32_t>(origin.identity.size());
  lengths.adapter_bytes = static_cast<std::uint32_t>(origin.sequence.scope.adapter.size());
  lengths.salt_bytes = static_cast<std::uint32_t>(origin.sequence.scope.salt.size());
  lengths.token_count = static_cast<std::uint32_t>(origin.sequence.tokens.size());
  lengths.media_count = static_cast<std::uint32_t>(media_count(origin.sequence));
  lengths.payload_bytes = payload_bytes;
  return lengths;
}

bool can_record(const RecordHeader& lengths) {
  return lengths.identity_bytes <= kMostIdentityBytes && lengths.adapter_bytes <= kMostAdapterBytes &&
         lengths.salt_bytes <= kMostSaltBytes && lengths.token_count <= kMostTokens && lengths.media_count <= kMostMedia &&
         lengths.payload_bytes <= kMostPayloadBytes;
}

RecordHeader compose_record(std::span<std::byte> record, const cache::PrefixKey& key, const Origin& origin, std::size_t payload_bytes,
                            std::uint64_t written_at) {
  RecordHeader header = lengths_of(origin, payload_bytes);
  assert(can_record(header) && record.size() >= header.record_bytes());
  header.key = key;
  header.written_at = written_at;
  Writer writer(record.data() + kHeaderBytes);
  for_each_part(origin, [&](std::span<const std::byte> bytes) { writer.put(bytes); });
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
  header.adapter_bytes = reader.get<std::uint32_t>();
  header.salt_bytes = reader.get<std::uint32_t>();
  header.token_count = reader.get<std::uint32_t>();
  header.media_count = reader.get<std::uint32_t>();
  const auto reserved = reader.get<std::uint32_t>();
  header.payload_bytes = reader.get<std::uint64_t>();
  header.body_digest = reader.get<cache::PrefixKey>();
  if (reader.get<cache::PrefixKey>() != cache::xxh3_key(bytes.first(kDigestedHeaderBytes))) return std::nullopt;
  return reserved == 0 && can_record(header) ? std::optional(header) : std::nullopt;
}

std::optional<std::span<const std::byte>> read_record(std::span<const std::byte> record, const cache::PrefixKey& key, const Origin& origin,
                                                      std::size_t payload_bytes) {
  const std::optional<RecordHeader> header = parse_header(record);
  if (!header || header->record_bytes() != record.size() || header->key != key) return std::nullopt;
  const RecordHeader wanted = lengths_of(origin, payload_bytes);
  if (header->identity_bytes != wanted.identity_bytes || header->adapter_bytes != wanted.adapter_bytes ||
      header->salt_bytes != wanted.salt_bytes || header->token_count != wanted.token_count || header->media_count != wanted.media_count ||
      header->payload_bytes != wanted.payload_bytes)
    return std::nullopt;
  bool is_same = true;
  auto stored = record.subspan(kHeaderBytes);
  for_each_part(origin, [&](std::span<const std::byte> bytes) {
    is_same = is_same && std::ranges::equal(stored.first(bytes.size()), bytes);
    stored = stored.subspan(bytes.size());
  });
  if (!is_same) return std::nullopt;
  if (cache::xxh3_key(record.subspan(kHeaderBytes)) != header->body_digest) return std::nullopt;
  return record.subspan(header->payload_offset(), payload_bytes);
}

}  // namespace braid::store
