#include "model/prequantized/prequantized.h"

#include "model/prequantized/methods.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <utility>

namespace braid::model {
namespace {

using MethodReader = void (*)(const files::HfFolder&, FolderConfig&, FolderConfig&, Prequantized&);
constexpr std::pair<std::string_view, MethodReader> kMethodReaders[] = {
    {"awq", read_awq},    {"compressed-tensors", read_compressed_tensors}, {"fbgemm_fp8", read_fp8}, {"fp8", read_fp8}, {"gptq", read_gptq},
    {"mxfp4", read_mxfp4}};

// Scales of activations, and of keys and values, which are not rounded here.
constexpr std::string_view kSayNothing[] = {
    ".input_scale", ".activation_scale", ".input_global_scale", ".output_scale", ".k_scale",
    ".v_scale",     ".q_scale",          ".input_scale_ub",     ".kv_scale",     ".input_zero_point"};

// One sentence for each type that does not hold its values exactly.
void add_notes(Prequantized& out) {
  struct Held {
    int matrices = 0;
    int ordered = 0;
    double worst = 0.0;
  };
  std::map<kernels::WeightType, Held> held;
  for (const auto& [name, matrix] : out.matrices) {
    Held& own = held[matrix->type()];
    const double error = matrix->error();
    if (error > 0.0) ++own.matrices;
    if (error > 0.0 && matrix->orders_inputs()) ++own.ordered;
    own.worst = std::max(own.worst, error);
  }
  for (const auto& [type, own] : held)
    if (own.matrices > 0)
      out.notes.push_back(fmt::format(
          "{} quantised matrices are held as {}{}, whose values differ by up to {:.2g}% of theirs (root mean square); --dtype f32 "
          "computes with them exactly",
          own.matrices, kernels::weight_format(type)->name,
          own.ordered > 0 ? fmt::format(" ({} for act-order, in which no type of blocks has its groups)", own.ordered) : "",
          100 * own.worst));
}

}  // namespace

std::vector<std::string> stems_of(const files::HfFolder& folder, std::string_view suffix) {
  std::vector<std::string> stems;
  const std::string ending = fmt::format(".{}", suffix);
  for (const auto& [name, stored] : folder.tensors())
    if (name.ends_with(ending)) stems.push_back(name.substr(0, name.size() - ending.size()));
  return stems;
}

Prequantized read_prequantized(const files::HfFolder& folder, FolderConfig& config) {
  Prequantized out;
  if (auto mlx = config.outer_part("quantization"); mlx && mlx->has({"group_size"})) {
    read_mlx(folder, *mlx, config, out);
  } else if (auto own = config.outer_part("quantization_config")) {
    const std::string method = own->text({"quant_method"}, "");
    const auto* known = std::ranges::find(kMethodReaders, method, &std::pair<std::string_view, MethodReader>::first);
    if (known == std::end(kMethodReaders)) {
      config.fail(ErrorCode::kUnsupported,
                  fmt::format("quantization_config.quant_method is \"{}\", which this build does not read; it reads MLX, GPTQ, AWQ, "
                              "compressed-tensors, fp8 and mxfp4",
                              method));
      return out;
    }
    known->second(folder, *own, config, out);
  } else {
    return out;
  }
  for (const auto& [name, stored] : folder.tensors())
    if (std::ranges::any_of(kSayNothing, [&tensor = name](std::string_view ending) { return tensor.ends_with(ending); }))
      out.used.insert(name);
  if (!config.error) add_notes(out);
  return out;
}

}  // namespace braid::model
