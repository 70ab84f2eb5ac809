#include "net/ollama/blobs.h"

#include "net/http/query.h"
#include "net/http/request_reader.h"
#include "net/ollama/line_format.h"
#include "net/service/document_stream.h"
#include "net/service/registry_jobs.h"

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace braid::net::ollama {
namespace {

namespace asio = boost::asio;
using http::RequestReader;

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;  // written at once
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

// The last segment of the path.
std::string digest_in(std::string_view target) {
  target = target.substr(0, target.find('?'));
  return http::percent_decode(target.substr(target.rfind('/') + 1));
}

http::Response empty_response(int status) {
  http::Response response;
  response.status = status;
  response.content_type = "";
  return response;
}

// From the connection into the registry, piece by piece.
class Reception {
 public:
  Reception(Service& service, http::Connection& connection, RequestReader& reader, std::shared_ptr<BlobUpload> upload)
      : service_(service), connection_(connection), reader_(reader), upload_(std::move(upload)) {}

  asio::awaitable<Result<void>> run() {
    const auto write_timeout = service_.options.write_timeout;
    if (reader_.expects_continue() && connection_.input().empty() && !co_await connection_.write(kContinue, write_timeout))
      co_return gone();
    std::string piece;
    while (reader_.stage() != RequestReader::Stage::kComplete) {
      connection_.consume(reader_.feed(connection_.input()));
      piece += reader_.take_piece();
      if (reader_.stage() == RequestReader::Stage::kFailed) co_return invalid_argument(reader_.failure().message);
      if (piece.size() >= kPieceBytes) {
        const Result<void> written = co_await write(std::exchange(piece, std::string()));
        if (!written) co_return written.error();
      }
      if (reader_.stage() == RequestReader::Stage::kComplete) break;
      if (reader_.has_paused())
        co_await asio::post(service_.loop, asio::use_awaitable);
      else if (!co_await connection_.read_more(service_.options.body_timeout))
        co_return gone();
    }
    const Result<void> written = co_await write(std::move(piece));
    if (!written) co_return written.error();
    std::function<Result<void>(ModelRegistry&)> finish = [upload = upload_](ModelRegistry&) { return upload->finish(); };
    co_return co_await ask_registry(service_, std::move(finish));
  }

 private:
  static Error gone() { return {ErrorCode::kTimeout, "the file did not arrive", ""}; }

  asio::awaitable<Result<void>> write(std::string piece) {
    std::function<Result<void>(ModelRegistry&)> append = [upload = upload_, piece = std::move(piece)](ModelRegistry&) {
      return upload->append(piece);
    };
    co_return co_await ask_registry(service_, std::move(append));
  }

  Service& service_;
  http::Connection& connection_;
  RequestReader& reader_;
  std::shared_ptr<BlobUpload> upload_;
};

}  // namespace

asio::awaitable<bool> find_blob(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection, http::Request request,
                                RequestRecord& record) {
  std::function<Result<bool>(ModelRegistry&)> look = [digest = digest_in(request.target)](ModelRegistry& registry) {
    return registry.has_blob(digest);
  };
  const Result<bool> found = co_await ask_registry(*service, std::move(look));
  const int status = found ? (*found ? 200 : 404) : error_response(found.error()).status;
  const http::Response response = empty_response(status);
  DocumentStream stream(*service, *connection, request, record, nullptr);
  co_return co_await stream.answer(response);
}

asio::awaitable<bool> receive_blob(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection, http::Request request,
                                   RequestRecord& record) {
  using Opened = std::shared_ptr<BlobUpload>;
  std::function<Result<Opened>(ModelRegistry&)> open = [digest = digest_in(request.target)](ModelRegistry& registry) -> Result<Opened> {
    Result<std::unique_ptr<BlobUpload>> upload = registry.receive_blob(digest);
    if (!upload) return upload.error();
    return Opened(std::move(*upload));
  };
  Result<Opened> upload = co_await ask_registry(*service, std::move(open));
  Result<void> received;
  if (upload) {
    Reception reception(*service, *connection, *request.rest, std::move(*upload));
    received = co_await reception.run();
  } else {
    received = upload.error();
  }
  const http::Response response = received ? empty_response(201) : error_response(received.error());
  DocumentStream stream(*service, *connection, request, record, nullptr);
  co_return co_await stream.answer(response);
}

}  // namespace braid::net::ollama
