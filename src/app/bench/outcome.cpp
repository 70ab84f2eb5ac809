#include "app/bench/outcome.h"

namespace braid::bench {
namespace {

double milliseconds(Clock::duration duration) { return std::chrono::duration<double, std::milli>(duration).count(); }

bool take_text(simdjson::dom::object fields, std::string_view name, std::string& out) {
  std::string_view text;
  if (fields[name].get(text) != simdjson::SUCCESS || text.empty()) return false;
  out += text;
  return true;
}

// Appends the chunk's text to `out`. Whether it carries any, or a tool call.
bool take_chunk(simdjson::dom::object choice, std::string& out) {
  if (take_text(choice, "text", out)) return true;
  simdjson::dom::object delta;
  if (choice["delta"].get(delta) != simdjson::SUCCESS) return false;
  simdjson::dom::array calls;
  return take_text(delta, "content", out) || take_text(delta, "reasoning_content", out) || take_text(delta, "reasoning", out) ||
         (delta["tool_calls"].get(calls) == simdjson::SUCCESS && calls.size() > 0);
}

// An error instead of a chunk: an object or a text as "error", or, from older vLLM, an object that calls itself one.
bool is_error(simdjson::dom::object event) {
  simdjson::dom::element error;
  std::string_view kind;
  return (event["error"].get(error) == simdjson::SUCCESS && !error.is_null()) ||
         (event["object"].get(kind) == simdjson::SUCCESS && kind == "error");
}

}  // namespace

void StreamMeter::count_chunk(Clock::time_point now) {
  if (chunks_ == 0) {
    outcome_.ttft_ms = milliseconds(now - start_);
  } else {
    outcome_.itl_ms.push_back(milliseconds(now - last_));
  }
  ++chunks_;
  last_ = now;
  outcome_.e2el_ms = milliseconds(now - start_);
  if (!outcome_.has_usage) outcome_.output_tokens = chunks_;
}

void StreamMeter::on_event(std::string_view data, Clock::time_point now) {
  if (data == "[DONE]") {
    finished_ = true;
    return;
  }
  simdjson::dom::object event;
  if (parser_.parse(data.data(), data.size()).get(event) != simdjson::SUCCESS) {
    outcome_.failure = "protocol";
    outcome_.message = "an event is no JSON object";
    return;
  }
  if (is_error(event)) {
    outcome_.failure = "stream_error";
    outcome_.message = std::string(data.substr(0, 400));
    return;
  }
  simdjson::dom::array choices;
  if (event["choices"].get(choices) == simdjson::SUCCESS && choices.size() > 0) {
    simdjson::dom::object choice;
    std::string_view reason;
    if (choices.at(0).get(choice) == simdjson::SUCCESS) {
      if (take_chunk(choice, outcome_.text)) count_chunk(now);
      finished_ = finished_ || choice["finish_reason"].get(reason) == simdjson::SUCCESS;
    }
  }
  simdjson::dom::object usage;
  std::int64_t tokens = 0;
  if (event["usage"].get(usage) != simdjson::SUCCESS || usage["completion_tokens"].get(tokens) != simdjson::SUCCESS) return;
  outcome_.has_usage = true;
  outcome_.output_tokens = tokens;
  if (usage["prompt_tokens"].get(tokens) == simdjson::SUCCESS) outcome_.input_tokens = tokens;
}

void StreamMeter::on_whole(std::string_view body, Clock::time_point now) {
  count_chunk(now);
  finished_ = true;
  outcome_.output_tokens = 0;
  simdjson::dom::object answer;
  if (parser_.parse(body.data(), body.size()).get(answer) != simdjson::SUCCESS) {
    outcome_.failure = "protocol";
    outcome_.message = "the answer is no JSON object";
    return;
  }
  for (const char* name : {"data", "results", "outputs"}) {
    simdjson::dom::element said;
    if (answer[name].get(said) == simdjson::SUCCESS) outcome_.text = simdjson::minify(said);
  }
  std::int64_t tokens = 0;
  outcome_.has_usage = answer["usage"]["prompt_tokens"].get(tokens) == simdjson::SUCCESS;
  outcome_.input_tokens = tokens;
}

void StreamMeter::finish() {
  if (!outcome_.failure.empty()) return;
  if (!finished_) {
    outcome_.failure = "truncated";
    outcome_.message = "the stream ended without a finish reason";
  } else if (chunks_ == 0) {
    outcome_.failure = "empty";
    outcome_.message = "the stream carried no text";
  }
}

}  // namespace braid::bench
