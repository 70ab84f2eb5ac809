#include "net/generation/parser/answer_parser.h"

#include "net/generation/parser/characters.h"

#include <utility>

namespace braid::net {
namespace {

std::vector<std::string> markers_of(const AnswerSyntax& syntax) {
  std::vector<std::string> markers;
  if (!syntax.reasoning.open.empty()) markers.push_back(syntax.reasoning.open);
  markers.insert(markers.end(), syntax.passed_over.begin(), syntax.passed_over.end());
  if (syntax.calls == nullptr) return markers;
  markers.insert(markers.end(), syntax.calls->begin.begin(), syntax.calls->begin.end());
  markers.insert(markers.end(), syntax.calls->end.begin(), syntax.calls->end.end());
  return markers;
}

std::vector<std::string> reasoning_ends(const AnswerSyntax& syntax) {
  if (syntax.reasoning.close.empty()) return {};
  return {syntax.reasoning.close};
}

constexpr std::size_t kMarkup = 2;  // bytes of a marker by which text that is cut there shows its beginning: "<" may be anything

}  // namespace

AnswerParser::AnswerParser(const AnswerSyntax& syntax, std::uint64_t id_seed)
    : syntax_(syntax), writer_(id_seed, syntax.calls != nullptr && syntax.calls->short_ids), markers_(markers_of(syntax)),
      scanner_(markers_), reasoning_end_(reasoning_ends(syntax)), state_(syntax.begins_in_reasoning ? State::kReasoning : State::kStart),
      drop_space_(syntax.begins_in_reasoning) {}

void AnswerParser::feed(std::string_view piece, std::vector<Delta>& out) {
  out_ = &out;
  writer_.redirect(out);
  for (const char c : piece)
    if (!ended_) step(c);
  emit();
}

void AnswerParser::finish(bool cut, std::vector<Delta>& out) {
  out_ = &out;
  writer_.redirect(out);
  if (state_ == State::kReasoning) {
    std::string held;
    if (!cut || reasoning_end_.held().size() < kMarkup) reasoning_end_.flush(held);
    settled_ += held.substr(0, held.find_last_not_of(kSpace) + 1);
  } else if (state_ == State::kStart || state_ == State::kText) {
    if (!cut || !holds_marker()) scanner_.flush(settled_);
    drop_leading_space();
  } else if (reader_ != nullptr && reader_->begun()) {
    if (!cut) reader_->close();
  } else if (!cut || !was_calling()) {
    settled_ += raw_;  // nothing in kAfterCall
  }
  emit();
}

// Whether the text ends with the beginning of a marker that would mean something here. A fence stands before answers too.
bool AnswerParser::holds_marker() const {
  if (scanner_.at_marker()) return true;
  const std::string_view held = scanner_.held();
  if (held.size() < kMarkup) return false;
  for (std::size_t i = 0; i < markers_.size(); ++i) {
    const Marker kind = kind_of(i);
    const bool means = kind == Marker::kReasoning ? may_think() : kind == Marker::kPassedOver || (kind == Marker::kBegin && !is_fence(i));
    if (means && markers_[i].starts_with(held)) return true;
  }
  return false;
}

// Whether what is in raw_ was about to be a call. Without a marker before it, it may be an answer as well.
bool AnswerParser::was_calling() const { return !bare_ || has_calls() || (reader_ != nullptr && reader_->names_function()); }

bool AnswerParser::may_think() const { return syntax_.reasoning_anywhere || (state_ == State::kStart && !thought_); }

bool AnswerParser::is_fence(std::size_t marker) const { return markers_[marker] == syntax_.calls->fence; }

bool AnswerParser::is_silent() const {
  switch (state_) {
    case State::kReasoning:
      return true;
    case State::kStart:
      return scanner_.behind_marker() || (drop_space_ && !scanner_.in_marker());
    case State::kText:
      return scanner_.behind_marker();
    case State::kAfterCall:
      return settled_.empty() && (scanner_.behind_marker() || (!scanner_.in_marker() && scanner_.space().empty()));
    case State::kBeforeCall:
    case State::kCall:
      break;  // what begins like a call may turn out to be none
  }
  return false;
}

void AnswerParser::step(char c) {
  switch (state_) {
    case State::kStart:
      return in_start(c);
    case State::kReasoning:
      return reason(c);
    case State::kText:
      return in_text(c);
    case State::kBeforeCall:
      return before_call(c);
    case State::kCall:
      return in_call(c);
    case State::kAfterCall:
      return after_call(c);
  }
}

// Before the first byte of text.
void AnswerParser::in_start(char c) {
  const auto marker = scanner_.feed(c, settled_);
  if (marker && take_marker(*marker)) return;
  drop_leading_space();
  if (settled_.empty()) return;
  state_ = State::kText;
  const bool bare = syntax_.calls != nullptr && syntax_.calls->bare && settled_.find_first_not_of(kSpace) + 1 == settled_.size();
  if (!bare || (c != '{' && c != '[')) return;
  bare_ = true;
  in_list_ = false;
  raw_ = std::exchange(settled_, {});
  raw_.pop_back();
  state_ = State::kBeforeCall;
  before_call(c);
}

void AnswerParser::reason(char c) {
  const auto end = reasoning_end_.feed(c, settled_);
  drop_leading_space();
  if (!end) return;
  emit();
  thought_ = true;
  drop_space_ = true;
  state_ = State::kStart;
}

void AnswerParser::in_text(char c) {
  if (const auto marker = scanner_.feed(c, settled_)) take_marker(*marker);
}

// False when the marker means nothing here and is text.
bool AnswerParser::take_marker(std::size_t marker) {
  const Marker kind = kind_of(marker);
  if (kind == Marker::kBegin) {
    begin_calls(marker);
  } else if (kind == Marker::kReasoning && may_think()) {
    emit();
    drop_space_ = true;
    state_ = State::kReasoning;
  } else if (kind != Marker::kPassedOver && (kind != Marker::kEnd || state_ != State::kAfterCall)) {
    settled_ += scanner_.space() + markers_[marker];
    return false;
  }
  return true;
}

void AnswerParser::before_call(char c) {
  if (kSpace.find(c) != std::string_view::npos) {
    raw_ += c;
  } else if (c == '[' && !in_list_) {
    raw_ += c;
    in_list_ = true;
  } else {
    begin_call(c);
  }
}

void AnswerParser::in_call(char c) {
  switch (reader_->feed(c)) {
    case CallReader::Status::kMore:
      if (!reader_->begun()) raw_ += c;
      return;
    case CallReader::Status::kComplete:
      raw_.clear();
      reader_.reset();
      state_ = State::kAfterCall;
      ended_ = syntax_.single_call;
      return;
    case CallReader::Status::kInvalid:
      break;
  }
  const bool begun = reader_->begun();
  if (begun) reader_->close();
  reader_.reset();
  if (!begun) settled_ += raw_;
  raw_.clear();
  state_ = begun ? State::kAfterCall : State::kText;
  step(c);
}

// Ends, separators and white space are passed over until another call begins, or text.
void AnswerParser::after_call(char c) {
  const auto marker = scanner_.feed(c, settled_);
  if (marker && take_marker(*marker)) return;
  if (settled_.empty()) return;
  const bool alone = settled_.find_first_not_of(kSpace) + 1 == settled_.size();
  const bool separator = in_list_ ? c == ',' || c == ']' : syntax_.calls->bare && (c == ';' || c == '`');  // a fence's end
  if (alone && separator) {
    settled_.clear();
    if (c == ']') in_list_ = false;
  } else if (alone && (in_list_ || bare_) && begins_call(c)) {
    raw_ = std::exchange(settled_, {});
    raw_.pop_back();
    begin_call(c);
  } else {
    state_ = State::kText;
  }
}

AnswerParser::Marker AnswerParser::kind_of(std::size_t marker) const {
  const std::size_t reasoning = syntax_.reasoning.open.empty() ? 0 : 1;
  if (marker < reasoning) return Marker::kReasoning;
  const std::size_t other = reasoning + syntax_.passed_over.size();
  if (marker < other) return Marker::kPassedOver;
  return marker - other < syntax_.calls->begin.size() ? Marker::kBegin : Marker::kEnd;
}

void AnswerParser::begin_calls(std::size_t marker) {
  emit();
  raw_ = drop_space_ || state_ == State::kAfterCall ? markers_[marker] : scanner_.space() + markers_[marker];
  bare_ = is_fence(marker);
  in_list_ = false;
  drop_space_ = false;
  state_ = State::kBeforeCall;
}

void AnswerParser::begin_call(char c) {
  emit();
  if (c == '{' || syntax_.calls->form == CallSyntax::Form::kJson) {  // forced calls are JSON also where the model's own are not
    reader_ = json_call_reader(writer_, syntax_, bare_);
  } else if (syntax_.calls->form == CallSyntax::Form::kNamed) {
    reader_ = named_call_reader(writer_, syntax_);
  } else {
    reader_ = pythonic_call_reader(writer_, syntax_, bare_);
  }
  state_ = State::kCall;
  in_call(c);
}

bool AnswerParser::begins_call(char c) const {
  if (c == '{' || syntax_.calls->form != CallSyntax::Form::kPythonic) return c == '{';
  return in_list_ && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_');
}

void AnswerParser::drop_leading_space() {
  if (!drop_space_ || settled_.empty()) return;
  settled_.erase(0, settled_.find_first_not_of(kSpace));
  if (!settled_.empty()) drop_space_ = false;
}

void AnswerParser::emit() {
  if (settled_.empty()) return;
  if (state_ == State::kReasoning) {
    append_joined(*out_, ReasoningDelta{std::exchange(settled_, {})});
  } else {
    append_joined(*out_, TextDelta{std::exchange(settled_, {})});
  }
}

}  // namespace braid::net
