#include "model/networks/policy_config.h"

#include "model/networks/config_fields.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <numeric>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace braid::model {
namespace {

using simdjson::dom::element;

constexpr std::int64_t kMostActions = std::int64_t{1} << 20;
constexpr double kMostMagnitude = 1e6;  // of bounds of actions and of logarithms of deviations

struct NamedKind {
  std::string_view name;
  ActionKind kind;
  std::string_view parameters;  // what the output is called that has them
};
constexpr std::array kKinds{NamedKind{"categorical", ActionKind::kCategorical, "logits"},
                            NamedKind{"multi_discrete", ActionKind::kMultiDiscrete, "logits"},
                            NamedKind{"bernoulli", ActionKind::kBernoulli, "logits"}, NamedKind{"gaussian", ActionKind::kGaussian, "mean"},
                            NamedKind{"tanh_gaussian", ActionKind::kSquashedGaussian, "mean"}};

bool is_gaussian(ActionKind kind) { return kind == ActionKind::kGaussian || kind == ActionKind::kSquashedGaussian; }

class PolicyReader {
 public:
  explicit PolicyReader(const NetworkShape& network) : network_(network) {}

  Result<PolicyForm> read(const element& value) {
    auto fields = ConfigFields::of(value, "policy");
    if (!fields) return fields.error();
    const auto name = fields->text("distribution", "categorical");
    if (!name) return name.error();
    const auto* const kind = std::ranges::find(kKinds, *name, &NamedKind::name);
    if (kind == kKinds.end())
      return bad_config("policy.distribution",
                        fmt::format("'{}' is none of categorical, multi_discrete, bernoulli, gaussian and tanh_gaussian", *name));
    form_.kind = kind->kind;
    const auto parameters = output_named(*fields, kind->parameters);
    if (!parameters) return parameters.error();
    form_.parameters = *parameters;
    if (fields->find("value")) {
      const auto value_output = output_named(*fields, "value");
      if (!value_output) return value_output.error();
      form_.value = *value_output;
    }
    Result<void> own;
    if (form_.kind == ActionKind::kMultiDiscrete) own = read_sizes(*fields);
    if (is_gaussian(form_.kind)) own = read_deviations(*fields);
    if (own && form_.kind == ActionKind::kSquashedGaussian) own = read_bounds(*fields);
    if (own) own = read_states(*fields);
    if (own) own = fields->end();
    if (!own) return own.error();
    return std::move(form_);
  }

 private:
  Result<std::size_t> place_of_output(const element& value, const std::string& path) const {
    std::string_view name;
    if (value.get(name) != simdjson::SUCCESS) return bad_config(path, "expected the name of an output");
    const auto found = std::ranges::find(network_.outputs, name, &NetworkOutput::name);
    if (found == network_.outputs.end()) return bad_config(path, fmt::format("'{}' is no output", name));
    return static_cast<std::size_t>(found - network_.outputs.begin());
  }

  Result<std::size_t> output_named(ConfigFields& fields, std::string_view key) const {
    const auto value = fields.need(key);
    if (!value) return value.error();
    return place_of_output(*value, fields.path_of(key));
  }

  // A number, which stands for all, or a list of them.
  static Result<std::vector<double>> numbers(const element& value, const std::string& path) {
    const auto is_sane = [](double number) { return std::fabs(number) <= kMostMagnitude; };
    double number = 0.0;
    if (value.get(number) == simdjson::SUCCESS && is_sane(number)) return std::vector<double>{number};
    simdjson::dom::array list;
    if (value.get(list) != simdjson::SUCCESS || list.size() == 0) return bad_config(path, "expected a number or a list of numbers");
    std::vector<double> all;
    for (const element& each : list) {
      if (each.get(number) != simdjson::SUCCESS || !is_sane(number))
        return bad_config(fmt::format("{}[{}]", path, all.size()), fmt::format("expected a number from -{0} to {0}", kMostMagnitude));
      all.push_back(number);
    }
    return all;
  }

  Result<void> read_sizes(ConfigFields& fields) {
    const auto given = fields.need("sizes");
    if (!given) return given.error();
    simdjson::dom::array sizes;
    if (given->get(sizes) != simdjson::SUCCESS || sizes.size() == 0) return bad_config("policy.sizes", "expected a list of sizes");
    for (const element& each : sizes) {
      std::int64_t size = 0;
      if (each.get(size) != simdjson::SUCCESS || size < 1 || size > kMostActions)
        return bad_config(fmt::format("policy.sizes[{}]", form_.sizes.size()), "expected a size of at least 1");
      form_.sizes.push_back(size);
    }
    return {};
  }

  // "log_std": the name of an output, or numbers; "log_std_range": its bounds.
  Result<void> read_deviations(ConfigFields& fields) {
    const auto given = fields.need("log_std");
    if (!given) return given.error();
    if (given->is_string()) {
      const auto place = place_of_output(*given, "policy.log_std");
      if (!place) return place.error();
      form_.deviations = *place;
    } else {
      auto all = numbers(*given, "policy.log_std");
      if (!all) return all.error();
      form_.fixed_deviations = std::move(*all);
    }
    const auto range = fields.find("log_std_range");
    if (!range) return {};
    const auto bounds = numbers(*range, "policy.log_std_range");
    if (!bounds) return bounds.error();
    if (bounds->size() != 2 || !(bounds->front() <= bounds->back())) return bad_config("policy.log_std_range", "expected [least, most]");
    form_.least_deviation = bounds->front();
    form_.most_deviation = bounds->back();
    return {};
  }

  Result<void> read_bounds(ConfigFields& fields) {
    for (const auto& [key, field, otherwise] : {std::tuple{"low", &PolicyForm::low, -1.0}, std::tuple{"high", &PolicyForm::high, 1.0}}) {
      form_.*field = {otherwise};
      const auto given = fields.find(key);
      if (!given) continue;
      auto all = numbers(*given, fields.path_of(key));
      if (!all) return all.error();
      form_.*field = std::move(*all);
    }
    return {};
  }

  // {"NAME OF AN INPUT": "name of an output", …}
  Result<void> read_states(ConfigFields& fields) {
    const auto given = fields.find("states");
    if (!given) return {};
    const auto states = ConfigFields::of(*given, "policy.states");
    if (!states) return states.error();
    for (const auto& [key, value] : states->all()) {
      const std::string path = states->path_of(key);
      const auto input = std::ranges::find(network_.inputs, key, &TensorSignature::name);
      if (input == network_.inputs.end()) return bad_config(path, "there is no such input");
      if (!input->optional) return bad_config(path, "the input of a state is optional: without it an episode begins");
      const auto output = place_of_output(value, path);
      if (!output) return output.error();
      form_.states.push_back({static_cast<std::size_t>(input - network_.inputs.begin()), *output});
    }
    if (form_.states.size() == network_.inputs.size()) return bad_config("policy.states", "no input is left for observations");
    return {};
  }

  const NetworkShape& network_;
  PolicyForm form_;
};

// As often as there are actions, or once for all.
bool fits(const std::vector<double>& numbers, std::int64_t actions) {
  return numbers.size() == 1 || static_cast<std::int64_t>(numbers.size()) == actions;
}

Result<void> check_gaussian(const PolicyForm& form, const ValueShape& mean, const ValueShape* deviations, std::int64_t actions) {
  if (deviations != nullptr && (deviations->shape != mean.shape || deviations->type != ElementType::kFloat32))
    return bad_config("policy.log_std", "its shape is not that of the mean");
  if (deviations == nullptr && !fits(form.fixed_deviations, actions))
    return bad_config("policy.log_std", fmt::format("there are {} numbers for {} actions", form.fixed_deviations.size(), actions));
  if (form.kind != ActionKind::kSquashedGaussian) return {};
  for (const auto& [name, bounds] : {std::pair{"low", &form.low}, std::pair{"high", &form.high}})
    if (!fits(*bounds, actions))
      return bad_config(fmt::format("policy.{}", name), fmt::format("there are {} numbers for {} actions", bounds->size(), actions));
  for (std::size_t i = 0; i < static_cast<std::size_t>(actions); ++i)
    if (!(form.low[form.low.size() == 1 ? 0 : i] < form.high[form.high.size() == 1 ? 0 : i]))
      return bad_config("policy.high", "expected more than policy.low");
  return {};
}

}  // namespace

Result<PolicyForm> read_policy(const element& value, const NetworkShape& network) { return PolicyReader(network).read(value); }

Result<void> check_policy(const NetworkShape& network, const std::vector<ValueShape>& values) {
  if (!network.policy) return {};
  const PolicyForm& form = *network.policy;
  const auto output = [&](std::size_t place) -> const ValueShape& {
    return values[static_cast<std::size_t>(network.outputs[place].value)];
  };
  const ValueShape& parameters = output(form.parameters);
  const std::string path = is_gaussian(form.kind) ? "policy.mean" : "policy.logits";
  if (parameters.type != ElementType::kFloat32 || parameters.shape.size() < 2 || parameters.shape.back().size < 0)
    return bad_config(path, "expected float32 of two dimensions or more, the last one being of a fixed size");
  const std::int64_t width = parameters.shape.back().size;
  if (width > kMostActions) return bad_config(path, fmt::format("{} actions are too many", width));
  if (form.kind == ActionKind::kMultiDiscrete) {
    const std::int64_t sum = std::accumulate(form.sizes.begin(), form.sizes.end(), std::int64_t{0});
    if (sum != width) return bad_config("policy.sizes", fmt::format("their sum is {}, and there are {} logits", sum, width));
  }
  if (form.value) {
    SymbolicShape rows = output(*form.value).shape;
    if (rows.size() == parameters.shape.size() && rows.back() == Extent{1, {}}) rows.pop_back();
    if (output(*form.value).type != ElementType::kFloat32 ||
        !std::equal(rows.begin(), rows.end(), parameters.shape.begin(), parameters.shape.end() - 1))
      return bad_config("policy.value", "expected one number for each row of actions");
  }
  for (const PolicyState& state : form.states) {
    const TensorSignature& input = network.inputs[state.input];
    if (output(state.output).type != input.type || output(state.output).shape.size() != input.shape.size())
      return bad_config("policy.states." + input.name, "the output's type and number of dimensions are not those of the input");
  }
  if (!is_gaussian(form.kind)) return {};
  return check_gaussian(form, parameters, form.deviations ? &output(*form.deviations) : nullptr, width);
}

}  // namespace braid::model
