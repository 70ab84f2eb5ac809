// What /v1/predict takes from outside: a network's signature, and tensors as JSON or as a safetensors body. Behind '#' stands a network's
// config.json without tensors of its own, and behind a zero byte the JSON of its inputs. Refusals must name a path; what is accepted has as
// many values as its shape says, and is the same once it is written and read again.
#include "fuzz/require.h"
#include "kernels/select.h"
#include "kernels/thread_team.h"
#include "model/networks/network.h"
#include "net/json/parse.h"
#include "net/predict/tensor_file.h"
#include "net/predict/tensor_json.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace braid;
using test::require;

bool same_bits(const Tensor& one, const Tensor& other) {
  return one.shape == other.shape && one.integers == other.integers && one.floats.size() == other.floats.size() &&
         (one.floats.empty() || std::memcmp(one.floats.data(), other.floats.data(), one.floats.size() * sizeof(float)) == 0);
}

void require_whole(const Tensor& tensor) {
  const std::size_t values = tensor.type == ElementType::kFloat32 ? tensor.floats.size() : tensor.integers.size();
  require(static_cast<std::size_t>(value_count(tensor.shape)) == values);
}

void require_refusal(const Error& error) {
  require(!error.message.empty());
  require(error.code == ErrorCode::kInvalidArgument || error.code == ErrorCode::kBadFile || error.code == ErrorCode::kUnsupported);
}

void fuzz_file(const std::string& body) {
  const auto file = net::predict::read_tensor_file(body);
  if (!file) return require_refusal(file.error());
  std::vector<net::predict::NamedTensor> named;
  for (const auto& [name, tensor] : file->tensors) {
    require_whole(tensor);
    named.push_back({name, &tensor});
  }
  const auto again = net::predict::read_tensor_file(net::predict::write_tensor_file(file->metadata, named));
  require(again && again->tensors.size() == file->tensors.size());
  for (std::size_t i = 0; i < again->tensors.size(); ++i) require(same_bits(again->tensors[i].second, file->tensors[i].second));
}

std::optional<Tensor> read_input(const Value& value, const TensorSignature& signature) {
  const std::string path = "inputs." + signature.name;
  auto tensor = net::predict::read_tensor(value, signature, path);
  if (!tensor) {
    require_refusal(tensor.error());
    require(tensor.error().param.starts_with(path));
    return std::nullopt;
  }
  require_whole(*tensor);
  std::string packed = R"({"t":)";
  net::predict::append_packed(packed, *tensor);
  packed += '}';
  const auto document = net::json::parse_object(packed);
  require(document.has_value());
  const auto again = net::predict::read_tensor(*document->find("t"), signature, path);
  require(again && same_bits(*again, *tensor));
  return std::move(*tensor);
}

void run_network(const model::Network& network, std::vector<Tensor> inputs) {
  static kernels::ThreadTeam team(1);
  std::vector<std::size_t> outputs(network.shape().outputs.size());
  std::iota(outputs.begin(), outputs.end(), std::size_t{0});
  model::NetworkRun run(network, std::move(inputs), outputs, team);
  while (!run.done())
    if (const auto advanced = run.advance(); !advanced) return require_refusal(advanced.error());
  for (const Tensor& tensor : run.take_outputs()) require_whole(tensor);
}

void fuzz_network(const std::string& config, std::string request) {
  const auto network = model::Network::load(config, {}, kernels::best_kernel_table());
  if (!network) return require_refusal(network.error());
  const auto document = net::json::parse_object(request);
  std::vector<std::optional<Tensor>> inputs;
  for (const TensorSignature& signature : network->shape().inputs) {
    const Value* value = document ? document->find(signature.name) : nullptr;
    inputs.push_back(value != nullptr ? read_input(*value, signature) : std::nullopt);
  }
  auto complete = network->complete(std::move(inputs));
  if (!complete) return require_refusal(complete.error());
  std::size_t values = 0;  // inputs that are left out may be large
  for (const Tensor& tensor : *complete) values += static_cast<std::size_t>(value_count(tensor.shape));
  if (values < 100'000) run_network(*network, std::move(*complete));
}

void fuzz_lists(std::string body) {
  const auto document = net::json::parse_object(body);
  if (!document) return;
  for (const auto& [name, value] : *document->get_if<ValueDict>()) {
    TensorSignature signature{.name = "t", .type = ElementType::kFloat32, .shape = {}, .optional = false};
    if (name.starts_with('i')) signature.type = ElementType::kInt64;
    signature.shape.resize(name.empty() ? 1 : name.size());
    read_input(value, signature);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  constexpr std::size_t kMostBytes = 8192;
  if (size > kMostBytes) return 0;
  const std::string input(reinterpret_cast<const char*>(bytes), size);
  if (net::predict::is_tensor_file(input)) {
    fuzz_file(input);
  } else if (input.starts_with('#')) {
    const std::size_t end = std::min(input.find('\0'), input.size());
    fuzz_network(input.substr(1, end - 1), input.substr(std::min(end + 1, input.size())));
  } else {
    fuzz_lists(input);
  }
  return 0;
}
