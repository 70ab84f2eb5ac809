// Rotary positions as config.json describes them, in the keys and tensors of a file.
#include "model/deterministic_math.h"
#include "model/families/folder_decoder.h"
#include "model/families/gguf_keys.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numbers>
#include <string>
#include <vector>

namespace braid::model {
namespace {

double power(double base, double exponent) { return fixed_exp(exponent * fixed_log(base)); }

constexpr double kStandsStill = 1e30;  // divides the angle of a pair that does not turn, as llama.cpp's converter has it

struct Scaling {
  FolderReader& in;
  FolderConfig& part;  // where type and factors stand
  std::int32_t rotated;
  double base;
  std::int64_t context;

  double factor(std::optional<double> fallback = std::nullopt) { return part.number({"factor"}, fallback, 1e-3, 1e6); }

  // Of the context before stretching: beside the other factors, or, in older files, at the top.
  std::int64_t original() {
    const std::int64_t outer = in.config.count({"original_max_position_embeddings"}, context, 1, kMaxContext);
    return part.count({"original_max_position_embeddings"}, outer, 1, kMaxContext);
  }

  void set_type(std::string_view type, double by) {
    in.set("rope.scaling.type", std::string(type));
    in.set("rope.scaling.factor", by);
  }

  void yarn() {
    const double by = part.has({"factor"}) ? factor() : static_cast<double>(context) / static_cast<double>(original());
    const auto magnitude = [&](double scale) { return by <= 1.0 ? 1.0 : 0.1 * scale * fixed_log(by) + 1.0; };
    const double all = part.number({"mscale_all_dim"}, 0.0, 0.0, 1e3);
    const double one = part.number({"mscale"}, 0.0, 0.0, 1e3);
    const double whole =
        part.number({"attention_factor"}, one != 0.0 && all != 0.0 ? magnitude(one) / magnitude(all) : magnitude(1.0), 1e-3, 1e3);
    set_type("yarn", by);
    in.set("rope.scaling.original_context_length", static_cast<std::uint64_t>(original()));
    in.set("rope.scaling.attn_factor", whole / magnitude(1.0));  // a file's multiplies what follows from the factor
    in.set("rope.scaling.yarn_beta_fast", part.number({"beta_fast"}, 32.0, 1e-3, 1e6));
    in.set("rope.scaling.yarn_beta_slow", part.number({"beta_slow"}, 1.0, 1e-3, 1e6));
    in.set("rope.scaling.yarn_truncate", part.flag({"truncate"}, true));
    const double beta = part.number({"llama_4_scaling_beta"}, 0.0, 0.0, 1e3);
    if (beta != 0.0) in.set("attention.temperature_scale", beta);
  }

  void longrope() {
    const auto pairs = static_cast<std::size_t>(rotated / 2);
    const auto stretch = part.has({"factor"}) ? factor() : static_cast<double>(context) / static_cast<double>(original());
    const double magnitude = stretch <= 1.0 ? 1.0 : std::sqrt(1.0 + fixed_log(stretch) / fixed_log(static_cast<double>(original())));
    in.set("rope.scaling.type", std::string("longrope"));  // without a factor, by which llama.cpp would divide the angles again
    in.set("rope.scaling.original_context_length", static_cast<std::uint64_t>(original()));
    in.set("rope.scaling.attn_factor", part.number({"attention_factor"}, magnitude, 1e-3, 1e3));
    for (const std::string_view which : {"short", "long"}) {
      const std::vector<double> divisors = part.numbers(fmt::format("{}_factor", which), pairs);
      if (divisors.empty()) part.fail(ErrorCode::kBadFile, fmt::format("rope scaling of the type longrope lacks {}_factor", which));
      in.add_vector(fmt::format("rope_factors_{}.weight", which), divisors);
    }
  }

  // Low frequencies are divided by the factor, high ones not, with a ramp between the two (Llama 3.1).
  void llama3() {
    const double by = factor();
    const double low = part.number({"low_freq_factor"}, 1.0, 1e-3, 1e6);
    const double high = part.number({"high_freq_factor"}, 4.0, 1e-3, 1e6);
    if (!(high > low)) part.fail(ErrorCode::kBadFile, "high_freq_factor is expected to be above low_freq_factor");
    std::vector<double> divisors;
    for (std::int32_t i = 0; i < rotated / 2; ++i) {
      const double wavelength = 2.0 * std::numbers::pi * power(base, 2.0 * i / rotated);
      const double smooth = std::clamp((static_cast<double>(original()) / wavelength - low) / (high - low), 0.0, 1.0);
      divisors.push_back(1.0 / ((1.0 - smooth) / by + smooth));
    }
    in.add_vector("rope_freqs.weight", divisors);
  }

  // With alpha (Hunyuan) the base grows once and for all; otherwise beyond the context that the model has, which is never served.
  void dynamic() {
    const double alpha = part.number({"alpha"}, 1.0, 1e-3, 1e6);
    if (alpha != 1.0 && rotated > 2) base *= power(alpha, static_cast<double>(rotated) / (rotated - 2));
  }

  // Only the first pairs of a head turn, by angles as if all did (Gemma 4).
  void proportional() {
    const double share = part.number({"partial_rotary_factor"}, 1.0, 0.0, 1.0);
    const auto turning = static_cast<std::int32_t>(share * rotated) / 2;
    std::vector<double> divisors(static_cast<std::size_t>(rotated / 2), kStandsStill);
    std::fill_n(divisors.begin(), turning, factor(1.0));
    in.add_vector("rope_freqs.weight", divisors);
  }

  void read(const std::string& type) {
    if (type == "linear") return set_type("linear", factor());
    if (type == "yarn") return yarn();
    if (type == "longrope" || type == "su") return longrope();
    if (type == "llama3") return llama3();
    if (type == "dynamic") return dynamic();
    if (type == "proportional") return proportional();
    if (type != "default" && type != "mrope")  // of mrope a text's three positions are equal
      part.fail(
          ErrorCode::kUnsupported,
          fmt::format("rope scaling has the type \"{}\", expected default, linear, dynamic, yarn, longrope, llama3, proportional or mrope",
                      type));
  }
};

}  // namespace

void translate_rope(FolderReader& in, const FolderSize& size, std::int32_t rotated) {
  FolderConfig& config = in.config;
  if (rotated < 2 || rotated % 2 != 0) {
    config.fail(ErrorCode::kBadFile, fmt::format("{} of the {} values of a head rotate, expected an even number", rotated, size.head_dim));
    return;
  }
  if (rotated != size.head_dim) in.set("rope.dimension_count", static_cast<std::uint64_t>(rotated));
  std::optional<FolderConfig> part = config.part("rope_parameters");
  if (!part) part = config.part("rope_scaling");
  const double outer_base = config.number({"rope_theta", "rotary_emb_base"}, 10000.0, 2.0, 1e12);
  double local_base = config.number({"rope_local_base_freq"}, outer_base, 2.0, 1e12);
  bool is_local = config.has({"rope_local_base_freq"});
  if (part) {
    if (auto sliding = part->part("sliding_attention")) {  // windowed layers have their own
      local_base = sliding->number({"rope_theta"}, outer_base, 2.0, 1e12);
      is_local = true;
      if (const std::string type = sliding->text({"rope_type", "type"}, "default"); type != "default")
        sliding->fail(ErrorCode::kUnsupported, fmt::format("windowed layers have rope scaling of the type \"{}\", expected default", type));
      if (sliding->error && !config.error) config.error = sliding->error;
    }
    if (auto full = part->part("full_attention")) part = std::move(full);
  }
  double base = outer_base;
  if (part) {
    base = part->number({"rope_theta"}, outer_base, 2.0, 1e12);
    const std::int64_t context = config.count({"max_position_embeddings", "model_max_length"}, 2048, 1, kMaxContext);
    Scaling scaling{in, *part, rotated, base, context};
    scaling.read(part->text({"rope_type", "type"}, "default"));
    base = scaling.base;
    if (part->error && !config.error) config.error = part->error;
  }
  in.set("rope.freq_base", base);
  if (is_local) in.set("rope.freq_base_swa", local_base);
}

}  // namespace braid::model
