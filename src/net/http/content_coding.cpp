#include "net/http/content_coding.h"

#include <algorithm>
#include <boost/beast/core/string.hpp>
#include <fmt/format.h>
#include <memory>
#include <zlib.h>
#include <zstd.h>

namespace braid::net::http {
namespace {

constexpr std::size_t kPiece = std::size_t{64} << 10;
constexpr int kGzip = 16 + MAX_WBITS;
constexpr int kRawDeflate = -MAX_WBITS;
constexpr int kMostZstdWindow = 23;  // 8 MiB, the most that RFC 9659 lets a sender ask for

Error damaged(std::string_view coding) {
  return invalid_argument(fmt::format("the body is not what its Content-Encoding says: {}", coding));
}

Error too_large(std::size_t most) {
  return {ErrorCode::kTooLarge, fmt::format("the body is larger than {} bytes once it is unpacked", most), ""};
}

// Room for the next piece of what comes out: at least one byte more than allowed, so that a body of exactly `most` bytes comes to its end.
std::size_t grow(std::string& out, std::size_t used, std::size_t most) {
  out.resize(std::min(used + kPiece, most + 1));
  return out.size() - used;
}

class Inflater {
 public:
  explicit Inflater(int window_bits) : ready_(inflateInit2(&stream_, window_bits) == Z_OK) {}
  ~Inflater() {
    if (ready_) inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // A gzip body may consist of several parts (RFC 1952, 2.2).
  Result<std::string> inflate_all(std::string_view body, std::string_view coding, std::size_t most) {
    if (!ready_) return Error{ErrorCode::kInternal, "there is no memory to unpack the body", ""};
    std::string out;
    std::size_t used = 0;
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(body.data()));  // zlib reads it only
    stream_.avail_in = static_cast<uInt>(body.size());
    while (true) {
      const std::size_t room = grow(out, used, most);
      stream_.next_out = reinterpret_cast<Bytef*>(out.data() + used);
      stream_.avail_out = static_cast<uInt>(room);
      const int state = inflate(&stream_, Z_NO_FLUSH);
      used += room - stream_.avail_out;
      if (used > most) return too_large(most);
      const bool ended = state == Z_STREAM_END;
      if (!ended && (state != Z_OK || (stream_.avail_in == 0 && stream_.avail_out > 0))) return damaged(coding);
      if (!ended) continue;
      if (stream_.avail_in == 0) break;
      if (inflateReset(&stream_) != Z_OK) return damaged(coding);
    }
    out.resize(used);
    return out;
  }

 private:
  z_stream stream_{};
  bool ready_;
};

Result<std::string> inflate_with(int window_bits, std::string_view body, std::string_view coding, std::size_t most) {
  Inflater inflater(window_bits);
  return inflater.inflate_all(body, coding, most);
}

// With the header of zlib, as the standard has it, or without, as some clients send it.
Result<std::string> decode_deflate(std::string_view body, std::string_view coding, std::size_t most) {
  Result<std::string> out = inflate_with(MAX_WBITS, body, coding, most);
  if (out || out.error().code == ErrorCode::kTooLarge) return out;
  return inflate_with(kRawDeflate, body, coding, most);
}

Result<std::string> decode_zstd(std::string_view body, std::string_view coding, std::size_t most) {
  const std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(), ZSTD_freeDCtx);
  if (context == nullptr) return Error{ErrorCode::kInternal, "there is no memory to unpack the body", ""};
  if (ZSTD_isError(ZSTD_DCtx_setParameter(context.get(), ZSTD_d_windowLogMax, kMostZstdWindow)) != 0) return damaged(coding);
  std::string out;
  std::size_t used = 0;
  ZSTD_inBuffer input{body.data(), body.size(), 0};
  while (true) {
    const std::size_t room = grow(out, used, most);
    ZSTD_outBuffer output{out.data() + used, room, 0};
    const std::size_t left = ZSTD_decompressStream(context.get(), &output, &input);
    if (ZSTD_isError(left) != 0) return damaged(coding);
    used += output.pos;
    if (used > most) return too_large(most);
    if (left == 0 && input.pos == input.size) break;
    if (input.pos == input.size && output.pos < output.size) return damaged(coding);  // the last frame is cut off
  }
  out.resize(used);
  return out;
}

bool is_name(std::string_view coding, std::string_view name) { return boost::beast::iequals(coding, name); }

}  // namespace

bool is_coded(std::string_view coding) { return !coding.empty() && !is_name(coding, "identity"); }

Result<std::string> decode_body(std::string_view body, std::string_view coding, std::size_t most) {
  if (!is_coded(coding)) return std::string(body);
  if (is_name(coding, "gzip") || is_name(coding, "x-gzip")) return inflate_with(kGzip, body, coding, most);
  if (is_name(coding, "deflate")) return decode_deflate(body, coding, most);
  if (is_name(coding, "zstd")) return decode_zstd(body, coding, most);
  return Error{ErrorCode::kUnsupportedMedia,
               fmt::format("this server does not know the Content-Encoding '{}': send {}, or the body as it is", coding, kContentCodings),
               ""};
}

}  // namespace braid::net::http
