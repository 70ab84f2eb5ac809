// POST /v1/embeddings: a generation that samples nothing and pools its prompts into vectors.
#pragma once

#include "braid/result.h"
#include "braid/served_model.h"
#include "braid/value.h"
#include "net/generation/answer_format.h"
#include "net/generation/call.h"
#include "net/wish/wish.h"

#include <memory>
#include <string>
#include <vector>

namespace braid::net::openai {

// {"input": text, texts, token ids or lists of them, "encoding_format": float or base64}. The body is an object and may be moved out of.
Result<Wish> read_embeddings(Value& body, const ServedModel& model);

// What a vector of an answer is called, and the member that holds it.
struct VectorNames {
  const char* object;
  const char* member;
};
inline constexpr VectorNames kEmbeddingNames = {"embedding", "embedding"};

// {"object":"list","data":[{"object":"embedding","index":0,"embedding":…}],"model":…,"usage":…}; each vector has the length 1.
std::unique_ptr<AnswerFormat> embeddings_format(const ServedModel& model, const GenerationCall& call,
                                                const VectorNames& names = kEmbeddingNames);

// By which norm vectors are made equally long: their length is 1, or they stay as they are. With 0 their largest value is that of 16 bits.
inline constexpr int kUnitNorm = 2;
inline constexpr int kNoNorm = -1;

// The member embd_normalize, llama-server's, taken out of the body; `otherwise` where there is none.
Result<int> take_norm(Value& body, int otherwise);

// In place. A vector of zeros stays.
void scale_by_norm(std::vector<float>& vector, int norm);

// […] with the length 1; one of zeros stays as it is.
void append_unit_vector(std::string& out, std::vector<float> vector);

// What pooled answers of all kinds take: truncate_prompt_tokens, the wish's prompt_head. Takes it out of the body.
Result<void> read_truncation(Value& body, Wish& wish);

}  // namespace braid::net::openai
