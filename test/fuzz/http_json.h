// The fuzz target as a function, so that tests can replay its corpus.
#pragma once

#include <string_view>

namespace braid::test {

// Reads `bytes` as the input of one connection, cut into pieces whose size the first byte chooses, and parses what arrives as far
// as the engine's requests. Aborts when a client's bytes would be answered with a server error.
void fuzz_http_json(std::string_view bytes);

// The same for a body alone, as that of one of the endpoints that generate, act, work with text, or change weights.
enum class BodyKind {
  kCompletion,
  kChat,
  kResponse,
  kMessage,
  kScored,
  kCount,
  kTokenize,
  kDetokenize,
  kTemplate,
  kEmbedded,
  kOllamaChat,
  kOllamaPrompt,
  kRollout,
  kTextPolicy,
  kPolicyStep,
  kTrainingJob,
  kNewerWeights
};
inline constexpr BodyKind kBodyKinds[] = {BodyKind::kCompletion,  BodyKind::kChat,       BodyKind::kResponse,   BodyKind::kMessage,
                                          BodyKind::kScored,      BodyKind::kCount,      BodyKind::kTokenize,   BodyKind::kDetokenize,
                                          BodyKind::kTemplate,    BodyKind::kEmbedded,   BodyKind::kOllamaChat, BodyKind::kOllamaPrompt,
                                          BodyKind::kRollout,     BodyKind::kTextPolicy, BodyKind::kPolicyStep, BodyKind::kTrainingJob,
                                          BodyKind::kNewerWeights};
void fuzz_body(std::string_view body, BodyKind kind);

}  // namespace braid::test
