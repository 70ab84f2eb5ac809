// Any bytes as what changes a small model's weights. The first byte says what the rest is: a folder of PEFT (two bytes for the length of
// adapter_config.json, that, and adapter_model.safetensors), a GGUF adapter, or a file of newer weights.
#include "files/byte_source.h"
#include "fuzz/require.h"
#include "kernels/select.h"
#include "model/adapters/build.h"
#include "model/adapters/read_adapter.h"
#include "model/families/families.h"
#include "model/loaded_tensors.h"
#include "model/tiny_model.h"
#include "model/weights.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace {

using namespace braid;

struct Base {
  files::GgufFile file = model::test::TinyModel().file();
  model::ModelShape shape = model::describe_model(file).value();
  kernels::ThreadTeam team{1};
  const kernels::KernelTable& table = scalar();
  model::Weights weights = model::load_weights(file, shape, shape.context_length, table, team, {}).value();
  model::LoadedTensors tensors = model::LoadedTensors::of(file);

  static const kernels::KernelTable& scalar() {
    std::string missing;
    return *kernels::kernel_table(kernels::Isa::kScalar, missing);
  }
};

// Whatever is refused has a reason.
template <class T>
bool is_there(const Result<T>& result) {
  braid::test::require(result || !result.error().message.empty());
  return result.has_value();
}

std::shared_ptr<const files::ByteSource> source_of(std::span<const std::byte> bytes) {
  return files::owned_bytes({bytes.begin(), bytes.end()}, "fuzz");
}

void use(const Base& base, const Result<model::StoredAdapter>& stored) {
  if (!is_there(stored)) return;
  const auto adapter = model::build_adapter(*stored, base.shape, base.weights, base.table);
  if (!is_there(adapter)) return;
  for (std::uint32_t number = 0; number <= base.weights.matrices + 1; ++number)
    if (const model::AdaptedMatrix* matrix = (*adapter)->find(number))
      braid::test::require(matrix->low_rank.rank <= model::LowRankFactors::kMostRank && matrix->low_rank.rank <= (*adapter)->widest);
}

void read_folder(const Base& base, std::span<const std::byte> bytes) {
  if (bytes.size() < 2) return;
  const std::size_t wanted = std::to_integer<std::size_t>(bytes[0]) + std::to_integer<std::size_t>(bytes[1]) * 256;
  const std::size_t length = std::min(bytes.size() - 2, wanted);
  const std::string text(reinterpret_cast<const char*>(bytes.data()) + 2, length);
  Result<model::PeftConfig> config = model::PeftConfig::parse(text, "adapter_config.json");
  if (!is_there(config)) return;
  use(base, model::read_peft_tensors(std::make_shared<const model::PeftConfig>(std::move(*config)), source_of(bytes.subspan(2 + length)),
                                     {base.shape, ""}));
}

void read_newer(Base& base, std::span<const std::byte> bytes) {
  const auto newer = model::newer_tensors(base.tensors, source_of(bytes), true);
  if (!is_there(newer)) return;
  const auto weights = model::newer_weights(base.weights, newer->file, base.shape, base.shape.context_length, base.table, base.team);
  braid::test::require(is_there(weights));
  braid::test::require(weights->matrices == base.weights.matrices && weights->layers.size() == base.weights.layers.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static Base base;
  if (size == 0) return 0;
  const std::span<const std::byte> rest = std::as_bytes(std::span(bytes + 1, size - 1));
  switch (bytes[0] % 3) {
    case 0:
      read_folder(base, rest);
      break;
    case 1:
      use(base, model::read_gguf_adapter(source_of(rest), base.shape.architecture, base.shape.input.name));
      break;
    default:
      read_newer(base, rest);
  }
  return 0;
}
