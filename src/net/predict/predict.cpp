#include "net/predict/predict.h"

#include "net/generation/dialect.h"
#include "net/generation/submission.h"
#include "net/json/fields.h"
#include "net/json/parse.h"
#include "net/json/write.h"
#include "net/predict/asked_network.h"
#include "net/predict/tensor_file.h"
#include "net/predict/tensor_json.h"
#include "net/predict/waiting.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <fmt/format.h>
#include <functional>
#include <iterator>
#include <numeric>
#include <optional>
#include <span>
#include <spdlog/spdlog.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::net::predict {
namespace {

namespace asio = boost::asio;

struct Wanted {
  const ServedNetwork* network = nullptr;
  std::string revision = {};  // of the network, when it was asked
  std::vector<std::optional<Tensor>> inputs;
  std::vector<std::size_t> outputs;
  std::optional<std::int32_t> priority;
  bool packed = false;
  bool as_file = false;  // the answer is a safetensors file, as the request was
};

Result<std::vector<std::optional<Tensor>>> read_inputs(const Value& value, std::span<const TensorSignature> signatures) {
  const auto* dict = value.get_if<ValueDict>();
  if (dict == nullptr) return json::wrong_type("inputs", "an object", value);
  std::vector<std::optional<Tensor>> inputs(signatures.size());
  for (const auto& [name, tensor] : *dict) {
    const std::string path = json::at_key("inputs", name);
    const auto signature = std::ranges::find(signatures, name, &TensorSignature::name);
    if (signature == signatures.end())
      return invalid_argument(fmt::format("'{}' is no input of this network, which has {}", name, names_of(signatures)), path);
    auto read = read_tensor(tensor, *signature, path);
    if (!read) return read.error();
    inputs[static_cast<std::size_t>(signature - signatures.begin())] = std::move(*read);
  }
  return inputs;
}

Result<std::vector<std::size_t>> read_outputs(const Value* value, std::span<const TensorSignature> signatures) {
  std::vector<std::size_t> outputs(signatures.size());
  std::iota(outputs.begin(), outputs.end(), std::size_t{0});
  if (value == nullptr || value->is_null()) return outputs;
  const auto* list = value->get_if<ValueList>();
  if (list == nullptr || list->empty()) return json::wrong_type("outputs", "a list of names", *value);
  outputs.clear();
  for (std::size_t i = 0; i < list->size(); ++i) {
    const std::string path = json::at_index("outputs", i);
    const auto name = json::read_string((*list)[i], path);
    if (!name) return name.error();
    const auto signature = std::ranges::find(signatures, *name, &TensorSignature::name);
    if (signature == signatures.end())
      return invalid_argument(fmt::format("'{}' is no output of this network, which has {}", *name, names_of(signatures)), path);
    const auto output = static_cast<std::size_t>(signature - signatures.begin());
    if (std::ranges::find(outputs, output) != outputs.end()) return invalid_argument(fmt::format("'{}' is named twice", *name), path);
    outputs.push_back(output);
  }
  return outputs;
}

Result<const ServedNetwork*> network_of(const ModelDirectory& models, const Value& body) {
  const Result<NamedModel> named = named_model(body);
  if (!named) return named.error();
  return find_network(models, *named);
}

// A body of tensors: what it wants of which network stands in its metadata, the outputs' names parted by commas.
Result<Wanted> read_file(const ModelDirectory& models, std::string_view body) {
  Result<TensorFile> file = read_tensor_file(body);
  if (!file) return file.error();
  const Value asked = names_in(*file);
  const auto network = network_of(models, asked);
  if (!network) return network.error();
  const Predictor& predictor = *(*network)->predictor;
  std::vector<std::optional<Tensor>> inputs(predictor.inputs().size());
  for (auto& [input, tensor] : file->tensors) {
    const auto signature = std::ranges::find(predictor.inputs(), input, &TensorSignature::name);
    if (signature == predictor.inputs().end())
      return invalid_argument(fmt::format("'{}' is no input of this network, which has {}", input, names_of(predictor.inputs())),
                              json::at_key("inputs", input));
    inputs[static_cast<std::size_t>(signature - predictor.inputs().begin())] = std::move(tensor);
  }
  ValueList wanted;
  if (const std::string* names = file->find_metadata("outputs"); names != nullptr && !names->empty()) {
    for (std::size_t begin = 0; begin <= names->size();) {
      const std::size_t end = std::min(names->find(',', begin), names->size());
      wanted.emplace_back(names->substr(begin, end - begin));
      begin = end + 1;
    }
  }
  const Value list = wanted.empty() ? Value() : Value(std::move(wanted));
  auto outputs = read_outputs(&list, predictor.outputs());
  if (!outputs) return outputs.error();
  const auto priority = read_priority(file->find_metadata("priority"));
  if (!priority) return priority.error();
  return Wanted{.network = *network,
                .inputs = std::move(inputs),
                .outputs = std::move(*outputs),
                .priority = *priority,
                .packed = false,
                .as_file = true};
}

// What is immutable of the networks: any thread.
Result<Wanted> read_request(const ModelDirectory& models, std::string& body) {
  if (is_tensor_file(body)) return read_file(models, body);
  const Result<Value> document = json::parse_object(body);
  if (!document) return document.error();
  for (const auto& [key, ignored] : *document->get_if<ValueDict>()) {
    constexpr std::string_view kKnown[] = {"model", "model_id", "inputs", "outputs", "encoding_format", "priority", "user"};
    if (std::ranges::find(kKnown, key) == std::end(kKnown)) return invalid_argument(fmt::format("'{}' is not known here", key), key);
  }
  const auto network = network_of(models, *document);
  if (!network) return network.error();
  const Value* const given = document->find("inputs");
  if (given == nullptr) return invalid_argument("'inputs' is missing", "inputs");
  const Predictor& predictor = *(*network)->predictor;
  auto inputs = read_inputs(*given, predictor.inputs());
  if (!inputs) return inputs.error();
  auto outputs = read_outputs(document->find("outputs"), predictor.outputs());
  if (!outputs) return outputs.error();
  const auto packed = wants_packed(document->find("encoding_format"));
  if (!packed) return packed.error();
  const auto priority = read_priority(document->find("priority"));
  if (!priority) return priority.error();
  return Wanted{
      .network = *network, .inputs = std::move(*inputs), .outputs = std::move(*outputs), .priority = *priority, .packed = *packed};
}

std::string document_of(const Wanted& wanted, std::span<const Tensor> outputs) {
  std::string out = R"({"model":)";
  json::append_lossy_string(out, wanted.network->id);
  out += R"(,"revision":)";
  json::append_lossy_string(out, wanted.revision);
  out += R"(,"outputs":{)";
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (i > 0) out += ',';
    json::append_lossy_string(out, wanted.network->predictor->outputs()[wanted.outputs[i]].name);
    out += ':';
    wanted.packed ? append_packed(out, outputs[i]) : append_lists(out, outputs[i]);
  }
  out += "}}";
  return out;
}

std::string file_of(const Wanted& wanted, std::span<const Tensor> outputs) {
  const std::vector<std::pair<std::string, std::string>> metadata = {{"model", wanted.network->id}, {"revision", wanted.revision}};
  std::vector<NamedTensor> tensors;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    tensors.push_back({wanted.network->predictor->outputs()[wanted.outputs[i]].name, &outputs[i]});
  return write_tensor_file(metadata, tensors);
}

struct Document {
  std::string text;
  bool is_file = false;
};

asio::awaitable<Result<Document>> predict(Service& service, http::Connection& connection, const Asker& asker, std::string& body) {
  if (service.status.state == ServiceState::kDraining) co_return Error{ErrorCode::kDraining, "the server is shutting down", ""};
  if (service.status.state == ServiceState::kLoading) co_return Error{ErrorCode::kModelNotLoaded, "the models are still being loaded", ""};
  const Deadlines deadlines = deadlines_of(service);
  const ModelDirectory models = service.status.models;
  Result<Wanted> wanted = Error{};
  std::function<void()> reading = [&] { wanted = read_request(models, body); };
  const Result<void> read = co_await run_text(service, connection, deadlines, Progress::kQueued, body.size(), std::move(reading));
  if (!read) co_return read.error();
  if (!wanted) co_return wanted.error();
  wanted->revision = wanted->network->revision;
  const Result<std::int32_t> priority = priority_by_rules(asker.client->rules(), wanted->priority, false);
  if (!priority) co_return priority.error();
  auto pending = wanted->network->predictor->submit(std::move(wanted->inputs), wanted->outputs, *priority);
  if (!pending) co_return pending.error();
  const Result<std::vector<Tensor>> outputs = co_await outputs_of(service, connection, deadlines, asker, **pending);
  if (!outputs) co_return outputs.error();
  if (std::optional<std::string> newer = (*pending)->newer_revision()) wanted->revision = std::move(*newer);
  const Result<std::size_t> values = answered_numbers(*outputs, "outputs");
  if (!values) co_return values.error();
  Document document{{}, wanted->as_file};
  std::function<void()> writing = [&] { document.text = wanted->as_file ? file_of(*wanted, *outputs) : document_of(*wanted, *outputs); };
  constexpr std::size_t kBytesOfValue = 12;
  const Result<void> written =
      co_await run_text(service, connection, deadlines, Progress::kStarted, *values * kBytesOfValue, std::move(writing));
  if (!written) co_return written.error();
  co_return std::move(document);
}

}  // namespace

asio::awaitable<http::Response> answer(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection, Asker asker,
                                       std::string body) {
  Result<Document> document = Error{ErrorCode::kInternal, "the request failed inside the server", ""};
  try {
    document = co_await predict(*service, *connection, asker, body);
  } catch (const std::exception& bug) {
    spdlog::error("a prediction: {}", bug.what());
  }
  if (!document) co_return kOpenAiVoice.refuse(document.error());
  http::Response response;
  if (document->is_file) response.content_type = "application/octet-stream";
  response.body = std::move(document->text);
  co_return response;
}

}  // namespace braid::net::predict
