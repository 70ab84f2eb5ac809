#include "app/bench/response_reader.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace braid::bench {
namespace {

constexpr std::size_t kMaxHead = 64 << 10;
constexpr std::size_t kMaxErrorBody = 4096;
constexpr std::size_t kMaxBody = 1 << 30;
constexpr std::size_t kMaxEvent = 16 << 20;  // and line of one: what has none would take all memory

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

bool parse_number(std::string_view text, int base, std::uint64_t& value) {
  return !text.empty() && std::from_chars(text.data(), text.data() + text.size(), value, base).ec == std::errc();
}

}  // namespace

void ResponseReader::feed(std::string_view bytes) {
  if (state_ == State::kHead) {
    pending_.append(bytes);
    return read_head();
  }
  read_body(bytes);
}

void ResponseReader::read_head() {
  const auto end = pending_.find("\r\n\r\n");
  if (end == std::string::npos) {
    if (pending_.size() > kMaxHead) state_ = State::kBroken;
    return;
  }
  const std::string head = pending_.substr(0, end + 2);
  const std::string rest = pending_.substr(end + 4);
  pending_.clear();
  std::uint64_t status = 0;
  if (head.size() < 12 || head.compare(0, 7, "HTTP/1.") != 0 || !parse_number(std::string_view(head).substr(9, 3), 10, status)) {
    state_ = State::kBroken;
    return;
  }
  status_ = static_cast<int>(status);
  keeps_alive_ = head[7] == '1';
  for (std::size_t at = head.find("\r\n") + 2; at < head.size();) {
    const auto next = head.find("\r\n", at);
    const std::string_view line(head.data() + at, next - at);
    const auto colon = line.find(':');
    if (colon != std::string_view::npos) read_header(line.substr(0, colon), trimmed(line.substr(colon + 1)));
    at = next + 2;
  }
  state_ = framing_ == Framing::kLength && left_ == 0 ? State::kDone : State::kBody;
  if (state_ == State::kBody) read_body(rest);
}

void ResponseReader::read_header(std::string_view name, std::string_view value) {
  if (equals_ignoring_case(name, "transfer-encoding") && equals_ignoring_case(value, "chunked")) {
    framing_ = Framing::kChunkSize;
  } else if (equals_ignoring_case(name, "content-length") && framing_ == Framing::kUntilClose && parse_number(value, 10, left_)) {
    framing_ = Framing::kLength;
  } else if (equals_ignoring_case(name, "connection")) {
    keeps_alive_ = equals_ignoring_case(value, "keep-alive") || (keeps_alive_ && !equals_ignoring_case(value, "close"));
  }
}

void ResponseReader::read_body(std::string_view bytes) {
  while (!bytes.empty() && state_ == State::kBody) {
    if (framing_ == Framing::kUntilClose) return read_content(bytes);
    if (framing_ == Framing::kLength || framing_ == Framing::kChunk) {
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
      left_ -= count;
      read_content(bytes.substr(0, count));
      bytes.remove_prefix(count);
      if (left_ > 0 || state_ == State::kBroken) continue;
      if (framing_ == Framing::kLength) {
        state_ = State::kDone;
      } else {
        framing_ = Framing::kChunkEnd;
      }
      continue;
    }
    const auto end = bytes.find('\n');
    pending_.append(bytes.substr(0, end));
    if (end == std::string_view::npos) {
      if (pending_.size() > kMaxHead) state_ = State::kBroken;
      return;
    }
    bytes.remove_prefix(end + 1);
    const std::string line = std::exchange(pending_, {});
    read_framing_line(trimmed(line));
  }
}

void ResponseReader::read_framing_line(std::string_view line) {
  if (framing_ == Framing::kChunkEnd) {
    if (!line.empty()) state_ = State::kBroken;
    framing_ = Framing::kChunkSize;
  } else if (framing_ == Framing::kTrailer) {
    if (line.empty()) state_ = State::kDone;
  } else if (!parse_number(line, 16, left_)) {
    state_ = State::kBroken;
  } else {
    framing_ = left_ == 0 ? Framing::kTrailer : Framing::kChunk;
  }
}

void ResponseReader::read_content(std::string_view bytes) {
  if (status_ < 200 || status_ >= 300) {
    error_body_.append(bytes.substr(0, kMaxErrorBody - std::min(kMaxErrorBody, error_body_.size())));
    return;
  }
  if (!on_event_) {
    data_.append(bytes);
    if (data_.size() > kMaxBody) state_ = State::kBroken;
    return;
  }
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    if (end == std::string_view::npos) {
      line_.append(bytes);
      if (line_.size() > kMaxEvent) state_ = State::kBroken;
      return;
    }
    if (line_.empty()) {
      read_event_line(trimmed(bytes.substr(0, end)));
    } else {
      line_.append(bytes.substr(0, end));
      read_event_line(trimmed(line_));
      line_.clear();
    }
    bytes.remove_prefix(end + 1);
  }
}

void ResponseReader::read_event_line(std::string_view line) {
  constexpr std::string_view kData = "data:";
  if (line.substr(0, kData.size()) == kData) {
    if (!data_.empty()) data_.push_back('\n');
    data_.append(trimmed(line.substr(kData.size())));
    if (data_.size() > kMaxEvent) state_ = State::kBroken;
  } else if (line.empty() && !data_.empty()) {
    on_event_(data_);
    data_.clear();
  }
}

void ResponseReader::close() {
  if (state_ == State::kDone) return;
  state_ = state_ == State::kBody && framing_ == Framing::kUntilClose ? State::kDone : State::kBroken;
  keeps_alive_ = false;
}

}  // namespace braid::bench
