#include "app/tracing/otlp_spans.h"

#include "app/version.h"
#include "net/json/write.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fmt/format.h>
#include <iterator>
#include <string_view>

namespace braid::app {
namespace {

using Nanoseconds = std::chrono::nanoseconds;
using net::RequestTrace;

constexpr int kInternalSpan = 1;  // kinds of spans
constexpr int kServerSpan = 2;
constexpr int kFailedStatus = 2;  // a status

Nanoseconds from_ms(double ms) { return std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double, std::milli>(ms)); }

class SpanWriter {
 public:
  SpanWriter(std::string& out, const RequestTrace& trace, std::mt19937_64& random)
      : out_(out), trace_(trace), random_(random), trace_id_(trace.parent ? trace.parent->trace_id : new_id() + new_id()),
        server_id_(new_id()) {}

  void append() {
    append_server();
    append_phases();
  }

 private:
  std::string new_id() { return fmt::format("{:016x}", std::max<std::uint64_t>(1, random_())); }

  // Up to where its attributes begin.
  void open(std::string_view id, std::string_view parent, std::string_view name, int kind, Nanoseconds begin, Nanoseconds end) {
    if (!out_.ends_with('[')) out_ += ',';
    const auto at = [&](Nanoseconds offset) { return (trace_.begin.time_since_epoch() + offset).count(); };
    fmt::format_to(std::back_inserter(out_), R"({{"traceId":"{}","spanId":"{}",)", trace_id_, id);
    if (!parent.empty()) fmt::format_to(std::back_inserter(out_), R"("parentSpanId":"{}",)", parent);
    fmt::format_to(std::back_inserter(out_), R"("name":"{}","kind":{},"startTimeUnixNano":"{}","endTimeUnixNano":"{}","attributes":[)",
                   name, kind, at(begin), at(end));
  }

  void add(std::string_view name, std::string_view text) {
    if (text.empty()) return;
    begin_attribute(name);
    out_ += R"({"stringValue":)";
    net::json::append_lossy_string(out_, text);
    out_ += "}}";
  }
  void add(std::string_view name, std::int64_t number) {
    begin_attribute(name);
    fmt::format_to(std::back_inserter(out_), R"({{"intValue":"{}"}}}})", number);
  }
  void begin_attribute(std::string_view name) {
    if (!out_.ends_with('[')) out_ += ',';
    fmt::format_to(std::back_inserter(out_), R"({{"key":"{}","value":)", name);
  }

  void append_server() {
    open(server_id_, trace_.parent ? std::string_view(trace_.parent->span_id) : std::string_view(),
         fmt::format("{} {}", trace_.method, trace_.route), kServerSpan, Nanoseconds(0), trace_.end);
    add("http.request.method", trace_.method);
    add("http.route", trace_.route);
    add("http.response.status_code", std::int64_t{trace_.status});
    add("gen_ai.request.model", trace_.model);
    add("gen_ai.usage.input_tokens", std::int64_t{trace_.usage.prompt_tokens});
    add("gen_ai.usage.output_tokens", std::int64_t{trace_.usage.completion_tokens});
    add("braid.cached_tokens", std::int64_t{trace_.usage.cached_tokens});
    add("braid.request_id", trace_.request_id);
    add("braid.reason", trace_.ending);
    out_ += ']';
    if (trace_.status >= 500 || !trace_.error.empty()) {
      fmt::format_to(std::back_inserter(out_), R"(,"status":{{"code":{},"message":)", kFailedStatus);
      net::json::append_lossy_string(out_, trace_.error);
      out_ += '}';
    }
    out_ += '}';
  }

  // One after the other, each from the end of the one before; the last of them ends with the request.
  void append_phases() {
    const Usage& usage = trace_.usage;
    const Nanoseconds queued = from_ms(usage.queue_ms);
    Nanoseconds at = trace_.work;
    const auto phase = [&](std::string_view name, bool is_last, Nanoseconds until) {
      const Nanoseconds end = is_last ? trace_.end : std::clamp(until, at, std::max(at, trace_.end));
      open(new_id(), server_id_, name, kInternalSpan, at, end);
      out_ += "]}";
      at = end;
    };
    if (!trace_.submitted) return phase("tokenise", true, {});
    phase("tokenise", false, *trace_.submitted);
    const bool is_taken_up = usage.queue_ms > 0 || usage.prompt_ms > 0;
    phase("queue", !is_taken_up, at + queued);
    if (!is_taken_up) return;
    const Nanoseconds first_token = trace_.work + queued + from_ms(usage.prompt_ms);
    const bool has_begun = usage.completion_tokens > 0;
    phase("prefill", !has_begun, first_token);
    if (!has_begun) return;
    phase("decode", false, first_token + from_ms(usage.generation_ms));
    phase("write", true, {});
  }

  std::string& out_;
  const RequestTrace& trace_;
  std::mt19937_64& random_;
  const std::string trace_id_;
  const std::string server_id_;
};

}  // namespace

std::string otlp_spans(std::span<const RequestTrace> traces, std::mt19937_64& random) {
  std::string out =
      fmt::format(R"({{"resourceSpans":[{{"resource":{{"attributes":[{{"key":"service.name","value":{{"stringValue":"braid"}}}},)"
                  R"({{"key":"service.version","value":{{"stringValue":"{}"}}}}]}},"scopeSpans":[{{"scope":{{"name":"braid"}},"spans":[)",
                  kVersion);
  for (const RequestTrace& trace : traces) SpanWriter(out, trace, random).append();
  out += "]}]}]}";
  return out;
}

}  // namespace braid::app
