// adapter_config.json, as PEFT writes it for LoRA and what is made of it.
#pragma once

#include "braid/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::model {

struct PeftConfig {
  std::string path;  // for messages
  std::int32_t rank = 8;
  double alpha = 8.0;
  bool by_root = false;                                                     // rsLoRA (Kalajdzievski 2023): alpha / sqrt(rank)
  bool magnitudes = false;                                                  // DoRA
  std::vector<std::pair<std::string, double>> rank_pattern, alpha_pattern;  // regular expressions of modules, in their order
  std::vector<std::string> parameters;  // that are adapted by their names instead of their modules' (target_parameters)
  // Of which tokens an embedding has rows of its own (trainable_token_indices), by its module; without a name it is that of what is read.
  std::vector<std::pair<std::string, std::vector<std::int32_t>>> tokens;
  // Of parameters that hold outputs as rows: PEFT below 0.19 takes these for inputs.
  bool has_inputs_first = false;
  bool all_layers = false;  // what is adapted in one layer is in all that have it

  // kBadFile; kUnsupported: something is set that changes the sum and that this build lacks. The message names the key.
  static Result<PeftConfig> parse(const std::string& text, std::string path);

  // As the patterns have them for a module of the base ("model.layers.0.self_attn.q_proj").
  std::int32_t rank_of(std::string_view module) const;
  double alpha_of(std::string_view module) const;
  // Which of a module's parameters are adapted, those of outer wrappers first, as PEFT nests them.
  std::vector<std::string_view> parameters_of(std::string_view module) const;
  // Null: it is not said of this embedding.
  const std::vector<std::int32_t>* tokens_of(std::string_view module) const;
  // What the product of a module's matrices of this rank is multiplied by.
  float scale_of(std::string_view module, std::int32_t its_rank) const;
};

// Whether a pattern is about a module: "(.*\.)?(pattern)", as PEFT matches.
bool matches_module(const std::string& pattern, std::string_view module);

}  // namespace braid::model
