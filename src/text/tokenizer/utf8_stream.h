// Passes on bytes as whole, valid UTF-8 characters. What is no UTF-8 becomes U+FFFD, one for each maximal subpart of a
// character (https://encoding.spec.whatwg.org/#utf-8-decoder).
#pragma once

#include <string>
#include <string_view>

namespace braid::text {

class Utf8Stream {
 public:
  void append(std::string_view bytes, std::string& out);
  // An unfinished character at the end becomes U+FFFD.
  void finish(std::string& out);

 private:
  void begin_character(unsigned char byte, std::string& out);

  char pending_[4] = {};
  unsigned pending_size_ = 0;
  unsigned needed_ = 0;                        // continuation bytes still to come
  unsigned char lower_ = 0x80, upper_ = 0xbf;  // bounds of the next continuation byte
};

}  // namespace braid::text
