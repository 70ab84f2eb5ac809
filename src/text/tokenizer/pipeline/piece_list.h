// A text on its way to tokens: cut into pieces, some of which are tokens already.
#pragma once

#include "braid/generation_request.h"
#include "text/tokenizer/unicode.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::text {

struct TextPiece {
  std::size_t begin = 0, end = 0;  // bytes of PieceList::text
  TokenId token = -1;              // an added token; -1: text
  std::size_t origin = 0;          // bytes at its beginning that stem from the first character of the whole text
};

struct PieceList {
  std::string text;
  std::vector<TextPiece> pieces;  // in order

  std::string_view of(const TextPiece& piece) const { return std::string_view(text).substr(piece.begin, piece.end - piece.begin); }
};

// A part of a text that a pattern matched, or that lies between two matches. Spans of one search cover the text in order; those that
// match may be empty.
struct TextSpan {
  std::size_t begin = 0, end = 0;
  bool is_match = false;
};

// What becomes of matches; as the tokenizers library names them.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

// Leaves of `spans` the parts that are pieces.
void apply_behavior(SplitBehavior behavior, std::vector<TextSpan>& spans);

// Cuts every piece of text: find(text, spans) appends the spans of one, to be kept as they are. Empty ones are dropped.
template <class Find>
void cut_pieces(PieceList& list, Find find) {
  std::vector<TextPiece> cut;
  cut.reserve(list.pieces.size());
  std::vector<TextSpan> spans;
  for (const TextPiece& piece : list.pieces) {
    if (piece.token >= 0) {
      cut.push_back(piece);
      continue;
    }
    spans.clear();
    find(list.of(piece), spans);
    for (const TextSpan& span : spans)
      if (span.begin < span.end)
        cut.push_back({piece.begin + span.begin, piece.begin + span.end, -1, piece.origin - std::min(piece.origin, span.begin)});
  }
  list.pieces = std::move(cut);
}

// Writes every piece of text anew: rewrite(piece, text, out) appends what it becomes to `out` and gives its new `origin`. Empty ones are
// dropped.
template <class Rewrite>
void rewrite_pieces(PieceList& list, Rewrite rewrite) {
  std::string out;
  out.reserve(list.text.size() + list.text.size() / 2 + list.pieces.size());
  std::vector<TextPiece> rewritten;
  rewritten.reserve(list.pieces.size());
  for (const TextPiece& piece : list.pieces) {
    const std::size_t begin = out.size();
    std::size_t origin = piece.origin;
    if (piece.token >= 0) {
      out += list.of(piece);
    } else {
      origin = rewrite(piece, list.of(piece), out);
    }
    if (piece.token >= 0 || out.size() > begin) rewritten.push_back({begin, out.size(), piece.token, origin});
  }
  list.text = std::move(out);
  list.pieces = std::move(rewritten);
}

// Appends the spans of the characters that are `wanted`, each a match of its own, and of what lies between. Characters of `text` are
// valid UTF-8.
template <class Wanted>
void find_characters(std::string_view text, Wanted wanted, std::vector<TextSpan>& spans) {
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text, at);
    if (wanted(c.code)) {
      if (begin < at) spans.push_back({begin, at, false});
      spans.push_back({at, at + c.size, true});
      begin = at + c.size;
    }
    at += c.size;
  }
  if (begin < text.size()) spans.push_back({begin, text.size(), false});
}

}  // namespace braid::text
