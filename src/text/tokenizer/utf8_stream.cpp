#include "text/tokenizer/utf8_stream.h"

namespace braid::text {
namespace {

constexpr std::string_view kReplacement = "\ufffd";

}  // namespace

void Utf8Stream::begin_character(unsigned char byte, std::string& out) {
  lower_ = 0x80;
  upper_ = 0xbf;
  pending_size_ = 0;
  if (byte < 0x80) {
    out += static_cast<char>(byte);
    return;
  }
  if (byte < 0xc2 || byte > 0xf4) {
    out += kReplacement;
    return;
  }
  needed_ = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
  if (byte == 0xe0) lower_ = 0xa0;  // shorter encodings exist
  if (byte == 0xed) upper_ = 0x9f;  // surrogates
  if (byte == 0xf0) lower_ = 0x90;
  if (byte == 0xf4) upper_ = 0x8f;  // beyond U+10FFFF
  pending_[pending_size_++] = static_cast<char>(byte);
}

void Utf8Stream::append(std::string_view bytes, std::string& out) {
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (needed_ == 0) {
      begin_character(byte, out);
    } else if (byte < lower_ || byte > upper_) {
      needed_ = 0;
      out += kReplacement;
      begin_character(byte, out);
    } else {
      lower_ = 0x80;
      upper_ = 0xbf;
      pending_[pending_size_++] = c;
      if (--needed_ == 0) out.append(pending_, pending_size_);
    }
  }
}

void Utf8Stream::finish(std::string& out) {
  if (needed_ > 0) out += kReplacement;
  needed_ = 0;
}

}  // namespace braid::text
