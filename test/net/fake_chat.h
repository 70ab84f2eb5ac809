// The body of a chat with a model whose codec and constraints are fakes, for tests of what requests may say.
#pragma once

#include "net/fake_codec.h"
#include "net/fake_constraints.h"
#include "net/openai/request.h"

#include <string>

namespace braid::test {

inline const FakeCodec kFakeCodec;
inline const FakeCompiler kFakeCompiler;
inline const ServedModel kFakeModel = {"fake-model", 0, 1000, "fake", 42, nullptr, &kFakeCodec, &kFakeCompiler};

// `fields` are further members of a request that is right.
inline Result<net::GenerationCall> chat_with(const std::string& fields, const ServedModel& model = kFakeModel) {
  std::string body = R"({"messages":[{"role":"user","content":"a"}],)" + fields + "}";
  return net::openai::parse_chat(body, model);
}

}  // namespace braid::test
