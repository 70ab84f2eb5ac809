// GGUF files of adapters: tensors "<tensor of the base>.lora_a" and ".lora_b", the rows of which lie as the base's file has them.
#include "files/gguf.h"
#include "files/gguf_tensor_type.h"
#include "model/adapters/read_adapter.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <utility>

namespace braid::model {
namespace {

class GgufAdapterReader {
 public:
  GgufAdapterReader(const files::GgufFile& file, const std::string& architecture, const std::string& embedding)
      : file_(file), architecture_(architecture), embedding_(embedding) {}

  Result<std::vector<StoredMatrix>> read() {
    if (auto fault = check_metadata()) return *fault;
    for (const files::GgufTensor& tensor : file_.tensors()) add(tensor);
    std::vector<StoredMatrix> all;
    for (auto& [name, pair] : pairs_) part(name, pair, all);
    if (error_) return *error_;
    if (all.empty()) return Error{ErrorCode::kBadFile, file_.name() + ": holds no tensors", {}};
    return all;
  }

 private:
  struct Factors {
    const files::GgufTensor* down = nullptr;
    const files::GgufTensor* up = nullptr;
  };

  void fail(ErrorCode code, const std::string& tensor, const std::string& what) {
    if (!error_) error_ = Error{code, fmt::format("{}: tensor {}: {}", file_.name(), tensor, what), {}};
  }

  std::optional<Error> check_metadata() {
    const auto expect = [&](std::string_view key, std::string_view expected) -> std::optional<Error> {
      const Result<std::string> found = file_.string_or(key, "");
      if (!found) return found.error();
      if (*found == expected) return std::nullopt;
      return Error{ErrorCode::kUnsupported, fmt::format("{}: {} is \"{}\", expected \"{}\"", file_.name(), key, *found, expected), {}};
    };
    for (const auto& [key, expected] : {std::pair<std::string_view, std::string_view>{"general.type", "adapter"},
                                        {"adapter.type", "lora"},
                                        {"general.architecture", architecture_}})
      if (auto fault = expect(key, expected)) return fault;
    if (file_.find("adapter.alora.invocation_tokens") != nullptr)
      return Error{ErrorCode::kUnsupported, file_.name() + ": it begins at some tokens only, which this build cannot compute", {}};
    const Result<double> alpha = file_.number_or("adapter.lora.alpha", 0.0);
    if (!alpha) return alpha.error();
    if (!std::isfinite(*alpha))
      return Error{ErrorCode::kBadFile, fmt::format("{}: adapter.lora.alpha is {}, expected a number", file_.name(), *alpha), {}};
    alpha_ = *alpha;
    return std::nullopt;
  }

  void add(const files::GgufTensor& tensor) {
    constexpr std::string_view kDown = ".weight.lora_a";
    constexpr std::string_view kUp = ".weight.lora_b";
    const bool is_down = tensor.name.ends_with(kDown);
    if (!is_down && !tensor.name.ends_with(kUp))
      return fail(ErrorCode::kUnsupported, tensor.name, "is neither a .lora_a nor a .lora_b of a weight");
    if (tensor.shape.size() < 2 || tensor.shape.size() > 3)
      return fail(ErrorCode::kBadFile, tensor.name, fmt::format("has {} dimensions, expected 2 or 3", tensor.shape.size()));
    if (kernels::weight_format(static_cast<kernels::WeightType>(tensor.type)) == nullptr || files::gguf_tensor_type(tensor.type) == nullptr)
      return fail(ErrorCode::kUnsupported, tensor.name, "has a type that this build cannot compute with");
    Factors& pair = pairs_[tensor.name.substr(0, tensor.name.size() - kDown.size())];
    (is_down ? pair.down : pair.up) = &tensor;
  }

  // The matrices of experts lie one after the other.
  void part(const std::string& name, const Factors& pair, std::vector<StoredMatrix>& all) {
    if (pair.down == nullptr) return fail(ErrorCode::kBadFile, name + ".weight.lora_a", "is missing; its .lora_b is there");
    if (pair.up == nullptr) return fail(ErrorCode::kBadFile, name + ".weight.lora_b", "is missing; its .lora_a is there");
    const bool several = pair.down->shape.size() == 3;
    const std::int64_t count = several ? pair.down->shape[2] : 1;
    if (pair.up->shape.size() != pair.down->shape.size() || (several && pair.up->shape[2] != count))
      return fail(ErrorCode::kBadFile, pair.up->name, "has not as many matrices as its .lora_a");
    const std::int64_t rank = pair.up->shape[0];
    if (count < 1 || rank < 1) return fail(ErrorCode::kBadFile, pair.up->name, "is empty");
    for (std::int64_t i = 0; i < count; ++i) {
      StoredMatrix& matrix = all.emplace_back();
      matrix.name = name;
      matrix.expert = several ? static_cast<std::int32_t>(i) : -1;
      matrix.scale = alpha_ != 0.0 ? static_cast<float>(alpha_ / static_cast<double>(rank)) : 1.0F;
      matrix.turned = name == embedding_;
      matrix.down = matrix_of(*pair.down, i, count);
      matrix.up = matrix_of(*pair.up, i, count);
      for (const StoredTensor* tensor : {&matrix.down, &matrix.up})
        if (!tensor->is_finite()) return fail(ErrorCode::kBadFile, tensor->name, "holds a value that is infinite or no number");
    }
  }

  static StoredTensor matrix_of(const files::GgufTensor& tensor, std::int64_t index, std::int64_t count) {
    const std::size_t bytes = tensor.bytes.size() / static_cast<std::size_t>(count);
    return {.name = tensor.name,
            .type = static_cast<kernels::WeightType>(tensor.type),
            .shape = {tensor.shape[1], tensor.shape[0]},
            .bytes = tensor.bytes.subspan(static_cast<std::size_t>(index) * bytes, bytes)};
  }

  const files::GgufFile& file_;
  const std::string& architecture_;
  const std::string& embedding_;
  double alpha_ = 0.0;
  std::map<std::string, Factors> pairs_;
  std::optional<Error> error_;
};

}  // namespace

Result<StoredAdapter> read_gguf_adapter(std::shared_ptr<const files::ByteSource> source, const std::string& architecture,
                                        const std::string& embedding) {
  const Result<files::GgufFile> file = files::GgufFile::from_bytes(source);
  if (!file) return file.error();
  Result<std::vector<StoredMatrix>> matrices = GgufAdapterReader(*file, architecture, embedding).read();
  if (!matrices) return matrices.error();
  return StoredAdapter{.name = source->name(), .sources = {std::move(source)}, .matrices = std::move(*matrices)};
}

}  // namespace braid::model
