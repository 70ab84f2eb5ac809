#include "net/ollama/options.h"

#include "net/json/fields.h"
#include "net/wish/defaults.h"
#include "net/wish/keep_alive.h"
#include "net/wish/parameters.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fmt/format.h>
#include <limits>
#include <span>

namespace braid::net::ollama {
namespace {

using json::at_key;
using wish::BodyFields;
using wish::Parameter;

// A negative number is no limit.
Result<void> read_num_predict(BodyFields& fields, Value& value, const std::string& path) {
  const Result<std::int64_t> count = json::read_integer(value, path);
  if (!count) return count.error();
  if (*count >= 0)
    fields.wish.max_tokens = static_cast<std::int32_t>(std::min<std::int64_t>(*count, std::numeric_limits<std::int32_t>::max()));
  return {};
}

// A negative seed is none.
Result<void> read_seed(BodyFields& fields, Value& value, const std::string& path) {
  const Result<std::int64_t> seed = json::read_integer(value, path);
  if (!seed) return seed.error();
  fields.wish.seeded = *seed >= 0;
  fields.wish.sampling.seed = static_cast<std::uint64_t>(std::max<std::int64_t>(*seed, 0));
  return {};
}

constexpr std::array kOptions = {
    Parameter{"num_predict", read_num_predict},
    Parameter{"seed", read_seed},
    Parameter{"stop", wish::read_stop},
};

}  // namespace

// What Ollama samples with where `options` and the operator are silent.
void set_defaults(Wish& wish, const RequestDefaults& defaults) {
  wish.stream = true;
  wish.timings = true;  // measured: every answer tells durations
  wish.sampling.temperature = 0.8F;
  wish.sampling.top_k = 40;
  wish.sampling.top_p = 0.9F;
  wish.sampling.repetition_penalty = 1.1F;
  wish.sampling.penalty_last_n = 64;
  wish::set_defaults(wish, defaults);
}

Result<void> read_options(BodyFields& fields, Value& value, const std::string& path) {
  auto* members = value.get_if<ValueDict>();
  if (members == nullptr) return json::wrong_type(path, "an object", value);
  const std::array tables = {std::span<const Parameter>(kOptions), wish::sampling_parameters()};
  for (auto& [name, option] : *members) {
    if (option.is_null()) continue;
    const Result<void> read = wish::read_parameter(fields, name, option, at_key(path, name), tables);
    if (!read) return read;
  }
  return {};
}

Result<void> check_keep_alive(BodyFields&, Value& value, const std::string& path) {
  const auto kept = wish::read_keep_alive(value, path);
  return kept ? Result<void>() : kept.error();
}

}  // namespace braid::net::ollama
