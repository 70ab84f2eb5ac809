#include "net/generation/settings.h"

#include <array>
#include <cstdint>
#include <fmt/format.h>
#include <iterator>
#include <limits>
#include <span>
#include <string_view>

namespace braid::net {
namespace {

constexpr std::uint64_t kRandomSeed = std::numeric_limits<std::uint32_t>::max();  // as llama-server writes one that is drawn

constexpr std::array kUsualSteps = {SamplerStep::kTopNSigma, SamplerStep::kTopK, SamplerStep::kTypicalP,   SamplerStep::kTopP,
                                    SamplerStep::kMinP,      SamplerStep::kXtc,  SamplerStep::kTemperature};

std::string_view name_of(SamplerStep step) {
  switch (step) {
    case SamplerStep::kTopNSigma:
      return "top_n_sigma";
    case SamplerStep::kTopK:
      return "top_k";
    case SamplerStep::kTypicalP:
      return "typ_p";
    case SamplerStep::kTopP:
      return "top_p";
    case SamplerStep::kMinP:
      return "min_p";
    case SamplerStep::kXtc:
      return "xtc";
    case SamplerStep::kTemperature:
      return "temperature";
  }
  return "";
}

void append_samplers(std::string& out, std::span<const SamplerStep> steps) {
  out += R"("samplers":["penalties","dry")";
  for (const SamplerStep step : steps) out.append(",\"").append(name_of(step)).append("\"");
  out += ']';
}

}  // namespace

void append_settings(std::string& out, const Wish& wish) {
  const SamplingParams& sampling = wish.sampling;
  const std::int32_t limit = wish.max_tokens.value_or(-1);
  const std::int32_t most = limit == std::numeric_limits<std::int32_t>::max() ? -1 : limit;
  auto to = std::back_inserter(out);
  fmt::format_to(to, R"({{"n_predict":{0},"max_tokens":{0},"seed":{1},"temperature":{2},"dynatemp_range":0.0,"dynatemp_exponent":1.0,)",
                 most, wish.seeded ? sampling.seed : kRandomSeed, sampling.temperature);
  fmt::format_to(to, R"("top_k":{},"top_p":{},"min_p":{},"top_n_sigma":{},"xtc_probability":{},"xtc_threshold":{},"typical_p":{},)",
                 sampling.top_k, sampling.top_p, sampling.min_p, sampling.top_n_sigma, sampling.xtc_probability, sampling.xtc_threshold,
                 sampling.typical_p);
  fmt::format_to(to, R"("repeat_last_n":{},"repeat_penalty":{},"presence_penalty":{},"frequency_penalty":{},)", sampling.penalty_last_n,
                 sampling.repetition_penalty, sampling.presence_penalty, sampling.frequency_penalty);
  fmt::format_to(to, R"("dry_multiplier":{},"dry_base":{},"dry_allowed_length":{},"dry_penalty_last_n":{},)", sampling.dry_multiplier,
                 sampling.dry_base, sampling.dry_allowed_length, sampling.dry_penalty_last_n);
  fmt::format_to(to, R"("mirostat":{},"mirostat_tau":{},"mirostat_eta":{},"n_keep":0,"n_discard":0,"ignore_eos":{},"stream":{},)",
                 sampling.mirostat, sampling.mirostat_tau, sampling.mirostat_eta, wish.stop.ignore_eos, wish.stream);
  fmt::format_to(to, R"("n_probs":{},"min_keep":0,)", sampling.top_logprobs > 0 ? sampling.top_logprobs : 0);
  append_samplers(out, sampling.steps.empty() ? std::span<const SamplerStep>(kUsualSteps) : sampling.steps);
  fmt::format_to(to, R"(,"timings_per_token":{},"post_sampling_probs":false,"lora":[]}})", wish.timings_per_token);
}

}  // namespace braid::net
