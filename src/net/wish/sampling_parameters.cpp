// How tokens are drawn. The extensions' names are those of llama-server and vLLM.
#include "net/json/fields.h"
#include "net/wish/parameters.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <limits>
#include <utility>

namespace braid::net::wish {
namespace {

using json::at_index;
using json::at_key;
using Sampling = SamplingParams;

constexpr float kMaxBias = 100.0F;
constexpr std::size_t kMaxBiases = 1024;
constexpr std::size_t kMaxBreakers = 16;
constexpr std::size_t kMaxBreakerBytes = 64;
constexpr std::array<std::string_view, 4> kDefaultBreakers = {"\n", ":", "\"", "*"};
constexpr std::string_view kStart = "\x01";  // merges with nothing, and takes the space that some tokenizers put first

// The smallest share is the most probable token alone, and so is none.
Result<void> read_top_p(BodyFields& fields, Value& value, const std::string& path) {
  const Result<float> share = json::read_number(value, path, 0.0F, 1.0F);
  if (!share) return share.error();
  fields.wish.sampling.top_p = std::max(*share, std::numeric_limits<float>::min());
  return {};
}

Result<void> read_seed(BodyFields& fields, Value& value, const std::string& path) {
  const Result<std::int64_t> seed = json::read_integer(value, path);
  if (!seed) return seed.error();
  fields.wish.seeded = true;
  fields.wish.sampling.seed = static_cast<std::uint64_t>(*seed);
  return {};
}

// {"<id>": bias}
Result<LogitBias> read_bias_member(const std::string& key, const Value& value, const std::string& path, const ServedModel& model) {
  LogitBias bias;
  const auto [end, failure] = std::from_chars(key.data(), key.data() + key.size(), bias.token);
  if (failure != std::errc() || end != key.data() + key.size() || bias.token < 0 || bias.token >= model.codec->vocab_size())
    return invalid_argument(fmt::format("'{}' is no token id of this model", path), path);
  const Result<float> number = json::read_number(value, path, -kMaxBias, kMaxBias);
  if (!number) return number.error();
  bias.bias = *number;
  return bias;
}

// An id, or a text for all of its tokens.
Result<std::vector<TokenId>> read_biased(const Value& value, const std::string& path, const ServedModel& model) {
  if (const auto* text = value.get_if<std::string>()) return inner_tokens(*text, *model.codec);
  const Result<std::int64_t> id = json::read_integer(value, path, 0, model.codec->vocab_size() - 1);
  if (!id) return id.error();
  return std::vector<TokenId>{static_cast<TokenId>(*id)};
}

// [id or text, bias], as llama-server has it; false bans the tokens.
Result<void> read_bias_pair(std::vector<LogitBias>& read, const Value& value, const std::string& path, const ServedModel& model) {
  const auto* pair = value.get_if<ValueList>();
  if (pair == nullptr || pair->size() != 2) return invalid_argument(fmt::format("'{}' must be a token id and a bias", path), path);
  const Result<std::vector<TokenId>> tokens = read_biased((*pair)[0], at_index(path, 0), model);
  if (!tokens) return tokens.error();
  float bias = -std::numeric_limits<float>::infinity();
  if ((*pair)[1] != Value(false)) {
    const Result<float> number = json::read_number((*pair)[1], at_index(path, 1), -kMaxBias, kMaxBias);
    if (!number) return number.error();
    bias = *number;
  }
  for (const TokenId token : *tokens) read.push_back({token, bias});
  return {};
}

// What names a token twice adds up.
Result<void> read_logit_bias(BodyFields& fields, Value& value, const std::string& path) {
  std::vector<LogitBias> read;
  const auto* members = value.get_if<ValueDict>();
  const auto* list = value.get_if<ValueList>();
  if (members == nullptr && list == nullptr) return json::wrong_type(path, "an object from token id to bias", value);
  const std::size_t count = members != nullptr ? members->size() : list->size();
  if (count > kMaxBiases)
    return invalid_argument(fmt::format("'{}' has {} tokens, at most {} may be given", path, count, kMaxBiases), path);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string item_path = members != nullptr ? at_key(path, (*members)[i].first) : at_index(path, i);
    if (members == nullptr) {
      const Result<void> pair = read_bias_pair(read, (*list)[i], item_path, fields.model);
      if (!pair) return pair;
      continue;
    }
    const Result<LogitBias> bias = read_bias_member((*members)[i].first, (*members)[i].second, item_path, fields.model);
    if (!bias) return bias.error();
    read.push_back(*bias);
  }
  std::stable_sort(read.begin(), read.end(), [](const auto& a, const auto& b) { return a.token < b.token; });
  std::vector<LogitBias>& biases = fields.wish.sampling.logit_bias;
  for (const LogitBias& bias : read) {
    if (!biases.empty() && biases.back().token == bias.token) {
      biases.back().bias += bias.bias;
    } else {
      biases.push_back(bias);
    }
  }
  return {};
}

Result<void> read_dry_sequence_breakers(BodyFields& fields, Value& value, const std::string& path) {
  const auto* list = value.get_if<ValueList>();
  if (list == nullptr) return json::wrong_type(path, "an array of strings", value);
  if (list->size() > kMaxBreakers)
    return invalid_argument(fmt::format("'{}' has {} strings, at most {} may be given", path, list->size(), kMaxBreakers), path);
  fields.dry_breakers.emplace();
  for (std::size_t i = 0; i < list->size(); ++i) {
    const std::string item_path = at_index(path, i);
    Result<std::string> text = json::read_string((*list)[i], item_path);
    if (!text) return text.error();
    if (text->empty() || text->size() > kMaxBreakerBytes)
      return invalid_argument(fmt::format("'{}' must have from 1 to {} bytes", item_path, kMaxBreakerBytes), item_path);
    fields.dry_breakers->push_back(std::move(*text));
  }
  return {};
}

constexpr std::array kSampling = {
    Parameter{"temperature", NumberRule{&Sampling::temperature, 0.0F, 2.0F}},
    Parameter{"top_p", read_top_p},
    Parameter{"min_p", NumberRule{&Sampling::min_p, 0.0F, 1.0F}},
    Parameter{"top_k", read_top_k},
    Parameter{"seed", read_seed},
    Parameter{"logit_bias", read_logit_bias},
    Parameter{"presence_penalty", NumberRule{&Sampling::presence_penalty, -2.0F, 2.0F}},
    Parameter{"frequency_penalty", NumberRule{&Sampling::frequency_penalty, -2.0F, 2.0F}},
    Parameter{"repetition_penalty", NumberRule{&Sampling::repetition_penalty, 0.0F, 10.0F, true}},
    Parameter{"repeat_penalty", NumberRule{&Sampling::repetition_penalty, 0.0F, 10.0F, true}},
    Parameter{"repeat_last_n", CountRule<Sampling>{&Sampling::penalty_last_n, -1}},
    Parameter{"typical_p", NumberRule{&Sampling::typical_p, 0.0F, 1.0F, true}},
    Parameter{"top_n_sigma", NumberRule{&Sampling::top_n_sigma, -1.0F, 100.0F}},
    Parameter{"xtc_probability", NumberRule{&Sampling::xtc_probability, 0.0F, 1.0F}},
    Parameter{"xtc_threshold", NumberRule{&Sampling::xtc_threshold, 0.0F, 1.0F}},
    Parameter{"dry_multiplier", NumberRule{&Sampling::dry_multiplier, 0.0F, 100.0F}},
    Parameter{"dry_base", NumberRule{&Sampling::dry_base, 1.0F, 100.0F}},
    Parameter{"dry_allowed_length", CountRule<Sampling>{&Sampling::dry_allowed_length, 0}},
    Parameter{"dry_penalty_last_n", CountRule<Sampling>{&Sampling::dry_penalty_last_n, -1}},
    Parameter{"dry_sequence_breakers", read_dry_sequence_breakers},
    Parameter{"mirostat", CountRule<Sampling>{&Sampling::mirostat, 0, 2}},
    Parameter{"mirostat_tau", NumberRule{&Sampling::mirostat_tau, 0.0F, 100.0F}},
    Parameter{"mirostat_eta", NumberRule{&Sampling::mirostat_eta, 0.0F, 1.0F}},
};

}  // namespace

Result<std::vector<TokenId>> inner_tokens(std::string_view text, const TextCodec& codec) {
  const EncodeOptions plain{.add_special = false, .parse_special = false};
  const Result<std::vector<TokenId>> start = codec.encode(kStart, plain);
  if (!start) return start.error();
  Result<std::vector<TokenId>> ids = codec.encode(std::string(kStart).append(text), plain);
  if (!ids) return ids.error();
  const auto [rest, unused] = std::mismatch(ids->begin(), ids->end(), start->begin(), start->end());
  ids->erase(ids->begin(), rest);
  return ids;
}

// -1 is what vLLM's clients send for "all".
Result<void> read_top_k(BodyFields& fields, Value& value, const std::string& path) {
  const Result<std::int64_t> count = json::read_integer(value, path, -1);
  if (!count) return count.error();
  fields.wish.sampling.top_k = static_cast<std::int32_t>(std::clamp<std::int64_t>(*count, 0, std::numeric_limits<std::int32_t>::max()));
  return {};
}

std::span<const Parameter> sampling_parameters() { return kSampling; }

Result<void> encode_breakers(BodyFields& fields) {
  SamplingParams& sampling = fields.wish.sampling;
  if (sampling.dry_multiplier <= 0.0F) return {};
  if (!fields.dry_breakers) fields.dry_breakers.emplace(kDefaultBreakers.begin(), kDefaultBreakers.end());
  for (const std::string& text : *fields.dry_breakers) {
    Result<std::vector<TokenId>> ids = inner_tokens(text, *fields.model.codec);
    if (!ids) return ids.error();
    if (!ids->empty()) sampling.dry_sequence_breakers.push_back(std::move(*ids));
  }
  return {};
}

}  // namespace braid::net::wish
