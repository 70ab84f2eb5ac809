#include "model/families/families.h"

#include "model/families/family.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace braid::model {
namespace {

constexpr std::array kFamilies = {
    Family{"gemma2", describe_gemma2}, Family{"gpt2", describe_gpt2},   Family{"llama", describe_llama},
    Family{"qwen2", describe_qwen2},   Family{"qwen3", describe_qwen3},
};

}  // namespace

Result<ModelShape> describe_model(const files::GgufFile& file) {
  auto architecture = file.string_or("general.architecture", "");
  if (!architecture) return architecture.error();
  const auto family = std::ranges::find(kFamilies, *architecture, &Family::architecture);
  if (family == kFamilies.end())
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{}: general.architecture is \"{}\", expected one of {}", file.name(), *architecture, known_architectures()),
                 {}};
  GgufKeys keys(file, family->architecture);
  ModelShape model = family->describe(keys);
  if (keys.error) return *keys.error;
  model.architecture = family->architecture;
  return model;
}

std::string known_architectures() {
  std::string names;
  for (const Family& family : kFamilies) names.append(names.empty() ? "" : ", ").append(family.architecture);
  return names;
}

}  // namespace braid::model
