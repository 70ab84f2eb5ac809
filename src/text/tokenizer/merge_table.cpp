#include "text/tokenizer/merge_table.h"

#include <algorithm>
#include <array>

namespace braid::text {

std::size_t MergeTable::home(PieceId left, PieceId right) const {
  const auto key = (static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32) | static_cast<std::uint32_t>(right);
  return static_cast<std::size_t>((key * 0x9e3779b97f4a7c15U) >> 32) & (slots_.size() - 1);  // Fibonacci hashing
}

void MergeTable::reserve(std::size_t merges) {
  std::size_t size = 16;
  while (size < merges * 2) size *= 2;
  if (size <= slots_.size()) return;
  std::vector<Slot> old(size);
  old.swap(slots_);
  used_ = 0;
  for (const Slot& slot : old)
    if (slot.left != kNoPiece) add(slot.left, slot.right, slot.priority, slot.merged);
}

void MergeTable::add(PieceId left, PieceId right, float priority, PieceId merged) {
  reserve(used_ + 1);
  std::size_t at = home(left, right);
  while (slots_[at].left != kNoPiece) {
    if (slots_[at].left == left && slots_[at].right == right) return;
    at = (at + 1) & (slots_.size() - 1);
  }
  slots_[at] = {left, right, merged, priority};
  ++used_;
}

const MergeTable::Slot* MergeTable::find(PieceId left, PieceId right) const {
  if (slots_.empty() || left == kNoPiece || right == kNoPiece) return nullptr;
  for (std::size_t at = home(left, right); slots_[at].left != kNoPiece; at = (at + 1) & (slots_.size() - 1))
    if (slots_[at].left == left && slots_[at].right == right) return &slots_[at];
  return nullptr;
}

namespace {

using MergeCandidate = MergeTable::Scratch::Candidate;

// Heap order: the best on top.
bool worse(const MergeCandidate& a, const MergeCandidate& b) {
  return a.priority < b.priority || (a.priority == b.priority && a.left > b.left);
}

}  // namespace

void MergeTable::propose(const std::vector<Piece>& pieces, std::uint32_t left, std::uint32_t right, Scratch& scratch) const {
  const Slot* slot = find(pieces[left].id, pieces[right].id);
  if (slot == nullptr) return;
  scratch.heap.push_back({slot->priority, left, right, slot->left, slot->right, slot->merged});
}

void MergeTable::merge(std::vector<Piece>& pieces, Scratch& scratch) const {
  if (pieces.size() <= kShort) {
    merge_short(pieces);
  } else {
    merge_long(pieces, scratch);
  }
}

// Words are mostly this short, and then looking at all neighbours beats a heap.
void MergeTable::merge_short(std::vector<Piece>& pieces) const {
  std::array<const Slot*, kShort> with_next{};  // how piece i merges with the one after it; null: not at all
  for (std::size_t i = 1; i < pieces.size(); ++i) with_next[i - 1] = find(pieces[i - 1].id, pieces[i].id);
  while (true) {
    const Slot* best = nullptr;
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < pieces.size(); ++i) {
      if (with_next[i] == nullptr || (best != nullptr && with_next[i]->priority <= best->priority)) continue;
      best = with_next[i];
      at = i;
    }
    if (best == nullptr) return;
    pieces[at].size += pieces[at + 1].size;
    pieces[at].id = best->merged;
    for (std::size_t i = at + 1; i + 1 < pieces.size(); ++i) {
      pieces[i] = pieces[i + 1];
      with_next[i] = with_next[i + 1];
    }
    pieces.pop_back();
    if (at > 0) with_next[at - 1] = find(pieces[at - 1].id, pieces[at].id);
    with_next[at] = at + 1 < pieces.size() ? find(pieces[at].id, pieces[at + 1].id) : nullptr;
  }
}

void MergeTable::merge_long(std::vector<Piece>& pieces, Scratch& scratch) const {
  const auto count = static_cast<std::uint32_t>(pieces.size());
  std::vector<MergeCandidate>& heap = scratch.heap;
  std::vector<std::uint32_t>& previous = scratch.previous;
  std::vector<std::uint32_t>& next = scratch.next;
  heap.clear();
  for (std::uint32_t i = 1; i < count; ++i) propose(pieces, i - 1, i, scratch);
  if (heap.empty()) return;
  std::make_heap(heap.begin(), heap.end(), worse);
  previous.resize(count);
  next.resize(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    previous[i] = i - 1;  // of the first: beyond every index
    next[i] = i + 1;
  }
  const auto propose_and_sift = [&](std::uint32_t left, std::uint32_t right) {
    const std::size_t before = heap.size();
    propose(pieces, left, right, scratch);
    if (heap.size() > before) std::push_heap(heap.begin(), heap.end(), worse);
  };
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), worse);
    const MergeCandidate best = heap.back();
    heap.pop_back();
    Piece& left = pieces[best.left];
    Piece& right = pieces[best.right];
    if (left.size == 0 || right.size == 0 || left.id != best.left_id || right.id != best.right_id) continue;
    left.size += right.size;
    left.id = best.merged;
    right.size = 0;
    next[best.left] = next[best.right];
    if (next[best.left] < count) {
      previous[next[best.left]] = best.left;
      propose_and_sift(best.left, next[best.left]);
    }
    if (previous[best.left] < count) propose_and_sift(previous[best.left], best.left);
  }
}

}  // namespace braid::text
