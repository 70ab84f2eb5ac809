// How far a sequence is: what is planned, what has come back, and what others may know of it.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <utility>

namespace braid::sched {

// What a row adds to its sequence: so many positions to the cache, and so many tokens to the answer. One that verifies drafted tokens
// says by its result how many it was.
struct Advance {
  std::int32_t least = 0;  // positions
  std::int32_t most = 0;
  std::int32_t least_tokens = 0;
  std::int32_t most_tokens = 0;
};

// The cursors of one sequence, in positions unless they say otherwise. Loop only. Always
//   published blocks, saved blocks <= computed <= least <= most,   reused <= least,
// and least == most while no row in flight verifies anything.
class Progress {
 public:
  explicit Progress(std::int32_t block_tokens) : block_tokens_(block_tokens) {}

  // Positions [0, planned) are cached once all posted steps are back: so many surely, and so many at most.
  std::int32_t least() const { return least_; }
  std::int32_t most() const { return most_; }
  std::int32_t planned() const {
    assert(least_ == most_);
    return most_;
  }
  std::int32_t reused() const { return reused_; }        // of these, found in the cache and not counted yet
  std::int32_t computed() const { return computed_; }    // have come back, or were found
  std::int32_t published() const { return published_; }  // leading blocks that are in the prefix cache
  std::int32_t saved() const { return saved_; }          // leading blocks that the disk tier has been offered, where it takes all
  // Tokens of the answer that posted steps will bring.
  std::int32_t least_pending() const { return least_pending_; }
  std::int32_t most_pending() const { return most_pending_; }
  bool is_in_flight() const { return in_flight_ > 0; }  // a posted step names it
  std::int32_t published_positions() const { return published_ * block_tokens_; }

  // It holds nothing, and so many blocks of its beginning are found in the prefix cache.
  void find(std::int32_t blocks) {
    assert(most_ == 0);
    published_ = blocks;
    least_ = most_ = computed_ = reused_ = blocks * block_tokens_;
    check();
  }
  // So many positions more are copied or loaded by the next step, before its rows.
  void reuse(std::int32_t positions) {
    least_ += positions;
    most_ += positions;
    reused_ += positions;
  }
  std::int32_t take_reused() { return std::exchange(reused_, 0); }

  // The next step has a row of it.
  void plan(const Advance& row) {
    least_ += row.least;
    most_ += row.most;
    least_pending_ += row.least_tokens;
    most_pending_ += row.most_tokens;
    name();
  }
  // The next step names it.
  void name() { ++in_flight_; }

  // A row is back, whatever became of it: its tokens are there or will not come.
  void came_back(const Advance& row) {
    least_pending_ -= row.least_tokens;
    most_pending_ -= row.most_tokens;
  }
  // And it was computed: the cache holds positions [0, end), `end - base` of them by this row.
  void came_back(const Advance& row, std::int32_t base, std::int32_t end) {
    least_ += end - base - row.least;
    most_ -= row.most - (end - base);
    computed_ = end;
    check();
  }
  // A step that names it is back and has been worked off. True when it was the last one.
  bool leave_step() {
    assert(in_flight_ > 0);
    return --in_flight_ == 0;
  }

  // What is planned and has not come back is void.
  void rewind() {
    assert(!is_in_flight());
    least_ = most_ = computed_;
    reused_ = std::min(reused_, computed_);
  }
  // It holds nothing any more.
  void clear() { least_ = most_ = reused_ = computed_ = published_ = saved_ = 0; }

  // One block more is in the prefix cache, or has been offered to the disk tier.
  void publish() {
    ++published_;
    check();
  }
  void save() {
    ++saved_;
    check();
  }

 private:
  void check() const {
    assert(std::max(published_, saved_) * block_tokens_ <= computed_ && computed_ <= least_ && least_ <= most_ && reused_ <= least_);
  }

  std::int32_t block_tokens_;
  std::int32_t least_ = 0;
  std::int32_t most_ = 0;
  std::int32_t reused_ = 0;
  std::int32_t computed_ = 0;
  std::int32_t published_ = 0;
  std::int32_t saved_ = 0;
  std::int32_t least_pending_ = 0;
  std::int32_t most_pending_ = 0;
  std::int32_t in_flight_ = 0;
};

}  // namespace braid::sched
