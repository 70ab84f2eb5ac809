// Splits an answer's text, as it comes, into what is said, what is thought and what is called.
#pragma once

#include "net/generation/answer_event.h"
#include "net/generation/parser/answer_syntax.h"
#include "net/generation/parser/call_reader.h"
#include "net/generation/parser/call_writer.h"
#include "net/generation/parser/marker_scanner.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace braid::net {

// Forward only: what has been put out is never taken back, and only what may still become a marker or a call's beginning is held.
// The deltas, joined, do not depend on how the text is cut.
//  - Reasoning counts at the beginning of an answer only. White space around it and around calls is dropped.
//  - A call is told when its function is known and its arguments begin. Until then, what turns out to be none is text, its marker
//    included. Afterwards, arguments that break off or stop being JSON are completed to valid JSON, and what is left is text; only
//    max_tokens leaves them cut off.
class AnswerParser {
 public:
  // `syntax` outlives the parser. Ids of calls depend on `id_seed` and their index only.
  AnswerParser(const AnswerSyntax& syntax, std::uint64_t id_seed);
  AnswerParser(const AnswerParser&) = delete;  // the reader refers to the writer
  AnswerParser& operator=(const AnswerParser&) = delete;

  // Not to be called once ended().
  void feed(std::string_view piece, std::vector<Delta>& out);

  // No text follows. `cut`: it ends because of max_tokens, and what it has begun of a marker or a call is none of its text.
  void finish(bool cut, std::vector<Delta>& out);

  bool in_reasoning() const { return state_ == State::kReasoning; }
  // Whether what was fed last will never be text: it was reasoning, a marker, or white space that is dropped.
  bool is_silent() const;
  bool has_calls() const { return writer_.calls() > 0; }
  bool ended() const { return ended_; }  // with the only call that is allowed

 private:
  enum class State { kStart, kReasoning, kText, kBeforeCall, kCall, kAfterCall };
  enum class Marker { kReasoning, kPassedOver, kBegin, kEnd };

  void step(char c);
  void in_start(char c);
  void reason(char c);
  void in_text(char c);
  void before_call(char c);
  void in_call(char c);
  void after_call(char c);
  Marker kind_of(std::size_t marker) const;
  bool take_marker(std::size_t marker);
  void begin_calls(std::size_t marker);
  void begin_call(char c);
  bool begins_call(char c) const;
  bool holds_marker() const;
  bool was_calling() const;
  bool may_think() const;
  bool is_fence(std::size_t marker) const;
  void drop_leading_space();
  void emit();

  const AnswerSyntax& syntax_;
  CallWriter writer_;
  std::vector<std::string> markers_;  // reasoning's beginning if there is one, those passed over, calls' beginnings and ends
  MarkerScanner scanner_;
  MarkerScanner reasoning_end_;
  std::unique_ptr<CallReader> reader_;  // in kCall
  State state_ = State::kStart;
  std::string settled_;      // of the state's kind of text, to be put out
  std::string raw_;          // since the call's marker, while it may still be text
  bool drop_space_ = false;  // white space at the beginning of what comes is dropped
  bool thought_ = false;     // the reasoning is over
  bool bare_ = false;        // no marker stands before the calls
  bool in_list_ = false;
  bool ended_ = false;
  std::vector<Delta>* out_ = nullptr;  // of the feed() under way
};

}  // namespace braid::net
