// The body of a chat with a model whose codec and constraints are fakes, for tests of what requests may say.
#pragma once

#include "net/fake_codec.h"
#include "net/fake_constraints.h"
#include "net/generation/call.h"
#include "net/json/parse.h"
#include "net/openai/request.h"

#include <string>
#include <utility>

namespace braid::test {

inline const FakeCodec kFakeCodec;
inline const FakeCompiler kFakeCompiler;
inline const ServedModel kFakeModel = {"fake-model", 0, 1000, "fake", 42, nullptr, &kFakeCodec, &kFakeCompiler};

// `body` as JSON text, read by one of a dialect's readers.
inline Result<net::GenerationCall> read_text(Result<net::Wish> (*read)(Value&, const ServedModel&), std::string body,
                                             const ServedModel& model = kFakeModel) {
  Result<Value> document = net::json::parse_object(body);
  if (!document) return document.error();
  Result<net::Wish> wish = read(*document, model);
  if (!wish) return wish.error();
  return net::GenerationCall(std::move(*wish));
}

// `fields` are further members of a request that is right.
inline Result<net::GenerationCall> chat_with(const std::string& fields, const ServedModel& model = kFakeModel) {
  return read_text(net::openai::read_chat, R"({"messages":[{"role":"user","content":"a"}],)" + fields + "}", model);
}

}  // namespace braid::test
