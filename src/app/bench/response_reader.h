// One HTTP/1.1 response read piece by piece: head, chunked or plain body, and the server-sent events in it, or all of it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace braid::bench {

class ResponseReader {
 public:
  enum class State : std::uint8_t { kHead, kBody, kDone, kBroken };
  // Called with the data of each event.
  using OnEvent = std::function<void(std::string_view data)>;

  explicit ResponseReader(OnEvent on_event) : on_event_(std::move(on_event)) {}
  // Keeps the body as it is.
  ResponseReader() = default;

  void feed(std::string_view bytes);
  // The peer closed: ends a body that has neither length nor chunks, breaks any other.
  void close();

  State state() const { return state_; }
  int status() const { return status_; }
  bool keeps_alive() const { return keeps_alive_; }
  // Of a success, without on_event.
  const std::string& body() const { return data_; }
  // The start of the body of an answer that is no success.
  const std::string& error_body() const { return error_body_; }

 private:
  enum class Framing : std::uint8_t { kUntilClose, kLength, kChunkSize, kChunk, kChunkEnd, kTrailer };
  void read_head();
  void read_header(std::string_view name, std::string_view value);
  void read_body(std::string_view bytes);
  void read_framing_line(std::string_view line);
  void read_content(std::string_view bytes);
  void read_event_line(std::string_view line);

  OnEvent on_event_;  // empty: the body is kept
  State state_ = State::kHead;
  Framing framing_ = Framing::kUntilClose;
  std::string pending_;  // an unfinished head or framing line
  std::string line_;     // an unfinished line of an event
  std::string data_;     // of the event so far, or the body
  std::string error_body_;
  std::uint64_t left_ = 0;  // bytes of the body or of the chunk
  int status_ = 0;
  bool keeps_alive_ = true;
};

}  // namespace braid::bench
