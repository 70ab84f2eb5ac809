// What came of one request, and how its stream is measured.
#pragma once

#include <chrono>
#include <cstdint>
#include <simdjson.h>
#include <string>
#include <string_view>
#include <vector>

namespace braid::bench {

using Clock = std::chrono::steady_clock;

struct Outcome {
  std::string failure;         // its kind; empty: the request succeeded
  std::string message;         // what the server said about it
  double ttft_ms = 0;          // from the start of the request to the first chunk with text
  double e2el_ms = 0;          // to the last such chunk
  std::vector<double> itl_ms;  // between such chunks
  std::string text;            // of the answer, reasoning included, tool calls not
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;
  bool has_usage = false;  // otherwise output_tokens counts chunks
};

// Measures a stream event by event. A chunk counts when it carries text (content, reasoning or a tool call): the first chunk of a chat
// that only names the role says nothing about a token.
class StreamMeter {
 public:
  StreamMeter(simdjson::dom::parser& parser, Clock::time_point start, Outcome& outcome)
      : parser_(parser), start_(start), outcome_(outcome) {}

  void on_event(std::string_view data, Clock::time_point now);
  // Of an answer that came whole: its usage, and what it says, as text.
  void on_whole(std::string_view body, Clock::time_point now);
  // After the end of the stream: what is still missing becomes the failure.
  void finish();
  std::int64_t chunks() const { return chunks_; }

 private:
  void count_chunk(Clock::time_point now);
  simdjson::dom::parser& parser_;
  Clock::time_point start_;
  Clock::time_point last_;
  Outcome& outcome_;
  std::int64_t chunks_ = 0;
  bool finished_ = false;  // [DONE] or a finish_reason came
};

}  // namespace braid::bench
