// One model computed by several ranks one after the other: each stage has some of the layers, and hands the rows on that it has computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace braid::model {

struct Stage {
  std::int32_t index = 0;
  std::int32_t count = 1;

  bool is_first() const { return index == 0; }
  bool is_last() const { return index + 1 == count; }

  // Of `all` layers those that it computes: neighbours, as even as they go, the last stage never fewer than another.
  std::size_t begin(std::size_t all) const { return all * static_cast<std::size_t>(index) / static_cast<std::size_t>(count); }
  std::size_t end(std::size_t all) const { return all * static_cast<std::size_t>(index + 1) / static_cast<std::size_t>(count); }
  bool has(std::size_t layer, std::size_t all) const { return begin(all) <= layer && layer < end(all); }

  bool operator==(const Stage&) const = default;
};

// To the neighbours of a stage. Throws when one is gone. Strand only.
class Relay {
 public:
  virtual ~Relay() = default;

  // Rows to the next stage, which takes as many.
  virtual void pass_on(std::span<const float> rows) = 0;
  // Rows of the stage before.
  virtual void take(std::span<float> rows) = 0;
};

}  // namespace braid::model
