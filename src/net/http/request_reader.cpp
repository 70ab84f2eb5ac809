#include "net/http/request_reader.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <fmt/format.h>
#include <optional>
#include <utility>

namespace braid::net::http {
namespace {

namespace beast_http = boost::beast::http;

constexpr std::size_t kMaxRequestIdBytes = 128;
// What is left of a chunked body is never less ("0\r\n\r\n"); Beast asserts that it has so much of a last chunk's header.
constexpr std::size_t kLeastChunkedRest = 5;
constexpr int kMostPieces = 1024;                                 // of a chunked body at once: sizes and chunks
constexpr std::uint64_t kReservedBytes = std::uint64_t{1} << 20;  // of what a client says that it will send

// A string that grows with what comes: Beast's own would reserve whatever length a header names.
struct GrowingBody {
  using value_type = std::string;

  class reader {
   public:
    template <bool is_request, class Fields>
    reader(beast_http::header<is_request, Fields>&, value_type& body) : body_(body) {}

    void init(const boost::optional<std::uint64_t>& length, boost::system::error_code& failure) {
      body_.reserve(static_cast<std::size_t>(std::min(length.value_or(0), kReservedBytes)));
      failure = {};
    }
    template <class Buffers>
    std::size_t put(const Buffers& buffers, boost::system::error_code& failure) {
      failure = {};
      std::size_t bytes = 0;
      for (auto piece = boost::asio::buffer_sequence_begin(buffers); piece != boost::asio::buffer_sequence_end(buffers); ++piece) {
        const boost::asio::const_buffer buffer(*piece);
        body_.append(static_cast<const char*>(buffer.data()), buffer.size());
        bytes += buffer.size();
      }
      return bytes;
    }
    void finish(boost::system::error_code& failure) { failure = {}; }

   private:
    value_type& body_;
  };
};

Method to_method(beast_http::verb verb) {
  switch (verb) {
    case beast_http::verb::get:
      return Method::kGet;
    case beast_http::verb::head:
      return Method::kHead;
    case beast_http::verb::post:
      return Method::kPost;
    case beast_http::verb::delete_:
      return Method::kDelete;
    case beast_http::verb::options:
      return Method::kOptions;
    default:
      return Method::kOther;
  }
}

// A client's id comes back in a header and goes to the log: visible ASCII only.
std::string accept_request_id(std::string_view id) {
  const bool visible = std::all_of(id.begin(), id.end(), [](char c) { return c > 0x20 && c < 0x7F; });
  return visible && id.size() <= kMaxRequestIdBytes ? std::string(id) : std::string();
}

// RFC 9112, 9.3: one "close" among all options decides; a client of HTTP/1.0 has to ask for more.
bool keeps_alive(const beast_http::request_header<>& header) {
  bool asks = false;
  const auto [begin, end] = header.equal_range(beast_http::field::connection);
  for (auto field = begin; field != end; ++field) {
    for (const auto& option : beast_http::token_list(field->value())) {
      if (boost::beast::iequals(option, "close")) return false;
      asks = asks || boost::beast::iequals(option, "keep-alive");
    }
  }
  return asks || header.version() >= 11;
}

// Authorization: Bearer KEY, or nothing. The scheme's name has any case (RFC 9110, 11.1).
std::string bearer_key(std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer ";
  if (!boost::beast::iequals(authorization.substr(0, kScheme.size()), kScheme)) return {};
  authorization.remove_prefix(kScheme.size());
  const std::size_t begin = authorization.find_first_not_of(' ');
  return begin == std::string_view::npos ? std::string() : std::string(authorization.substr(begin));
}

// What Beast takes and this server does not (RFC 9112, 3.2, 6.1 and 6.3): whoever is in front of it may see other requests in the same bytes.
std::optional<RequestReader::Failure> fault_of(const beast_http::request_header<>& header, bool chunked) {
  const auto hosts = header.count(beast_http::field::host);
  if (hosts > 1 || (hosts == 0 && header.version() >= 11))
    return RequestReader::Failure{400, "a request names its host once, in the header Host"};
  const auto codings = header.count(beast_http::field::transfer_encoding);
  if (codings == 0) return std::nullopt;
  if (!chunked || header.version() < 11)
    return RequestReader::Failure{400, "a Transfer-Encoding must end in chunked, in a request of HTTP/1.1"};
  if (header.count(beast_http::field::content_length) > 0)
    return RequestReader::Failure{400, "a request has a Content-Length or a Transfer-Encoding, not both"};
  if (codings > 1 || !boost::beast::iequals(header[beast_http::field::transfer_encoding], "chunked"))
    return RequestReader::Failure{501, "this server knows no Transfer-Encoding but chunked"};
  return std::nullopt;
}

}  // namespace

struct RequestReader::Parser : beast_http::request_parser<GrowingBody> {};

RequestReader::RequestReader(const ReadLimits& limits, std::function<bool(const Request&)> comes_in_pieces)
    : parser_(std::make_unique<Parser>()), limits_(limits), comes_in_pieces_(std::move(comes_in_pieces)) {
  parser_->header_limit(static_cast<std::uint32_t>(limits.header_bytes));
  parser_->body_limit(boost::none);  // judge_header() and feed() hold it against the limit
}

RequestReader::~RequestReader() = default;

std::size_t RequestReader::feed(std::string_view bytes) {
  std::size_t used = 0;
  if (!parser_->got_some())  // RFC 9112, 2.2: empty lines before a request are ignored
    while (used < bytes.size() && (bytes[used] == '\r' || bytes[used] == '\n')) ++used;
  paused_ = false;
  for (int pieces = 0; used < bytes.size() && stage_ != Stage::kComplete && stage_ != Stage::kFailed; ++pieces) {
    if (pieces == kMostPieces) {
      paused_ = true;
      break;
    }
    if (stage_ == Stage::kBody && parser_->chunked() && bytes.size() - used < kLeastChunkedRest) break;
    boost::system::error_code failure;
    const std::size_t taken = parser_->put(boost::asio::buffer(bytes.data() + used, bytes.size() - used), failure);
    used += taken;
    has_header_ = parser_->is_header_done();
    if (failure && failure != beast_http::error::need_more) {
      if (failure == beast_http::error::header_limit) {
        fail(431, fmt::format("the request's headers are larger than {} bytes", limits_.header_bytes));
      } else {
        fail(400, fmt::format("the request is not valid HTTP: {}", failure.message()));
      }
      break;
    }
    const bool header_ends = stage_ == Stage::kHeader && parser_->is_header_done();
    stage_ = parser_->is_done() ? Stage::kComplete : parser_->is_header_done() ? Stage::kBody : Stage::kHeader;
    if (header_ends) judge_header();
    if (stage_ == Stage::kFailed) break;
    if (header_ends && in_pieces_) {
      paused_ = true;
      break;
    }
    if (!in_pieces_ && parser_->get().body().size() > limits_.body_bytes) {
      fail(413, fmt::format("the body is larger than {} bytes", limits_.body_bytes));
      break;
    }
    if (failure || taken == 0) break;
  }
  // Beast waits for the end of a chunk's header and of the trailers, however long they are.
  if (stage_ == Stage::kBody && bytes.size() - used > limits_.header_bytes && !paused_)
    fail(431, fmt::format("a chunk's header or the trailers are larger than {} bytes", limits_.header_bytes));
  return used;
}

// Once, at its end.
void RequestReader::judge_header() {
  if (std::optional<Failure> fault = fault_of(parser_->get(), parser_->chunked())) return fail(fault->status, std::move(fault->message));
  in_pieces_ = comes_in_pieces_ && comes_in_pieces_(header());
  if (!in_pieces_ && parser_->content_length().value_or(0) > limits_.body_bytes)
    fail(413, fmt::format("the body is larger than {} bytes", limits_.body_bytes));
}

std::string RequestReader::take_piece() { return std::exchange(parser_->get().body(), std::string()); }

bool RequestReader::expects_continue() const {
  const auto& message = parser_->get();
  return message.version() >= 11 && boost::beast::iequals(message[beast_http::field::expect], "100-continue");
}

Request RequestReader::header() const {
  const auto& message = parser_->get();
  Request request;
  request.method = to_method(message.method());
  request.target = std::string(message.target());
  request.version = static_cast<int>(message.version());
  request.keep_alive = keeps_alive(message);
  request.request_id = accept_request_id(message["X-Request-Id"]);
  for (std::string key : {bearer_key(message[beast_http::field::authorization]), std::string(message["x-api-key"])})
    if (!key.empty()) request.api_keys.push_back(std::move(key));
  request.host = std::string(message[beast_http::field::host]);
  request.origin = std::string(message[beast_http::field::origin]);
  request.is_preflight = message.count(beast_http::field::access_control_request_method) > 0;
  request.asked_headers = std::string(message[beast_http::field::access_control_request_headers]);
  request.asks_private_network = boost::beast::iequals(message["Access-Control-Request-Private-Network"], "true");
  request.content_coding = std::string(message[beast_http::field::content_encoding]);
  request.prefers_html = message[beast_http::field::accept].find("text/html") != std::string_view::npos;
  request.speaks_anthropic = message.count("anthropic-version") > 0;
  request.capability = std::string(message["X-Braid-Token"]);
  request.traceparent = std::string(message["traceparent"]);
  const auto [begin, end] = message.equal_range("X-Forwarded-For");
  for (auto field = begin; field != end; ++field) {
    if (!request.forwarded_for.empty()) request.forwarded_for += ',';
    request.forwarded_for += field->value();
  }
  return request;
}

Request RequestReader::take() {
  Request request = header();
  request.body = std::move(parser_->get().body());
  return request;
}

Request RequestReader::known() const {
  if (has_header_) return header();
  Request unknown;
  unknown.method = Method::kOther;
  unknown.target.clear();
  return unknown;
}

void RequestReader::fail(int status, std::string message) {
  stage_ = Stage::kFailed;
  failure_ = {status, std::move(message)};
}

}  // namespace braid::net::http
