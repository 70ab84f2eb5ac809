#include "model/families.h"

#include <array>

namespace braid::model {
namespace {

constexpr std::array kFamilies = {
    Family{.architecture = "llama", .interleaved_rope = true, .qkv_bias = Presence::kOptional, .output_bias = Presence::kOptional},
    Family{.architecture = "qwen2", .qkv_bias = Presence::kRequired},
    Family{.architecture = "qwen3", .qkv_bias = Presence::kOptional, .output_bias = Presence::kOptional, .query_key_norm = true},
};

}  // namespace

const Family* find_family(std::string_view architecture) {
  for (const Family& family : kFamilies)
    if (family.architecture == architecture) return &family;
  return nullptr;
}

std::string known_architectures() {
  std::string names;
  for (const Family& family : kFamilies) names.append(names.empty() ? "" : ", ").append(family.architecture);
  return names;
}

}  // namespace braid::model
