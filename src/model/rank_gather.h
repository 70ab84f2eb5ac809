// Puts together rows of which every rank has computed some columns.
#pragma once

#include "model/product.h"
#include "model/rows.h"
#include "model/share.h"
#include "model/stage.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace braid::model {

// Memory grows to the largest gathering and stays. Strand only.
class RankGather {
 public:
  // `exchange` and `relay` outlive it; null: there is one rank, or one stage.
  RankGather(const Share& share, Exchange* exchange, const Stage& stage = {}, Relay* relay = nullptr)
      : share_(share), exchange_(exchange), stage_(stage), relay_(relay) {}

  const Share& share() const { return share_; }
  const Stage& stage() const { return stage_; }
  bool is_needed() const { return !share_.is_whole(); }

  // That gathering took since the last call: waiting for others, and for what they sent.
  double take_seconds() { return std::exchange(seconds_, 0.0); }

  // Of products of which each rank has computed its panels: all of their results.
  void gather(std::span<const PreparedProduct> products);

  // `count` rows to the next stage, and from the one before.
  void pass_on(const Rows& rows, std::int64_t count, std::int64_t width);
  void take(const Rows& rows, std::int64_t count, std::int64_t width);

  // Of `count` rows that the ranks divide evenly: `width` columns each.
  void gather(const Rows& rows, std::int64_t count, std::int64_t width);

 private:
  // Columns [begin, end) of some rows.
  struct Columns {
    Rows rows;
    std::int64_t count = 0;
    std::int64_t begin = 0;
    std::int64_t end = 0;

    std::int64_t width() const { return end - begin; }
    std::size_t values() const { return static_cast<std::size_t>(count * width()); }
  };

  // columns_of(rank, i) is what that rank has of part i.
  template <class ColumnsOf>
  void gather_parts(std::size_t parts, ColumnsOf&& columns_of);

  const Share share_;
  Exchange* const exchange_;
  const Stage stage_;
  Relay* const relay_;
  std::vector<std::size_t> counts_;
  std::vector<float> own_, all_;
  double seconds_ = 0.0;
};

}  // namespace braid::model
