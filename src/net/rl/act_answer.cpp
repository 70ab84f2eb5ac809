#include "net/rl/act_answer.h"

#include "net/json/write.h"
#include "net/predict/tensor_file.h"
#include "net/predict/tensor_json.h"

#include <cstddef>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

namespace braid::net::rl {
namespace {

// The parts of Predictor::act()'s answer.
struct Parts {
  const Tensor& actions;
  const Tensor& log_probabilities;
  const Tensor* values;  // null: the policy has none
  std::span<const Tensor> states;
};

Parts parts_of(const ActRequest& request, const ActAnswer& answer) {
  const PolicyForm& policy = *request.network->predictor->policy();
  return {answer.drawn[0], answer.drawn[1], policy.value ? &answer.drawn[2] : nullptr, answer.drawn.subspan(policy.value ? 3 : 2)};
}

const std::string& name_of_state(const ActRequest& request, std::size_t state) {
  const Predictor& predictor = *request.network->predictor;
  return predictor.inputs()[predictor.policy()->states[state].input].name;
}

// As it was given: JSON has no unsigned numbers of 64 bits that all clients read.
std::vector<std::int64_t> signed_seeds(const ActionDraw& draw) { return {draw.seeds.begin(), draw.seeds.end()}; }

}  // namespace

std::string act_document(const ActRequest& request, const ActAnswer& answer) {
  const Parts parts = parts_of(request, answer);
  std::string out = R"({"object":"rl.action","model":)";
  json::append_lossy_string(out, answer.model);
  out += R"(,"revision":)";
  json::append_lossy_string(out, answer.revision);
  const auto append = [&](std::string_view name, const Tensor* tensor) {
    fmt::format_to(std::back_inserter(out), R"(,"{}":)", name);
    if (tensor == nullptr) {
      out += "null";
    } else {
      request.packed ? predict::append_packed(out, *tensor) : predict::append_lists(out, *tensor);
    }
  };
  append("actions", &parts.actions);
  append("action_log_probs", &parts.log_probabilities);
  append("value_estimates", parts.values);
  out += R"(,"new_hidden_states":)";
  if (parts.states.empty() || !answer.tells_states) {
    out += "null";
  } else {
    out += '{';
    for (std::size_t i = 0; i < parts.states.size(); ++i) {
      if (i > 0) out += ',';
      json::append_lossy_string(out, name_of_state(request, i));
      out += ':';
      request.packed ? predict::append_packed(out, parts.states[i]) : predict::append_lists(out, parts.states[i]);
    }
    out += '}';
  }
  const std::vector<std::int64_t> seeds = signed_seeds(answer.draw);
  if (seeds.size() == 1) {
    fmt::format_to(std::back_inserter(out), R"(,"seed":{})", seeds.front());
  } else {
    fmt::format_to(std::back_inserter(out), R"(,"seed":[{}])", fmt::join(seeds, ","));
  }
  fmt::format_to(std::back_inserter(out), R"(,"step":{}}})", answer.draw.step);
  return out;
}

std::string act_file(const ActRequest& request, const ActAnswer& answer) {
  const Parts parts = parts_of(request, answer);
  const std::vector<std::pair<std::string, std::string>> metadata = {{"model", answer.model},
                                                                     {"revision", answer.revision},
                                                                     {"seed", fmt::format("{}", signed_seeds(answer.draw).front())},
                                                                     {"step", fmt::format("{}", answer.draw.step)}};
  std::vector<predict::NamedTensor> tensors = {{"actions", &parts.actions}, {"action_log_probs", &parts.log_probabilities}};
  if (parts.values != nullptr) tensors.push_back({"value_estimates", parts.values});
  if (answer.tells_states)
    for (std::size_t i = 0; i < parts.states.size(); ++i)
      tensors.push_back({"new_hidden_states." + name_of_state(request, i), &parts.states[i]});
  return predict::write_tensor_file(metadata, tensors);
}

}  // namespace braid::net::rl
