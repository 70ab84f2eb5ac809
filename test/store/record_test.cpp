// Every byte of a record counts.
#include "store/rig.h"

#include <algorithm>
#include <cstring>

namespace braid::store::test {
namespace {

struct Written {
  std::vector<std::byte> bytes;
  cache::PrefixKey key{1, 2};
  std::string identity = "identity";
  std::string adapter = "adapter";
  std::string salt = "salt";
  std::vector<std::int32_t> tokens{1, 2, 3, 4, 5, 6, 7};
  std::vector<MediaSpan> media{{1, 2, {8, 9}}, {5, 9, {8, 10}}, {20, 1, {8, 11}}};
  std::vector<std::byte> payload = std::vector<std::byte>(100, std::byte{42});

  Written() {
    bytes.resize(lengths_of(origin(), payload.size()).record_bytes());
    const RecordHeader header = compose_record(bytes, key, origin(), payload.size(), 77);
    std::ranges::copy(payload, bytes.begin() + static_cast<std::ptrdiff_t>(header.payload_offset()));
    seal_record(bytes, header);
  }
  Origin origin() const { return {identity, {{adapter, salt}, tokens, media}}; }
  bool reads() const { return read_record(bytes, key, origin(), payload.size()).has_value(); }
};

TEST(Record, ReadsBackWhatWasWritten) {
  const Written written;
  const auto payload = read_record(written.bytes, written.key, written.origin(), written.payload.size());
  ASSERT_TRUE(payload);
  EXPECT_TRUE(std::ranges::equal(*payload, written.payload));
  const auto header = parse_header(written.bytes);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->written_at, 77U);
  EXPECT_EQ(header->record_bytes(), written.bytes.size());
}

TEST(Record, RefusesEveryFlippedBit) {
  Written written;
  for (std::size_t bit = 0; bit < written.bytes.size() * 8; ++bit) {
    const auto mask = static_cast<std::byte>(1U << (bit % 8));
    written.bytes[bit / 8] ^= mask;
    EXPECT_FALSE(written.reads()) << "bit " << bit;
    written.bytes[bit / 8] ^= mask;
  }
  EXPECT_TRUE(written.reads());
}

TEST(Record, RefusesEveryOtherLength) {
  Written written;
  for (std::size_t length = 0; length < written.bytes.size(); ++length)
    EXPECT_FALSE(read_record(std::span(written.bytes).first(length), written.key, written.origin(), written.payload.size())) << length;
  written.bytes.resize(written.bytes.size() + 64);
  EXPECT_FALSE(written.reads());
}

TEST(Record, RefusesAnotherOrigin) {
  const auto differs = [](const auto& change) {
    Written written;
    change(written);
    return !written.reads();
  };
  EXPECT_TRUE(differs([](Written& w) { w.key.high = 3; }));
  EXPECT_TRUE(differs([](Written& w) { w.identity = "identitz"; }));
  EXPECT_TRUE(differs([](Written& w) { w.salt = "pepper"; }));
  EXPECT_TRUE(differs([](Written& w) { w.salt = "salu"; }));
  EXPECT_TRUE(differs([](Written& w) { w.tokens[0] = 9; }));
  EXPECT_TRUE(differs([](Written& w) { w.tokens.pop_back(); }));
  EXPECT_TRUE(differs([](Written& w) { w.payload.resize(99); }));
  EXPECT_TRUE(differs([](Written& w) { w.identity = "identityadapter", w.adapter = ""; })) << "lengths are part of it";
  EXPECT_TRUE(differs([](Written& w) { w.adapter = "adaptes"; }));
  EXPECT_TRUE(differs([](Written& w) { std::swap(w.adapter, w.salt); }));
  EXPECT_TRUE(differs([](Written& w) { w.media[0].digest[1] = 0; }));
  EXPECT_TRUE(differs([](Written& w) { w.media[1].first = 4; }));
  EXPECT_TRUE(differs([](Written& w) { w.media[0].count = 1; }));
  EXPECT_TRUE(differs([](Written& w) { w.media.erase(w.media.begin()); }));
  EXPECT_FALSE(differs([](Written& w) { w.media[1].count = 2; })) << "what lies behind the tokens does not count";
  EXPECT_FALSE(differs([](Written& w) { w.media.pop_back(); }));
}

// A header with a right digest but lengths that no one writes.
TEST(Record, RefusesLengthsBeyondTheLimits) {
  Written written;
  std::vector<std::byte> large(written.bytes);
  large.resize(1 << 12);
  const std::uint64_t payload_bytes = kMostPayloadBytes + 1;
  std::memcpy(large.data() + 56, &payload_bytes, sizeof payload_bytes);
  const cache::PrefixKey digest = cache::xxh3_key(std::span(large).first(kHeaderBytes - 16));
  std::memcpy(large.data() + kHeaderBytes - 16, &digest, sizeof digest);
  EXPECT_FALSE(parse_header(large));
}

}  // namespace
}  // namespace braid::store::test
