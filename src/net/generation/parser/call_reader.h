// Readers of one tool call each, byte by byte; what they find goes to a CallWriter as soon as it is certain.
#pragma once

#include "net/generation/parser/answer_syntax.h"
#include "net/generation/parser/call_writer.h"
#include "net/generation/parser/json_scanner.h"

#include <memory>
#include <string>
#include <string_view>

namespace braid::net {

class CallReader {
 public:
  enum class Status {
    kMore,
    kComplete,  // with this byte
    kInvalid,   // this byte, which was not taken, cannot follow
  };

  virtual ~CallReader() = default;

  virtual Status feed(char c) = 0;

  // Whether the call has been written: then it can only be ended.
  bool begun() const { return begun_; }
  // Of a call without a marker that has not begun: whether a declared function is being named, so that it is hardly a text.
  virtual bool names_function() const { return true; }
  // Of a call that has begun: completes its arguments to valid JSON. None may be fed any more.
  virtual void close() = 0;

 protected:
  CallReader(CallWriter& writer, const AnswerSyntax& syntax, bool bare) : writer_(writer), syntax_(syntax), bare_(bare) {}

  bool is_declared(const std::string& name) const;
  bool begins_declared(std::string_view name) const;  // one of them begins like that
  // False when no such function may be called.
  bool begin(std::string name);

  CallWriter& writer_;
  const AnswerSyntax& syntax_;
  bool bare_;
  bool begun_ = false;
};

// `bare`: no marker stands before the call, so that an answer must not be taken for one: a JSON object has no members but those of
// calls. The others outlive the reader.
std::unique_ptr<CallReader> json_call_reader(CallWriter& writer, const AnswerSyntax& syntax, bool bare);
std::unique_ptr<CallReader> named_call_reader(CallWriter& writer, const AnswerSyntax& syntax);
std::unique_ptr<CallReader> pythonic_call_reader(CallWriter& writer, const AnswerSyntax& syntax, bool bare);

}  // namespace braid::net
