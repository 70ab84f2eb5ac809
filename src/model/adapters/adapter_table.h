// The adapters that rows of plans name by their indices.
#pragma once

#include "model/adapters/adapter.h"

#include <array>
#include <cstdint>
#include <memory>
#include <utility>

namespace braid::model {

// The loop writes an entry before it plans the first row that names it, and again once the last posted step that does has come back; the
// strand reads. Posting and returning steps orders both, so there is no lock.
class AdapterTable {
 public:
  static constexpr std::uint32_t kMost = 1024;  // entries, counted from 1

  // Loop. Null: the entry is free.
  void set(std::uint32_t index, std::shared_ptr<const AdapterSet> adapters) { entries_[index - 1] = std::move(adapters); }

  // Strand. Null for 0, for a free entry and beyond the last one.
  const AdapterSet* find(std::uint32_t index) const { return index >= 1 && index <= kMost ? entries_[index - 1].get() : nullptr; }

 private:
  std::array<std::shared_ptr<const AdapterSet>, kMost> entries_;
};

}  // namespace braid::model
