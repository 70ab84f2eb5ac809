// A computation as a list of loops, which can be left after any of their rounds.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace braid::model {

class Pieces {
 public:
  using Run = std::function<void(std::int64_t begin, std::int64_t end)>;
  static constexpr std::int64_t kEachToken = -1;

  // `rounds` of them, each of about so many multiplications; kEachToken: one for each of the text's. Rounds are made in order.
  void add(std::int64_t rounds, std::int64_t work, Run run) { loops_.push_back({rounds, work, false, std::move(run)}); }
  // The same, each for all tokens of the text.
  void add_over_tokens(std::int64_t rounds, std::int64_t work, Run run) { loops_.push_back({rounds, work, true, std::move(run)}); }

  void begin(std::int64_t tokens) {
    tokens_ = tokens;
    loop_ = 0;
    round_ = 0;
  }
  bool is_over() const { return loop_ == loops_.size(); }

  // About `most` multiplications, but a round at least. Returns how many it were.
  std::size_t advance(std::size_t most) {
    std::size_t done = 0;
    while (!is_over() && done < most) {
      const Loop& loop = loops_[loop_];
      const std::int64_t rounds = loop.rounds == kEachToken ? tokens_ : loop.rounds;
      const std::int64_t work = std::max<std::int64_t>(1, loop.work * (loop.over_tokens ? tokens_ : 1));
      const std::int64_t count = std::clamp<std::int64_t>(static_cast<std::int64_t>(most - done) / work, 1, rounds - round_);
      loop.run(round_, round_ + count);
      round_ += count;
      done += static_cast<std::size_t>(count * work);
      if (round_ < rounds) continue;
      ++loop_;
      round_ = 0;
    }
    return done;
  }

 private:
  struct Loop {
    std::int64_t rounds = 0;
    std::int64_t work = 0;
    bool over_tokens = false;
    Run run;
  };

  std::vector<Loop> loops_;
  std::int64_t tokens_ = 0;
  std::size_t loop_ = 0;  // the next round's
  std::int64_t round_ = 0;
};

}  // namespace braid::model
