// An answer that comes in its time: a JSON document at once, or several of them one after the other.
#pragma once

#include "net/http/body_writer.h"
#include "net/http/connection.h"
#include "net/http/request.h"
#include "net/http/response.h"
#include "net/log/request_record.h"
#include "net/service/service.h"

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <string_view>

namespace braid::net {

enum class DocumentForm {
  kEvents,  // server-sent events
  kLines,   // a document a line
};

// Loop only. Either answer(), or begin(), send() any number of times, and end(). False: the client has gone, or takes nothing. All arguments
// outlive it.
class DocumentStream {
 public:
  // `on_gone` is called when the client goes while nothing is written.
  DocumentStream(Service& service, http::Connection& connection, const http::Request& request, RequestRecord& record,
                 std::function<void()> on_gone);
  ~DocumentStream() { connection_.end_watch(); }
  DocumentStream(const DocumentStream&) = delete;
  DocumentStream& operator=(const DocumentStream&) = delete;

  bool gone() const { return connection_.gone(); }

  // True: the connection may take another request, as of end().
  boost::asio::awaitable<bool> answer(const http::Response& response);

  boost::asio::awaitable<bool> begin(DocumentForm form);
  boost::asio::awaitable<bool> send(std::string_view document);
  boost::asio::awaitable<bool> end();

 private:
  boost::asio::awaitable<bool> write(std::string_view bytes);

  Service& service_;
  http::Connection& connection_;
  const http::Request& request_;
  RequestRecord& record_;
  const http::Framing framing_;
  DocumentForm form_ = DocumentForm::kEvents;
};

}  // namespace braid::net
