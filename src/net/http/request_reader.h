// From bytes to a Request, without sockets: the only user of Beast's parser.
#pragma once

#include "net/http/request.h"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace braid::net::http {

struct ReadLimits {
  std::size_t header_bytes = 0;
  std::size_t body_bytes = 0;
};

class RequestReader {
 public:
  enum class Stage { kHeader, kBody, kComplete, kFailed };

  // Why a request cannot be answered: a status, and a sentence for the client.
  struct Failure {
    int status = 400;
    std::string message;
  };

  explicit RequestReader(const ReadLimits& limits);
  ~RequestReader();

  // Parses from the front of `bytes` and returns how many were used. The rest must be given again, with more behind it unless it
  // has_paused(); after kComplete it belongs to the next request.
  std::size_t feed(std::string_view bytes);
  bool has_paused() const { return paused_; }  // the last feed(), after so many chunks that it is somebody else's turn

  Stage stage() const { return stage_; }
  bool expects_continue() const;  // in kBody: the client waits for 100 Continue before it sends the body
  const Failure& failure() const { return failure_; }

  Request take();  // in kComplete, once

  // What is known of a request before it is complete: no body, and before its header's end nothing.
  Request known() const;

 private:
  struct Parser;

  Request header() const;
  void fail(int status, std::string message);

  std::unique_ptr<Parser> parser_;
  ReadLimits limits_;
  Stage stage_ = Stage::kHeader;
  bool has_header_ = false;
  bool paused_ = false;
  Failure failure_;
};

}  // namespace braid::net::http
