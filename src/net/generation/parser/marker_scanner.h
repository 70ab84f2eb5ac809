// Finds markers such as <tool_call> in text that arrives in pieces.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace braid::net {

// Holds back no more than what may still become a marker, and the white space before it: what is dropped there depends on whether
// one follows. Of markers of which one begins another, the shorter is found.
class MarkerScanner {
 public:
  // Markers are neither empty nor begin with white space.
  explicit MarkerScanner(std::vector<std::string> markers);

  // Takes one byte and appends to `out` what no marker can claim any more. The index of the marker that this byte completes;
  // space() then is what stood before it, and the scanner is ready for what follows.
  std::optional<std::size_t> feed(char c, std::string& out);

  // What may still become a marker, or is white space before it; appended to `out` and forgotten.
  void flush(std::string& out);

  const std::string& space() const { return space_; }
  std::string_view held() const { return held_; }    // the beginning of a marker
  bool in_marker() const { return !held_.empty(); }  // what came last may become one
  bool at_marker() const { return at_marker_; }      // since the last one nothing but white space, and what may become another
  bool behind_marker() const { return found_; }      // what came last was one

 private:
  bool is_prefix(std::string_view text) const;

  std::vector<std::string> markers_;
  std::array<bool, 256> first_{};  // bytes that markers begin with
  std::string space_;              // white space that nothing has followed yet
  std::string held_;               // a proper prefix of a marker
  bool at_marker_ = false;
  bool found_ = false;  // space_ is of the last marker
};

}  // namespace braid::net
