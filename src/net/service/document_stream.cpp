#include "net/service/document_stream.h"

#include <boost/asio/use_awaitable.hpp>
#include <string>
#include <utility>

namespace braid::net {

namespace asio = boost::asio;

DocumentStream::DocumentStream(Service& service, http::Connection& connection, const http::Request& request, RequestRecord& record,
                               std::function<void()> on_gone)
    : service_(service), connection_(connection), request_(request), record_(record),
      framing_(request.version == 10 ? http::Framing::kClose : http::Framing::kChunked) {
  connection_.begin_watch(service.options.max_header_bytes + service.options.max_body_bytes, [&connection, on_gone = std::move(on_gone)] {
    if (connection.gone() && on_gone) on_gone();
  });
}

asio::awaitable<bool> DocumentStream::write(std::string_view bytes) {
  const bool written = co_await connection_.write(bytes, service_.options.write_timeout);
  if (!written) record_.lose();
  co_return written;
}

asio::awaitable<bool> DocumentStream::answer(const http::Response& response) {
  if (connection_.gone()) {
    record_.lose();
    co_return false;
  }
  const bool keep_alive = request_.keep_alive && !service_.is_closing();
  if (response.refusal) service_.counters.count(refusal_of(*response.refusal));
  std::string bytes;
  http::append_head(bytes, response, http::Framing::kLength, request_, keep_alive);
  if (request_.method != http::Method::kHead) bytes += response.body;
  if (!co_await write(bytes)) co_return false;
  record_.end(response.status);
  co_return keep_alive;
}

asio::awaitable<bool> DocumentStream::begin(DocumentForm form) {
  form_ = form;
  http::Response response;
  response.content_type = form == DocumentForm::kEvents ? "text/event-stream" : "application/x-ndjson";
  response.headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}};
  std::string head;
  http::append_head(head, response, framing_, request_,
                    framing_ == http::Framing::kChunked && request_.keep_alive && !service_.is_closing());
  co_return co_await write(head);
}

asio::awaitable<bool> DocumentStream::send(std::string_view document) {
  std::string buffer;
  http::BodyWriter body(framing_, buffer);
  if (form_ == DocumentForm::kEvents) body.buffer() += "data: ";
  body.buffer() += document;
  body.buffer() += form_ == DocumentForm::kEvents ? "\n\n" : "\n";
  co_return co_await write(body.frame(false));
}

asio::awaitable<bool> DocumentStream::end() {
  const bool is_chunked = framing_ == http::Framing::kChunked;
  if (is_chunked && !co_await write("0\r\n\r\n")) co_return false;
  record_.end(200);
  co_return framing_ == http::Framing::kChunked&& request_.keep_alive && !service_.is_closing();
}

}  // namespace braid::net
