// The best of several candidates for each prompt.
#pragma once

#include <net/generation/answer_format.h>

#include <cstddef>
#include <vector>

namespace braid::net {

// `answers` holds `candidates` for each prompt, one prompt after the other. Keeps the `choices` of each prompt with the highest
// mean log-probability, best first; of equals the earlier one.
void keep_best(std::vector<ChoiceAnswer>& answers, std::size_t candidates, std::size_t choices);

}  // namespace braid::net
