// Random sequences that share, copy, publish, drop and lose blocks, against a simple model of what is known.
#include "cache/block_table.h"
#include "cache/prefix_index.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace braid::cache {
namespace {

using Tokens = std::vector<std::int32_t>;

// Every key is one of so many: nothing but the comparison of contents tells blocks apart.
template <std::uint64_t kKeys>
PrefixKey colliding_key(std::span<const std::byte> message) {
  return {xxh3_key(message).low % kKeys, 0};
}

// What a token and what stands behind it come to: the token alone or, within an image, its place there and the image as well.
using Contents = std::vector<std::int64_t>;

Contents contents_of(const SequenceView& sequence) {
  Contents contents(sequence.tokens.begin(), sequence.tokens.end());
  for (const MediaSpan& span : sequence.media)
    for (std::int32_t i = 0; i < span.count && static_cast<std::size_t>(span.first + i) < contents.size(); ++i)
      contents[static_cast<std::size_t>(span.first + i)] += static_cast<std::int64_t>(span.digest[1]) * 1000 + i * 10;
  return contents;
}

// The model: maps between (scope, all contents up to its end) and the block that is known to hold them. Tokens are 0 or 1, so that of
// text at most 14 blocks come after another and common_beginning() looks at all of them.
class IndexStorm {
 public:
  IndexStorm(std::uint32_t seed, PrefixIndex::Digest digest, bool exact, bool has_media)
      : random_(seed), index_(pool_, kBlockTokens, digest), contents_(kTotal), last_release_(kTotal, 0), exact_(exact),
        has_media_(has_media) {
    index_.on_evict([this](BlockId block, std::int32_t group, std::int32_t) {
      if (group != 0) return;
      PrefixIndex::Path path;
      const SequenceView found = index_.path_to(block, path);
      EXPECT_EQ(contents_[at(block)], Prefix(name_of(found.scope), contents_of(found))) << "a lower tier would keep something else";
    });
  }

  void run(int operations) {
    for (int i = 0; i < operations && !testing::Test::HasFailure(); ++i) {
      operate();
      if (i % 16 == 0) check();
    }
    while (!sequences_.empty()) finish();
    check();
    EXPECT_EQ(pool_.free(), kTotal);
  }

  std::uint64_t hits() const { return hits_; }
  std::uint64_t media_hits() const { return media_hits_; }
  std::uint64_t forks() const { return forks_; }
  std::uint64_t evictions() const { return pool_.evictions(); }
  std::uint64_t lost_below() const { return lost_below_; }

 private:
  static constexpr std::int32_t kTotal = 24;
  static constexpr std::int32_t kBlockTokens = 3;
  static constexpr std::int32_t kLongest = 6;  // blocks
  static constexpr std::size_t kMostSequences = 8;
  static constexpr std::size_t kLookedAt = 16;  // how many siblings common_beginning() looks at
  using Prefix = std::pair<std::string, Contents>;

  struct Running {
    explicit Running(BlockPool& pool) : table(pool) {}
    std::string adapter;
    std::string salt;
    Tokens tokens;  // of its whole length
    std::vector<MediaSpan> media;
    Contents contents;
    BlockTable table;
    std::int32_t computed = 0;   // tokens
    std::int32_t published = 0;  // blocks

    SequenceView view() const { return {{adapter, salt}, tokens, media}; }
    SequenceView beginning(std::int32_t length) const { return view().first(static_cast<std::size_t>(length)); }
    std::int32_t length() const { return static_cast<std::int32_t>(tokens.size()); }
    std::int32_t full() const { return computed / kBlockTokens; }
    bool can_publish() const { return published == 0 || table[published - 1] != BlockTable::kAbsent; }
    BlockId parent() const { return published > 0 ? table[published - 1] : PrefixIndex::kNoParent; }
  };

  static std::size_t at(BlockId block) { return static_cast<std::size_t>(block); }
  int pick(int below) { return static_cast<int>(random_() % static_cast<std::uint32_t>(below)); }
  Running& any() { return *sequences_[static_cast<std::size_t>(pick(static_cast<int>(sequences_.size())))]; }

  static std::string name_of(const Scope& scope) { return std::string(scope.adapter) + '|' + std::string(scope.salt); }

  static Prefix prefix(const Running& running, std::int32_t tokens) {
    return {name_of(running.view().scope), Contents(running.contents.begin(), running.contents.begin() + tokens)};
  }

  static bool begins_with(const Prefix& longer, const Prefix& shorter) {
    return longer.first == shorter.first && longer.second.size() >= shorter.second.size() &&
           std::equal(shorter.second.begin(), shorter.second.end(), longer.second.begin());
  }

  void operate() {
    const int choice = pick(16);
    if (choice < 4) return start();
    if (sequences_.empty()) return;
    if (choice < 6) return finish();
    if (choice == 6) return drop(any());
    if (choice == 7) return publish_tail(any());
    compute(any());
  }

  void start() {
    if (sequences_.size() == kMostSequences) return finish();
    auto running = std::make_unique<Running>(pool_);
    running->salt = pick(3) == 0 ? "s" : "";
    running->adapter = pick(4) == 0 ? "s" : "";
    running->tokens.resize(static_cast<std::size_t>(1 + pick(kLongest * kBlockTokens)));
    for (std::int32_t& token : running->tokens) token = pick(16) == 0 ? 1 : 0;
    if (has_media_) add_media(*running);
    running->contents = contents_of(running->view());
    std::vector<BlockId> path;
    index_.match(running->view(), path);
    running->table.adopt(path);
    running->published = running->table.size();
    running->computed = running->published * kBlockTokens;
    hits_ += path.size();
    if (!running->media.empty() && running->media[0].first < running->computed) ++media_hits_;
    for (std::int32_t i = 0; i < running->published; ++i)
      ASSERT_EQ(contents_[at(running->table[i])], prefix(*running, (i + 1) * kBlockTokens)) << "a wrong block";
    const std::int32_t next = running->computed + kBlockTokens;
    ASSERT_FALSE(next <= running->length() && known_.contains(prefix(*running, next))) << "a known block was not found";
    if (running->computed < running->length()) fork(*running);
    sequences_.push_back(std::move(running));
  }

  // Images of all lengths, some side by side, some across several blocks.
  void add_media(Running& running) {
    for (std::int32_t at = pick(4); at < running.length(); at += pick(3) * pick(4)) {
      const std::int32_t count = std::min(1 + pick(2) * (kBlockTokens + pick(3)), running.length() - at);
      running.media.push_back({at, count, {7, static_cast<std::uint64_t>(1 + pick(2))}});
      at += count;
    }
  }

  // Copies what another block has of the next one.
  void fork(Running& running) {
    const auto found = index_.common_beginning(running.parent(), running.view(), static_cast<std::size_t>(running.computed));
    if (exact_) expect_most_in_common(running, found.count);
    if (found.count == 0) return;
    ASSERT_TRUE(begins_with(contents_[at(found.block)], prefix(running, running.computed + found.count))) << "a wrong beginning";
    BlockTable source(pool_);
    source.adopt({&found.block, 1});
    if (grow(running)) {
      running.computed += found.count;
      contents_[at(running.table[running.published])] = prefix(running, running.computed);
      ++forks_;
    }
    last_release_[at(found.block)] = ++clock_;
  }

  void expect_most_in_common(const Running& running, std::int32_t found) const {
    const Prefix parent = prefix(running, running.computed);
    std::size_t most = 0;
    std::size_t siblings = 0;
    for (const auto& [known, block] : known_) {
      const std::size_t length = known.second.size();
      if (length <= parent.second.size() || length > parent.second.size() + kBlockTokens || !begins_with(known, parent)) continue;
      const auto first = std::ranges::mismatch(known.second, running.contents).in1;
      most = std::max(most, static_cast<std::size_t>(first - known.second.begin()) - parent.second.size());
      ++siblings;
    }
    ASSERT_TRUE(has_media_ || siblings <= kLookedAt);
    ASSERT_TRUE(siblings > kLookedAt || found == static_cast<std::int32_t>(most));
  }

  // The next few tokens of a sequence are written and, most times, published.
  void compute(Running& running) {
    for (int count = 1 + pick(2 * kBlockTokens); count > 0 && running.computed < running.length(); --count) {
      const std::int32_t block = running.full();
      if (block == running.table.size() && !grow(running)) break;
      ++running.computed;
      contents_[at(running.table[block])] = prefix(running, running.computed);
    }
    if (pick(4) > 0) publish(running);
  }

  bool grow(Running& running) {
    const bool must_fit = pool_.free() > 0;
    const bool must_evict = must_fit && pool_.free() == pool_.cached();
    EXPECT_EQ(running.table.grow_to(running.table.size() + 1), must_fit);
    if (must_fit) take(running.table[running.table.size() - 1], must_evict);
    return must_fit;
  }

  // The model forgets what was evicted, the cached block released longest ago, and all that continues it.
  void take(BlockId block, bool evicted) {
    const auto was = std::ranges::find(known_, block, [](const auto& entry) { return entry.second; });
    ASSERT_EQ(was != known_.end(), evicted);
    if (!evicted) return;
    for (const auto& [known, other] : known_)
      ASSERT_TRUE(other == block || pool_.references(other) > 0 || begins_with(known, was->first) ||
                  last_release_[at(block)] < last_release_[at(other)]);
    const Prefix gone = was->first;
    const bool was_full = gone.second.size() % kBlockTokens == 0;
    lost_below_ +=
        std::erase_if(known_, [&](const auto& entry) { return entry.second == block || (was_full && begins_with(entry.first, gone)); }) - 1;
  }

  void forget_partial(BlockId block) {
    std::erase_if(known_, [&](const auto& entry) { return entry.second == block; });
  }

  bool parent_is_known(const Running& running) const {
    if (running.published == 0) return true;
    const auto found = known_.find(prefix(running, running.published * kBlockTokens));
    return found != known_.end() && found->second == running.parent();
  }

  void publish(Running& running) {
    for (; running.published < running.full(); ++running.published) {
      const BlockId own = running.table[running.published];
      if (own == BlockTable::kAbsent || !running.can_publish()) return;
      const std::int32_t begin = running.published * kBlockTokens;
      forget_partial(own);
      const bool must_know = parent_is_known(running);
      const auto known = index_.insert(running.parent(), running.view(), static_cast<std::size_t>(begin), own);
      ASSERT_TRUE(!exact_ || known.has_value() == must_know) << "real keys do not collide";
      if (!known) return;
      const auto [place, is_new] = known_.emplace(prefix(running, begin + kBlockTokens), own);
      ASSERT_EQ(*known, place->second);
      if (*known == own) continue;
      last_release_[at(own)] = ++clock_;
      running.table.replace(running.published, *known);
    }
  }

  void publish_tail(Running& running) {
    const std::int32_t begin = running.published * kBlockTokens;
    const std::int32_t count = running.computed - begin;
    if (count <= 0 || count >= kBlockTokens || !running.can_publish()) return;
    const BlockId own = running.table[running.published];
    forget_partial(own);
    const Prefix all = prefix(running, running.computed);
    const bool is_new = std::ranges::none_of(known_, [&](const auto& entry) {
      return entry.first.second.size() <= static_cast<std::size_t>(begin + kBlockTokens) && begins_with(entry.first, all);
    });
    if (is_new && parent_is_known(running)) known_.emplace(all, own);
    index_.insert_partial(running.parent(), running.beginning(running.computed), static_cast<std::size_t>(begin), own);
  }

  // Its window has passed some blocks.
  void drop(Running& running) {
    const std::int32_t end = pick(running.full() + 1);
    for (std::int32_t i = 0; i < end; ++i)
      if (running.table[i] != BlockTable::kAbsent) last_release_[at(running.table[i])] = ++clock_;
    running.table.drop(0, end);
  }

  void finish() {
    std::swap(sequences_[static_cast<std::size_t>(pick(static_cast<int>(sequences_.size())))], sequences_.back());
    if (pick(2) == 0) publish_tail(*sequences_.back());
    const BlockTable& table = sequences_.back()->table;
    for (std::int32_t i = table.size() - 1; i >= 0; --i)
      if (table[i] != BlockTable::kAbsent) last_release_[at(table[i])] = ++clock_;
    sequences_.pop_back();
  }

  void check() {
    std::map<BlockId, int> owners;
    for (const auto& running : sequences_)
      for (std::int32_t i = 0; i < running->table.size(); ++i) {
        const BlockId block = running->table[i];
        if (block == BlockTable::kAbsent) continue;
        ++owners[block];
        ASSERT_EQ(contents_[at(block)], prefix(*running, std::min(running->computed, (i + 1) * kBlockTokens)))
            << "a block was lost or stolen";
      }
    const auto is_cached = [&](const auto& entry) { return !owners.contains(entry.second); };
    ASSERT_EQ(pool_.cached(), std::ranges::count_if(known_, is_cached));
    ASSERT_EQ(pool_.free(), kTotal - static_cast<std::int32_t>(owners.size()));
    for (const auto& [block, count] : owners) ASSERT_EQ(pool_.references(block), count);
  }

  std::mt19937 random_;
  BlockPool pool_{kTotal};
  PrefixIndex index_;
  std::vector<Prefix> contents_;  // what each block holds
  std::vector<std::uint64_t> last_release_;
  std::map<Prefix, BlockId> known_;
  std::vector<std::unique_ptr<Running>> sequences_;
  std::uint64_t clock_ = 0;
  std::uint64_t hits_ = 0;
  std::uint64_t media_hits_ = 0;  // of these, sequences with some media in what was found
  std::uint64_t forks_ = 0;
  std::uint64_t lost_below_ = 0;  // known blocks that went because one before them was evicted
  bool exact_;
  bool has_media_;
};

TEST(PrefixIndexStorm, MillionOperationsMatchASimpleModel) {
  IndexStorm storm(11, xxh3_key, true, false);
  storm.run(1'000'000);
  EXPECT_GT(storm.hits(), 100'000U);
  EXPECT_GT(storm.forks(), 10'000U);
  EXPECT_GT(storm.evictions(), 10'000U);
  EXPECT_GT(storm.lost_below(), 1'000U);
}

TEST(PrefixIndexStorm, ImagesMatchTheModelToo) {
  IndexStorm storm(14, xxh3_key, true, true);
  storm.run(300'000);
  EXPECT_GT(storm.media_hits(), 3'000U);
  EXPECT_GT(storm.forks(), 3'000U);
  EXPECT_GT(storm.lost_below(), 100U);
}

TEST(PrefixIndexStorm, CollisionsNeverGiveAWrongBlock) {
  for (const bool has_media : {false, true}) {
    IndexStorm few(12, colliding_key<16>, false, has_media);
    few.run(100'000);
    EXPECT_GT(few.hits(), 100U);
    IndexStorm one(13, colliding_key<1>, false, has_media);
    one.run(100'000);
  }
}

}  // namespace
}  // namespace braid::cache
