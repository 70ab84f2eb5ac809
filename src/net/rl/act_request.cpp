#include "net/rl/act_request.h"

#include "net/json/fields.h"
#include "net/json/parse.h"
#include "net/predict/asked_network.h"
#include "net/predict/tensor_file.h"
#include "net/predict/tensor_json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <limits>
#include <string_view>
#include <utility>

namespace braid::net::rl {
namespace {

constexpr std::int64_t kMostTimeToLive = 86'400;
constexpr std::size_t kMostSessionName = 128;
constexpr std::int64_t kMostInteger = std::numeric_limits<std::int64_t>::max();

// The network that the members name; nullopt as read_act() has it.
Result<std::optional<const ServedNetwork*>> asked(const ModelDirectory& models, bool may_generate, const NamedModel& named, bool is_file) {
  const auto* text = named.name != nullptr ? named.name->get_if<std::string>() : nullptr;
  const bool may_be_other = text != nullptr ? models.find_network(*text) == nullptr : models.networks().empty();
  if (may_generate && may_be_other && is_file && text != nullptr)
    return invalid_argument(
        fmt::format("'{}' is no network, which tensors as a body are for: a language model takes 'observations' of an object", *text),
        named.member);
  if (may_generate && may_be_other && !is_file) return std::optional<const ServedNetwork*>();
  const auto network = predict::find_network(models, named);
  if (!network) return network.error();
  return std::optional(*network);
}

Result<void> need_policy(const ServedNetwork& network) {
  if (network.predictor->policy() != nullptr) return {};
  return invalid_argument(
      fmt::format("the network '{}' is no policy: its config.json has no \"policy\"; /v1/predict gives its outputs", network.id),
      "model_id");
}

bool is_state(const PolicyForm& policy, std::size_t input) {
  return std::ranges::any_of(policy.states, [input](const PolicyState& state) { return state.input == input; });
}

// Names of the inputs that are states, or of the others.
std::vector<TensorSignature> inputs_of(const Predictor& predictor, bool states) {
  std::vector<TensorSignature> signatures;
  for (std::size_t i = 0; i < predictor.inputs().size(); ++i)
    if (is_state(*predictor.policy(), i) == states) signatures.push_back(predictor.inputs()[i]);
  return signatures;
}

class ActReader {
 public:
  explicit ActReader(const ServedNetwork& network) : predictor_(*network.predictor) {
    request_.network = &network;
    request_.inputs.resize(predictor_.inputs().size());
  }

  Result<ActRequest> read(const Value& body) {
    for (const auto& [key, ignored] : *body.get_if<ValueDict>()) {
      constexpr std::array<std::string_view, 14> kKnown = {
          "model",   "model_id",    "observations",  "hidden_states", "deterministic",   "seed",     "step",
          "session", "session_ttl", "session_reset", "session_end",   "encoding_format", "priority", "user"};
      if (std::ranges::find(kKnown, key) == kKnown.end()) return invalid_argument(fmt::format("'{}' is not known here", key), key);
    }
    const Value* const observations = member(body, "observations");
    if (observations == nullptr) return invalid_argument("'observations' is missing", "observations");
    Result<void> read = read_observations(*observations);
    if (const Value* states = member(body, "hidden_states"); read && states != nullptr) {
      request_.gives_states = true;
      read = read_named(*states, "hidden_states", true);
    }
    if (read) read = read_draw(body);
    if (read) read = read_session(body);
    if (!read) return read.error();
    const auto packed = predict::wants_packed(body.find("encoding_format"));
    if (!packed) return packed.error();
    request_.packed = *packed;
    const auto priority = predict::read_priority(body.find("priority"));
    if (!priority) return priority.error();
    request_.priority = *priority;
    return std::move(request_);
  }

  // Tensors are named as the network names its inputs; the rest are texts of the metadata.
  Result<ActRequest> read(predict::TensorFile file) {
    for (auto& [name, tensor] : file.tensors) {
      const auto place = place_of(name);
      if (!place)
        return invalid_argument(fmt::format("'{}' is no input of this network, which has {}", name, predict::names_of(predictor_.inputs())),
                                json::at_key("observations", name));
      request_.gives_states = request_.gives_states || is_state(*predictor_.policy(), *place);
      request_.inputs[*place] = std::move(tensor);
    }
    ValueDict body;
    for (const auto& [key, text] : file.metadata) {
      if (key == "seed" || key == "step" || key == "session_ttl") {
        std::int64_t number = 0;
        const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
        if (failure != std::errc() || end != text.data() + text.size())
          return invalid_argument(fmt::format("'{}' must be a whole number", key), key);
        body.emplace_back(key, number);
      } else if (text == "true" || text == "false") {
        body.emplace_back(key, text == "true");
      } else {
        body.emplace_back(key, text);
      }
    }
    const Value options(std::move(body));
    Result<void> read = read_draw(options);
    if (read) read = read_session(options);
    if (!read) return read.error();
    const auto priority = predict::read_priority(file.find_metadata("priority"));
    if (!priority) return priority.error();
    request_.priority = *priority;
    request_.as_file = true;
    return std::move(request_);
  }

 private:
  static const Value* member(const Value& body, std::string_view key) {
    const Value* value = body.find(key);
    return value == nullptr || value->is_null() ? nullptr : value;
  }

  std::optional<std::size_t> place_of(std::string_view name) const {
    const auto found = std::ranges::find(predictor_.inputs(), name, &TensorSignature::name);
    if (found == predictor_.inputs().end()) return std::nullopt;
    return static_cast<std::size_t>(found - predictor_.inputs().begin());
  }

  // By name; or the tensor itself where there is one kind of them.
  Result<void> read_observations(const Value& value) {
    const std::vector<TensorSignature> signatures = inputs_of(predictor_, false);
    const auto* dict = value.get_if<ValueDict>();
    const bool is_packed = dict != nullptr && value.find("data") != nullptr && !place_of("data");
    if (dict != nullptr && !is_packed) return read_named(value, "observations", false);
    if (signatures.size() != 1)
      return invalid_argument(
          fmt::format("the policy takes several observations: expected an object with {}", predict::names_of(signatures)), "observations");
    auto tensor = predict::read_tensor(value, signatures.front(), "observations");
    if (!tensor) return tensor.error();
    request_.inputs[*place_of(signatures.front().name)] = std::move(*tensor);
    return {};
  }

  Result<void> read_named(const Value& value, const std::string& field, bool states) {
    const auto* dict = value.get_if<ValueDict>();
    if (dict == nullptr) return json::wrong_type(field, "an object", value);
    for (const auto& [name, given] : *dict) {
      const std::string path = json::at_key(field, name);
      const auto place = place_of(name);
      if (!place || is_state(*predictor_.policy(), *place) != states)
        return invalid_argument(fmt::format("'{}' is not among the {} of this policy, which are {}", name,
                                            states ? "hidden states" : "observations", predict::names_of(inputs_of(predictor_, states))),
                                path);
      auto tensor = predict::read_tensor(given, predictor_.inputs()[*place], path);
      if (!tensor) return tensor.error();
      request_.inputs[*place] = std::move(*tensor);
    }
    return {};
  }

  Result<void> read_draw(const Value& body) {
    if (const Value* value = member(body, "deterministic")) {
      const auto deterministic = json::read_bool(*value, "deterministic");
      if (!deterministic) return deterministic.error();
      request_.deterministic = *deterministic;
    }
    if (const Value* value = member(body, "step")) {
      const auto step = json::read_integer(*value, "step", 0, kMostInteger);
      if (!step) return step.error();
      request_.step = *step;
    }
    const Value* const seed = member(body, "seed");
    if (seed == nullptr) return {};
    std::vector<std::uint64_t> seeds;
    const auto* list = seed->get_if<ValueList>();
    if (list != nullptr && list->empty()) return invalid_argument("'seed' is empty", "seed");
    for (std::size_t i = 0; i < (list != nullptr ? list->size() : 1); ++i) {
      const auto number = list != nullptr ? json::read_integer((*list)[i], json::at_index("seed", i)) : json::read_integer(*seed, "seed");
      if (!number) return number.error();
      seeds.push_back(static_cast<std::uint64_t>(*number));
    }
    request_.seeds = std::move(seeds);
    return {};
  }

  Result<void> read_session(const Value& body) {
    if (const Value* value = member(body, "session")) {
      auto name = json::read_string(*value, "session");
      if (!name) return name.error();
      if (name->empty() || name->size() > kMostSessionName)
        return invalid_argument(fmt::format("'session' must have 1 to {} bytes", kMostSessionName), "session");
      request_.session = std::move(*name);
    }
    if (const Value* value = member(body, "session_ttl")) {
      const auto seconds = json::read_integer(*value, "session_ttl", 1, kMostTimeToLive);
      if (!seconds) return seconds.error();
      request_.time_to_live = std::chrono::seconds(*seconds);
    }
    for (const auto& [key, flag] :
         {std::pair{"session_reset", &ActRequest::resets_session}, std::pair{"session_end", &ActRequest::ends_session}}) {
      const Value* value = member(body, key);
      if (value == nullptr) continue;
      const auto wanted = json::read_bool(*value, key);
      if (!wanted) return wanted.error();
      if (*wanted && request_.session.empty()) return invalid_argument(fmt::format("'{}' is about a 'session'", key), key);
      request_.*flag = *wanted;
    }
    if (!request_.session.empty() && request_.seeds && request_.seeds->size() != 1)
      return invalid_argument("a 'session' has one seed", "seed");
    return {};
  }

  const Predictor& predictor_;
  ActRequest request_;
};

Result<std::optional<ActRequest>> finish(Result<ActRequest> request) {
  if (!request) return request.error();
  return std::optional(std::move(*request));
}

}  // namespace

Result<std::optional<ActRequest>> read_act(const ModelDirectory& models, bool may_generate, std::string& body) {
  const bool is_file = predict::is_tensor_file(body);
  predict::TensorFile file;
  Value document;
  if (is_file) {
    auto read = predict::read_tensor_file(body);
    if (!read) return read.error();
    file = std::move(*read);
    document = predict::names_in(file);
  } else {
    auto read = json::parse_object(body);
    if (!read) return read.error();
    document = std::move(*read);
  }
  const Result<NamedModel> named = named_model(document);
  if (!named) return named.error();
  const auto network = asked(models, may_generate, *named, is_file);
  if (!network) return network.error();
  if (!*network) return std::optional<ActRequest>();
  if (const auto is_policy = need_policy(***network); !is_policy) return is_policy.error();
  ActReader reader(***network);
  return finish(is_file ? reader.read(std::move(file)) : reader.read(document));
}

}  // namespace braid::net::rl
