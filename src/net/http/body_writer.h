// Pieces of a body whose length is not known before, in the framing that the client understands.
#pragma once

#include "net/http/response.h"

#include <string>
#include <string_view>

namespace braid::net::http {

// Composes each piece in a buffer that any number of writers use in turn, with room before it for a chunk's size, so that one write takes
// it all. Between clear() and the last use of frame()'s result nobody else may use the buffer, which outlives the writer.
class BodyWriter {
 public:
  BodyWriter(Framing framing, std::string& buffer) : framing_(framing), buffer_(buffer) { clear(); }

  std::string& buffer() { return buffer_; }  // append the piece here
  bool empty() const { return buffer_.size() == kRoom; }

  // The piece as it goes over the wire, the end of the body behind it if it is the `last`; valid until clear().
  std::string_view frame(bool last);
  void clear() { buffer_.assign(kRoom, '\0'); }

 private:
  static constexpr std::size_t kRoom = 10;  // eight hexadecimal digits and CRLF

  Framing framing_;
  std::string& buffer_;
};

}  // namespace braid::net::http
