// From bytes to a Request, without sockets: the only user of Beast's parser.
#pragma once

#include "net/http/request.h"

#include <cstddef>
#include <functional>
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

  // A request whose header `comes_in_pieces` may have a body of any length: feed() returns at the header's end, and take_piece() gives what
  // has been fed.
  explicit RequestReader(const ReadLimits& limits, std::function<bool(const Request&)> comes_in_pieces = {});
  ~RequestReader();

  // Parses from the front of `bytes` and returns how many were used. The rest must be given again, with more behind it unless it
  // has_paused(); after kComplete it belongs to the next request.
  std::size_t feed(std::string_view bytes);
  bool has_paused() const { return paused_; }  // the last feed(), after so many chunks that it is somebody else's turn

  Stage stage() const { return stage_; }
  bool expects_continue() const;  // in kBody: the client waits for 100 Continue before it sends the body
  const Failure& failure() const { return failure_; }

  Request take();  // in kComplete, once

  bool in_pieces() const { return in_pieces_; }
  std::string take_piece();  // of a body that comes in pieces, what has been read since the last time

  // What is known of a request before it is complete: no body, and before its header's end nothing.
  Request known() const;

 private:
  struct Parser;

  Request header() const;
  void judge_header();
  void fail(int status, std::string message);

  std::unique_ptr<Parser> parser_;
  ReadLimits limits_;
  std::function<bool(const Request&)> comes_in_pieces_;
  bool in_pieces_ = false;
  Stage stage_ = Stage::kHeader;
  bool has_header_ = false;
  bool paused_ = false;
  Failure failure_;
};

}  // namespace braid::net::http
