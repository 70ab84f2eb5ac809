#include "net/wish/defaults.h"

#include <algorithm>
#include <limits>

namespace braid::net::wish {
namespace {

template <class T>
void take(T& target, const std::optional<T>& value) {
  if (value) target = *value;
}

}  // namespace

void set_defaults(Wish& wish, const RequestDefaults& defaults) {
  take(wish.sampling.temperature, defaults.temperature);
  if (defaults.top_p) wish.sampling.top_p = std::max(*defaults.top_p, std::numeric_limits<float>::min());  // 0: the most probable token
  take(wish.sampling.top_k, defaults.top_k);
  take(wish.sampling.min_p, defaults.min_p);
  take(wish.sampling.repetition_penalty, defaults.repetition_penalty);
  take(wish.sampling.seed, defaults.seed);
  wish.seeded = wish.seeded || defaults.seed;
  wish.speculation.method = defaults.speculate;
  if (defaults.max_tokens) wish.max_tokens = defaults.max_tokens;
}

}  // namespace braid::net::wish
