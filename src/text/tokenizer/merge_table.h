// The merges of a bigram tokenizer, and the algorithm that applies the best one again and again
// (Sennrich et al. 2016, "Neural Machine Translation of Rare Words with Subword Units").
#pragma once

#include <cstdint>
#include <vector>

namespace braid::text {

// A piece of text during merging. Ids are token ids, or larger numbers for pieces that are no tokens.
using PieceId = std::int32_t;
inline constexpr PieceId kNoPiece = -1;

struct Piece {
  PieceId id = kNoPiece;    // kNoPiece takes part in no merge
  std::uint32_t begin = 0;  // bytes of the text
  std::uint32_t size = 0;   // 0: merged into the piece before
};

class MergeTable {
 public:
  // Buffers of merge(), to be reused from text to text.
  struct Scratch {
    struct Candidate {
      float priority;
      std::uint32_t left, right;  // indices of pieces
      PieceId left_id, right_id;  // as they were: another merge may have come first
      PieceId merged;
    };
    std::vector<Candidate> heap;
    std::vector<std::uint32_t> previous, next;
  };

  void reserve(std::size_t merges);
  // Of two merges of the same pair the first counts.
  void add(PieceId left, PieceId right, float priority, PieceId merged);

  // Applies merges, highest priority first and leftmost among equals, until none is left. O(n log n). Pieces that went into
  // others are gone or have size 0.
  void merge(std::vector<Piece>& pieces, Scratch& scratch) const;

 private:
  struct Slot {
    PieceId left = kNoPiece;  // kNoPiece: free
    PieceId right = kNoPiece;
    PieceId merged = kNoPiece;
    float priority = 0;
  };
  const Slot* find(PieceId left, PieceId right) const;
  static constexpr std::size_t kShort = 24;
  void merge_short(std::vector<Piece>& pieces) const;
  void merge_long(std::vector<Piece>& pieces, Scratch& scratch) const;
  std::size_t home(PieceId left, PieceId right) const;
  void propose(const std::vector<Piece>& pieces, std::uint32_t left, std::uint32_t right, Scratch& scratch) const;

  std::vector<Slot> slots_;  // open addressing; a power of two, at most half full
  std::size_t used_ = 0;
};

}  // namespace braid::text
