// What the dialects of scores read alike.
#pragma once

#include "braid/result.h"
#include "braid/served_model.h"
#include "braid/value.h"
#include "net/wish/parameters.h"
#include "net/wish/wish.h"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::net::scores {

// Of what stands beside each of several texts or conversations, as often as it does.
inline constexpr std::size_t kMostRepeatedBytes = std::size_t{32} << 20U;

// The member `name`, taken out of the body; nothing where it is missing or null.
std::optional<Value> take(Value& body, std::string_view name);
Result<bool> take_flag(Value& body, std::string_view name, bool otherwise);

// The wish for the scores of prompts, which `fields` holds; reads what all requests may say besides. `field` is where they stood.
Result<Wish> wish_for_scores(Value& body, wish::BodyFields& fields, std::string_view field, std::span<const wish::Parameter> own = {});

// Of what a head makes scores, where it does not know that itself.
Pooling score_pooling(const ServedModel& model);

// kInvalidArgument: the model gives none, or no single score.
Result<void> need_classes(const ServedModel& model);
Result<void> need_one_score(const ServedModel& model);

struct TextPair {
  std::string first, second;
};

// As the model reads two texts. `instruction`: what fits; only where the model is told.
void put_pairs(std::vector<TextPair> pairs, const ServedModel& model, const std::string& instruction, wish::BodyFields& fields);

// Softmax, sigmoids or the scores themselves.
std::vector<float> activated(std::span<const float> scores, ScoreActivation activation);

void append_numbers(std::string& out, std::span<const float> numbers);

}  // namespace braid::net::scores
