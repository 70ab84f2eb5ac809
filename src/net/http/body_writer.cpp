#include "net/http/body_writer.h"

namespace braid::net::http {

std::string_view BodyWriter::frame(bool last) {
  if (framing_ != Framing::kChunked) return std::string_view(buffer_).substr(kRoom);
  std::size_t begin = kRoom;
  buffer_[--begin] = '\n';
  buffer_[--begin] = '\r';
  for (std::size_t size = buffer_.size() - kRoom; size > 0; size >>= 4U) buffer_[--begin] = "0123456789abcdef"[size & 15U];
  buffer_ += last ? "\r\n0\r\n\r\n" : "\r\n";
  return std::string_view(buffer_).substr(begin);
}

}  // namespace braid::net::http
