// Small networks against torch's answers (reference/make_networks.py), and what their files may get wrong.
#include "kernels/select.h"
#include "kernels/thread_team.h"
#include "model/networks/activations.h"
#include "model/networks/batching.h"
#include "model/networks/network.h"
#include "model/reference_networks.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <random>
#include <string>

namespace braid::model {
namespace {

using test::networks::Case;
using test::networks::Files;

Result<std::map<std::string, Tensor>> run(const Network& network, const std::map<std::string, Tensor>& given, kernels::ThreadTeam& team) {
  std::vector<std::optional<Tensor>> inputs;
  for (const TensorSignature& input : network.shape().inputs) {
    const auto found = given.find(input.name);
    inputs.push_back(found == given.end() ? std::nullopt : std::optional(found->second));
  }
  auto complete = network.complete(std::move(inputs));
  if (!complete) return complete.error();
  std::vector<std::size_t> wanted(network.shape().outputs.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] = i;
  NetworkRun run(network, std::move(*complete), wanted, team);
  while (!run.done()) {
    if (const auto advanced = run.advance(); !advanced) return advanced.error();
  }
  std::vector<Tensor> outputs = run.take_outputs();
  std::map<std::string, Tensor> named;
  for (std::size_t i = 0; i < wanted.size(); ++i) named.emplace(network.shape().outputs[i].name, std::move(outputs[i]));
  return named;
}

// 1e-4 of the largest value.
void expect_close(const Tensor& got, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(got.shape, expected.shape) << what;
  float largest = 1e-3F;
  for (const float value : expected.floats) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < expected.floats.size(); ++i)
    ASSERT_NEAR(got.floats[i], expected.floats[i], 1e-4F * largest) << what << " " << i;
}

class Networks : public testing::TestWithParam<const char*> {
 protected:
  kernels::ThreadTeam team_{2};
};

INSTANTIATE_TEST_SUITE_P(References, Networks, testing::Values("mlp", "gru", "lstm", "convolutions", "tokens", "tokens_bf16", "tokens_f16"),
                         [](const auto& network) { return std::string(network.param); });

TEST_P(Networks, GiveWhatTorchGives) {
  const Files files(GetParam());
  const Network network = files.load(kernels::best_kernel_table()).value();
  for (const Case& each : files.cases) {
    const auto outputs = run(network, each.inputs, team_).value();
    ASSERT_EQ(outputs.size(), each.outputs.size());
    for (const auto& [name, expected] : each.outputs) expect_close(outputs.at(name), expected, name);
  }
}

// Row `b` of a tensor along the dimension that the network calls "batch".
Tensor row_of(const Tensor& tensor, std::size_t axis, std::int64_t b) {
  Tensor row = tensor;
  row.shape[axis] = 1;
  const auto at = static_cast<std::ptrdiff_t>(axis);
  const std::int64_t outer = value_count({tensor.shape.begin(), tensor.shape.begin() + at});
  const std::int64_t inner = value_count({tensor.shape.begin() + at + 1, tensor.shape.end()});
  row.floats.clear();
  row.integers.clear();
  for (std::int64_t o = 0; o < outer; ++o) {
    const std::int64_t from = (o * tensor.shape[axis] + b) * inner;
    if (!tensor.floats.empty()) row.floats.insert(row.floats.end(), tensor.floats.begin() + from, tensor.floats.begin() + from + inner);
    if (!tensor.integers.empty())
      row.integers.insert(row.integers.end(), tensor.integers.begin() + from, tensor.integers.begin() + from + inner);
  }
  return row;
}

TEST_P(Networks, GiveARowTheSameBitsAloneAndAmongOthers) {
  const Files files(GetParam());
  const Network network = files.load(kernels::best_kernel_table()).value();
  for (const Case& each : files.cases) {
    const auto together = run(network, each.inputs, team_).value();
    const auto axis_of = [](const std::string& name) { return name.starts_with("h") || name.starts_with("c") ? name.size() < 3U : 0U; };
    const std::int64_t batch = each.inputs.begin()->second.shape[axis_of(each.inputs.begin()->first) ? 1 : 0];
    for (std::int64_t b = 0; b < batch; ++b) {
      std::map<std::string, Tensor> inputs;
      for (const auto& [name, tensor] : each.inputs) inputs.emplace(name, row_of(tensor, axis_of(name) ? 1 : 0, b));
      for (const auto& [name, tensor] : run(network, inputs, team_).value()) {
        const bool state = name == "hn" || name == "cn";
        EXPECT_EQ(tensor.floats, row_of(together.at(name), state ? 1 : 0, b).floats) << name << " row " << b;
      }
    }
  }
}

TEST_P(Networks, GiveTheSameBitsOnEveryTierAndForAnyTeam) {
  const Files files(GetParam());
  const auto with = [&](const kernels::KernelTable& table, int threads) {
    kernels::ThreadTeam team(threads);
    const Network network = files.load(table).value();
    std::vector<std::map<std::string, Tensor>> all;
    for (const Case& each : files.cases) all.push_back(run(network, each.inputs, team).value());
    return all;
  };
  std::string missing;
  const auto scalar = with(*kernels::kernel_table(kernels::Isa::kScalar, missing), 1);
  for (const kernels::Isa isa : {kernels::Isa::kNeon, kernels::Isa::kAvx2, kernels::Isa::kAvx512, kernels::Isa::kAmx}) {
    const kernels::KernelTable* table = kernels::kernel_table(isa, missing);
    if (table == nullptr) continue;
    const auto same = with(*table, 3);
    for (std::size_t i = 0; i < scalar.size(); ++i) {
      for (const auto& [name, tensor] : scalar[i]) EXPECT_EQ(same[i].at(name).floats, tensor.floats) << table->name << " " << name;
    }
  }
}

// Evaluates the inputs of some requests as one; the outputs of each.
std::vector<std::vector<Tensor>> run_joined(const Network& network, const std::vector<std::vector<Tensor>>& requests,
                                            kernels::ThreadTeam& team) {
  const std::vector<std::size_t>& axes = network.batch_axes();
  std::vector<Tensor> joined;
  std::vector<std::int64_t> sizes;
  for (const auto& request : requests) sizes.push_back(request.front().shape[axes.front()]);
  for (std::size_t i = 0; i < requests.front().size(); ++i) {
    std::vector<const Tensor*> parts;
    for (const auto& request : requests) parts.push_back(&request[i]);
    joined.push_back(join(parts, axes[i]));
  }
  std::vector<std::size_t> wanted(network.shape().outputs.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] = i;
  NetworkRun run(network, std::move(joined), wanted, team);
  while (!run.done()) EXPECT_TRUE(run.advance());
  const std::vector<Tensor> outputs = run.take_outputs();
  std::vector<std::vector<Tensor>> each(requests.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::size_t axis = axes[static_cast<std::size_t>(network.shape().outputs[i].value)];
    const std::vector<Tensor> parts = split(outputs[i], axis, sizes);
    for (std::size_t request = 0; request < each.size(); ++request) each[request].push_back(parts[request]);
  }
  return each;
}

TEST_P(Networks, GiveRequestsThatAreJoinedTheirOwnBits) {
  const Files files(GetParam());
  const Network network = files.load(kernels::best_kernel_table()).value();
  ASSERT_FALSE(network.batch_axes().empty());
  std::size_t joined = 0;
  for (const Case& one : files.cases) {
    const auto complete = [&](const Case& each) {
      std::vector<std::optional<Tensor>> inputs;
      for (const TensorSignature& input : network.shape().inputs) {
        const auto found = each.inputs.find(input.name);
        inputs.push_back(found == each.inputs.end() ? std::nullopt : std::optional(found->second));
      }
      return network.complete(std::move(inputs)).value();
    };
    std::vector<std::vector<Tensor>> requests = {complete(one)};
    std::vector<const Case*> cases = {&one};
    for (const Case& other : files.cases) {
      requests.push_back(complete(other));
      cases.push_back(&other);
      if (may_join(requests.front(), requests.back(), network.batch_axes())) continue;
      requests.pop_back();
      cases.pop_back();
    }
    joined = std::max(joined, requests.size());
    const std::vector<std::vector<Tensor>> outputs = run_joined(network, requests, team_);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const auto alone = run(network, cases[i]->inputs, team_).value();
      for (std::size_t o = 0; o < outputs[i].size(); ++o) {
        const Tensor& own = alone.at(network.shape().outputs[o].name);
        EXPECT_EQ(outputs[i][o].shape, own.shape);
        EXPECT_EQ(outputs[i][o].floats, own.floats);
      }
    }
  }
  EXPECT_GT(joined, 1U);
}

std::string softmax_config(const std::string& inputs, const std::string& layer) {
  return R"({"model_type": "braid-net", "inputs": {)" + inputs + R"(}, "layers": [)" + layer + R"(], "outputs": {"y": "y"}})";
}

// Those whose rows see each other, and inputs that are all requests' own.
TEST(NetworkBatching, IsLeftWhereRowsSeeEachOther) {
  const std::string rows = R"("x": {"shape": ["batch", 3]})";
  const std::pair<std::string, bool> configs[] = {
      {softmax_config(rows, R"({"name": "y", "type": "softmax"})"), true},
      {softmax_config(rows, R"({"name": "y", "type": "softmax", "axis": 0})"), false},
      {softmax_config(rows, R"({"name": "y", "type": "concat", "input": ["x", "x"]})"), true},
      {softmax_config(rows, R"({"name": "y", "type": "concat", "input": ["x", "x"], "axis": 0})"), false},
      {softmax_config(rows, R"({"name": "y", "type": "last"})"), false},
      {softmax_config(R"("x": {"shape": ["batch", "time", 3]})", R"({"name": "y", "type": "last"})"), true},
      {softmax_config(R"("x": {"shape": ["n", "n", 3]})", R"({"name": "y", "type": "relu"})"), false},
      {softmax_config(rows + R"(, "z": {"shape": [2, 3]})", R"({"name": "y", "type": "relu", "input": "x"})"), false},
      {softmax_config(R"("x": {"shape": [2, 3]})", R"({"name": "y", "type": "relu"})"), false},
  };
  for (const auto& [config, joins] : configs) {
    const auto network = Network::load(config, files::SafeTensors{}, kernels::best_kernel_table());
    ASSERT_TRUE(network) << config << ": " << network.error().message;
    EXPECT_EQ(!network->batch_axes().empty(), joins) << config;
  }
}

// `--dtype int8`: a scale for 32 weights, and 8 bits of each row besides. The numbers stay near, and the same in any batch.
TEST(NetworkFiles, MatricesMayBeRoundedTo8Bits) {
  constexpr std::int64_t kWidth = 64;
  std::mt19937 random(11);
  std::normal_distribution<float> normal(0.0F, 0.15F);
  std::vector<float> weights(kWidth * kWidth);
  for (float& weight : weights) weight = normal(random);
  files::SafeTensors file;
  files::SafeTensor& tensor = file.tensors["y.weight"];
  tensor.dtype = "F32";
  tensor.shape = {kWidth, kWidth};
  tensor.bytes = std::as_bytes(std::span(weights));
  const std::string config = softmax_config(R"("x": {"shape": ["batch", 64]})", R"({"name": "y", "type": "linear", "weights": "y."})");
  const Network exact = Network::load(config, file, kernels::best_kernel_table()).value();
  const Network rounded = Network::load(config, file, kernels::best_kernel_table(), kernels::WeightType::kQ8_0).value();
  kernels::ThreadTeam team(2);
  Tensor x = Tensor::zeros(ElementType::kFloat32, {9, kWidth});
  for (float& value : x.floats) value = normal(random);
  const Tensor one = run(exact, {{"x", x}}, team).value().at("y");
  const Tensor other = run(rounded, {{"x", x}}, team).value().at("y");
  double error = 0.0;
  double size = 0.0;
  for (std::size_t i = 0; i < one.floats.size(); ++i) {
    error += std::pow(static_cast<double>(one.floats[i]) - static_cast<double>(other.floats[i]), 2);
    size += std::pow(static_cast<double>(one.floats[i]), 2);
  }
  EXPECT_GT(error, 0.0);
  EXPECT_LT(std::sqrt(error / size), 0.01);
  for (std::int64_t row = 0; row < 9; ++row)
    EXPECT_EQ(run(rounded, {{"x", row_of(x, 0, row)}}, team).value().at("y").floats, row_of(other, 0, row).floats);
}

struct Fault {
  const char* network;
  const char* replaced;
  const char* by;
  const char* sentence;  // a part of it
};

// As learners have the deviations of a Gaussian: a vector that no observation changes, or a matrix of one row.
TEST(NetworkFiles, AParameterIsTheSameForEachRow) {
  const std::string config =
      R"({"model_type": "braid-net", "inputs": {"x": {"shape": ["batch", 2]}}, "layers": [{"name": "mean", "type": "linear"},)"
      R"({"name": "spread", "type": "parameter", "weights": "actor.log_std"}], "outputs": {"mean": "mean", "log_std": "spread"},)"
      R"("policy": {"distribution": "gaussian", "mean": "mean", "log_std": "log_std"}})";
  const std::vector<float> weight{1, 0, 0, 1, 1, 1};
  const std::vector<float> spread{-1.5F, 0.0F, 0.25F};
  kernels::ThreadTeam team(1);
  for (const TensorShape& shape : {TensorShape{3}, TensorShape{1, 3}}) {
    const files::SafeTensors file{{},
                                  {{"mean.weight", {"F32", {3, 2}, std::as_bytes(std::span(weight))}},
                                   {"actor.log_std", {"F32", shape, std::as_bytes(std::span(spread))}}}};
    const Network network = Network::load(config, file, kernels::best_kernel_table()).value();
    Tensor x = Tensor::zeros(ElementType::kFloat32, {2, 2});
    x.floats = {1, 2, 3, 4};
    const auto outputs = run(network, {{"x", x}}, team).value();
    EXPECT_EQ(outputs.at("mean").floats, (std::vector<float>{1, 2, 3, 3, 4, 7}));
    EXPECT_EQ(outputs.at("log_std").shape, (TensorShape{2, 3}));
    EXPECT_EQ(outputs.at("log_std").floats, (std::vector<float>{-1.5F, 0.0F, 0.25F, -1.5F, 0.0F, 0.25F}));
  }
  const auto fault = [&](files::SafeTensor tensor) {
    const files::SafeTensors file{
        {}, {{"mean.weight", {"F32", {3, 2}, std::as_bytes(std::span(weight))}}, {"actor.log_std", std::move(tensor)}}};
    const auto network = Network::load(config, file, kernels::best_kernel_table());
    EXPECT_FALSE(network);
    return network ? std::string() : network.error().message;
  };
  EXPECT_NE(fault({"F32", {3, 1}, std::as_bytes(std::span(spread))}).find("'actor.log_std' of layers[1] (spread) has 3 rows"),
            std::string::npos);
  EXPECT_NE(fault({"F32", {2}, std::as_bytes(std::span(spread).first(2))}).find("policy.log_std"), std::string::npos);
  const std::vector<float> none{0.0F, std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()};
  EXPECT_NE(
      fault({"F32", {3}, std::as_bytes(std::span(none))}).find("'actor.log_std' of layers[1] (spread) holds a value that is no number"),
      std::string::npos);
}

// Each of the two that are there.
TEST(NetworkFiles, ALayerNormHasItsWeightItsBiasOrNeither) {
  const std::string config = softmax_config(R"("x": {"shape": ["batch", 2]})", R"({"name": "y", "type": "layer_norm", "epsilon": 0})");
  const std::vector<float> weight{2, 4};
  const std::vector<float> bias{10, 20};
  const files::SafeTensor scale{"F32", {2}, std::as_bytes(std::span(weight))};
  const files::SafeTensor shift{"F32", {2}, std::as_bytes(std::span(bias))};
  kernels::ThreadTeam team(1);
  Tensor x = Tensor::zeros(ElementType::kFloat32, {1, 2});
  x.floats = {3, 1};  // 1 and -1
  const auto of = [&](std::map<std::string, files::SafeTensor> tensors) {
    const Network network = Network::load(config, {{}, {tensors.begin(), tensors.end()}}, kernels::best_kernel_table()).value();
    return run(network, {{"x", x}}, team).value().at("y").floats;
  };
  EXPECT_EQ(of({}), (std::vector<float>{1, -1}));
  EXPECT_EQ(of({{"y.weight", scale}}), (std::vector<float>{2, -4}));
  EXPECT_EQ(of({{"y.bias", shift}}), (std::vector<float>{11, 19}));
  EXPECT_EQ(of({{"y.weight", scale}, {"y.bias", shift}}), (std::vector<float>{12, 16}));
  const auto batch_norm = Network::load(config, {{}, {{"y.weight", scale}, {"y.running_mean", shift}}}, kernels::best_kernel_table());
  ASSERT_FALSE(batch_norm);
  EXPECT_NE(batch_norm.error().message.find("'y.running_mean' of layers[0] (y) is a batch norm's"), std::string::npos);
}

TEST(NetworkFiles, WhatTheyGetWrongIsNamedWithItsPath) {
  const Fault faults[] = {
      {"mlp", "braid-net", "other-net", "model_type: 'other-net' is no network"},
      {"mlp", "\"inputs\"", "\"imports\"", "inputs: missing"},
      {"mlp", "\"batch\",\n    7", "\"batch\",\n    8", "layers[0].input (hidden): has the shape [batch, 8]; its weight takes 7 values"},
      {"mlp", "\"batch\",\n    7", "0,\n    7", "inputs.x.shape[0]: expected a size of at least 1"},
      {"mlp", "float32", "float64", "inputs.x.dtype: 'float64' is not served"},
      {"mlp", "\"tanh\"", "\"tan\"", "layers[1].type: 'tan' is no layer; there are linear"},
      {"mlp", "\"input\": \"h\"", "\"input\": \"later\"", "layers[2].input: 'later' is no input and no earlier layer"},
      {"mlp", "\"policy.\"", "\"police.\"", "'police.weight' of layers[2] (logits) is missing"},
      {"mlp", "\"weights\": \"hidden.\"", "\"weight\": \"hidden.\"", "layers[0].weight: is not known here"},
      {"mlp", "\"value\": \"value\"", "\"value\": \"worth\"", "outputs.value: 'worth' is no input and no earlier layer"},
      {"mlp", "\"name\": \"r\"", "\"name\": \"h\"", "layers[5].name: there are two values named 'h'"},
      {"gru", "\"layers\": 2", "\"layers\": 3", "weight_ih_l2"},
      {"gru", "\"layers\": 2", "\"layers\": 1", "'rnn.weight_ih_l1' of layers[0] (gru) is one more than its 1 layers"},
      {"gru", "\"batch\",\n    12", "\"batch\",\n    13",
       "layers[0].state (gru): is float32 [2, batch, 13]; expected float32 [2, batch, 12]"},
      {"gru", "gru.state", "gru.stat", "outputs.hn: 'gru.stat'"},
      {"lstm", "\"bidirectional\": true", "\"bidirectional\": false", "\"bidirectional\" is not true"},
      {"lstm", "\"h\": \"h\"", "\"g\": \"h\"", "layers[0].state.h: missing"},
      {"convolutions", "\"groups\": 2", "\"groups\": 3", "8 outputs, which 3 groups do not divide"},
      {"convolutions", "6,\n    \"time\"", "5,\n    \"time\"", "expected [batch, 6, time]"},
      {"convolutions", "\"axis\": 1", "\"axis\": 3", "layers[8].axis (channels): 3 is none of 3 dimensions"},
      {"convolutions", "\"approximate\": \"tanh\"", "\"approximate\": \"erf\"", "expected \"none\" or \"tanh\""},
      {"tokens", "int64", "float32", "layers[0].input (embedding): is float32; expected int64"},
      {"tokens", "\"model_type\"", "model_type", "no JSON"},
  };
  for (const Fault& fault : faults) {
    Files files(fault.network);
    const std::size_t at = files.config.find(fault.replaced);
    ASSERT_NE(at, std::string::npos) << fault.network << " " << fault.replaced;
    files.config.replace(at, std::string_view(fault.replaced).size(), fault.by);
    const auto loaded = files.load(kernels::best_kernel_table());
    ASSERT_FALSE(loaded) << fault.by;
    EXPECT_NE(loaded.error().message.find(fault.sentence), std::string::npos) << loaded.error().message;
  }
}

TEST(NetworkInputs, WhatDoesNotFitIsNamedWithItsPath) {
  kernels::ThreadTeam team(1);
  const Network gru = Files("gru").load(kernels::best_kernel_table()).value();
  const auto floats = [](TensorShape shape) { return Tensor::zeros(ElementType::kFloat32, std::move(shape)); };
  const auto error = [&](const Network& network, const std::map<std::string, Tensor>& inputs) {
    const auto result = run(network, inputs, team);
    return result ? Error{ErrorCode::kInternal, "none", ""} : result.error();
  };
  const Error missing = error(gru, {{"h0", floats({2, 1, 12})}});
  EXPECT_EQ(missing.code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(missing.param, "inputs.x");
  EXPECT_EQ(error(gru, {{"x", floats({1, 2, 6})}}).message, "the input 'x' has the shape [1, 2, 6]; expected [batch=1, time=2, 5]");
  EXPECT_EQ(error(gru, {{"x", floats({1, 5})}}).param, "inputs.x");
  EXPECT_EQ(error(gru, {{"x", floats({0, 2, 5})}}).param, "inputs.x");
  const Error two = error(gru, {{"x", floats({3, 2, 5})}, {"h0", floats({2, 1, 12})}});
  EXPECT_EQ(two.param, "inputs.h0");
  EXPECT_EQ(two.message, "the input 'h0' has the shape [2, 1, 12]; expected [2, batch=3, 12]");
  const Network tokens = Files("tokens").load(kernels::best_kernel_table()).value();
  EXPECT_EQ(error(tokens, {{"ids", floats({1, 2})}}).message, "the input 'ids' is float32; expected int64");
  Tensor beyond = Tensor::zeros(ElementType::kInt64, {1, 2});
  beyond.integers[1] = 11;
  EXPECT_NE(error(tokens, {{"ids", beyond}}).message.find("11 is no index of its table of 11 entries"), std::string::npos);
  const Network convolutions = Files("convolutions").load(kernels::best_kernel_table()).value();
  EXPECT_EQ(error(convolutions, {{"x", floats({1, 6, 0})}}).param, "inputs.x");
  EXPECT_EQ(error(convolutions, {{"x", floats({1, 6, 1})}}).message, "none");
}

// A small body may ask for many rows of a wide layer, or leave a large input out.
TEST(NetworkInputs, WhatWouldBecomeTooLargeIsRefused) {
  constexpr std::int64_t kOutputs = 65'536;
  const std::vector<float> weights(kOutputs, 1.0F);
  files::SafeTensors file;
  file.tensors["y.weight"] = {"F32", {kOutputs, 1}, std::as_bytes(std::span(weights))};
  kernels::ThreadTeam team(1);
  const Network wide =
      Network::load(softmax_config(R"("x": {"shape": ["batch", 1]})", R"({"name": "y", "type": "linear", "weights": "y."})"), file,
                    kernels::best_kernel_table())
          .value();
  EXPECT_TRUE(run(wide, {{"x", Tensor::zeros(ElementType::kFloat32, {2, 1})}}, team));
  EXPECT_EQ(run(wide, {{"x", Tensor::zeros(ElementType::kFloat32, {600, 1})}}, team).error().param, "outputs") << "no answer has so many";
  const auto refused = run(wide, {{"x", Tensor::zeros(ElementType::kFloat32, {5000, 1})}}, team);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(refused.error().message.find("the layer 'y' would have more than"), std::string::npos) << refused.error().message;
  const std::string config =
      softmax_config(R"("x": {"shape": ["batch"]}, "z": {"shape": [2147483648, 2147483648, "batch"], "optional": true})",
                     R"({"name": "y", "type": "relu", "input": "x"})");
  const Network large = Network::load(config, {}, kernels::best_kernel_table()).value();
  EXPECT_NE(run(large, {{"x", Tensor::zeros(ElementType::kFloat32, {3})}}, team).error().message.find("the input 'z' would have"),
            std::string::npos);
}

Tensor noise(TensorShape shape) {
  std::mt19937 random(static_cast<std::uint32_t>(value_count(shape)));
  std::normal_distribution<float> normal;
  Tensor tensor = Tensor::zeros(ElementType::kFloat32, std::move(shape));
  for (float& value : tensor.floats) value = normal(random);
  return tensor;
}

// Many zeros of an input that is left out are not made where the request is read.
TEST(NetworkRun, FillsLargeInputsThatAreLeftOut) {
  kernels::ThreadTeam team(1);
  const Network network = Files("gru").load(kernels::best_kernel_table()).value();
  constexpr std::int64_t kRows = 60'000;
  const std::vector<Tensor> complete = network.complete({noise({kRows, 1, 5}), std::nullopt}).value();
  EXPECT_EQ(complete[1].shape, (TensorShape{2, kRows, 12}));
  EXPECT_TRUE(complete[1].floats.empty());
  const Tensor zeros = Tensor::zeros(ElementType::kFloat32, complete[1].shape);
  const auto left_out = run(network, {{"x", complete[0]}}, team).value();
  const auto given = run(network, {{"x", complete[0]}, {"h0", zeros}}, team).value();
  EXPECT_TRUE(left_out.at("hn").floats == given.at("hn").floats);
  const Network echo =
      Network::load(R"({"model_type": "braid-net", "inputs": {"x": {"shape": ["n"]}, "z": {"shape": ["n", 200], "optional": true}},
      "layers": [{"name": "y", "type": "relu", "input": "x"}], "outputs": {"z": "z"}})",
                    {}, kernels::best_kernel_table())
          .value();
  EXPECT_EQ(run(echo, {{"x", noise({1'000})}}, team).value().at("z").floats, std::vector<float>(200'000));
}

TEST(NetworkRun, LeavesOutWhatNoWantedOutputNeeds) {
  kernels::ThreadTeam team(1);
  const Files files("mlp");
  const Network network = files.load(kernels::best_kernel_table()).value();
  const auto inputs = [&] { return network.complete({files.cases[1].inputs.at("x")}).value(); };
  const auto steps = [&](std::size_t output) {
    NetworkRun run(network, inputs(), {output}, team);
    int count = 0;
    for (; !run.done(); ++count) EXPECT_TRUE(run.advance());
    expect_close(run.take_outputs().at(0), files.cases[1].outputs.at(network.shape().outputs[output].name), "alone");
    return count;
  };
  EXPECT_EQ(steps(0), 3);  // logits: hidden, tanh, logits
  EXPECT_EQ(steps(3), 4);  // value: hidden, tanh, relu, value
}

// Of a run to its end: how many pieces it had, and how many numbers it kept between two of them at most, and behind the last.
struct PieceCount {
  int count = 0;
  std::size_t most_kept = 0;
  std::size_t kept = 0;
};

PieceCount count_pieces(const Network& network, Tensor x, kernels::ThreadTeam& team) {
  std::vector<std::optional<Tensor>> inputs(network.shape().inputs.size());
  inputs.front() = std::move(x);
  std::vector<std::size_t> wanted(network.shape().outputs.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] = i;
  NetworkRun run(network, network.complete(std::move(inputs)).value(), wanted, team);
  PieceCount pieces;
  for (; !run.done(); ++pieces.count) {
    EXPECT_TRUE(run.advance());
    pieces.most_kept = std::max(pieces.most_kept, run.kept_values());
  }
  pieces.kept = run.kept_values();
  return pieces;
}

// Where a layer is cut depends on how many rows there are: a row alone is cut elsewhere.
TEST(NetworkRun, CutsLongLayersWithoutChangingBits) {
  kernels::ThreadTeam team(2);
  const std::pair<const char*, TensorShape> longs[] = {
      {"mlp", {100'000, 7}}, {"gru", {3, 20'000, 5}}, {"lstm", {3, 8'000, 5}}, {"convolutions", {3, 6, 60'000}}};
  for (const auto& [name, shape] : longs) {
    const Network network = Files(name).load(kernels::best_kernel_table()).value();
    const Tensor x = noise(shape);
    EXPECT_GT(count_pieces(network, x, team).count, 20) << name;
    const auto all = run(network, {{"x", x}}, team).value();
    for (const std::int64_t row : {std::int64_t{1}, shape.front() - 1}) {
      for (const auto& [output, alone] : run(network, {{"x", row_of(x, 0, row)}}, team).value()) {
        const bool is_state = output == "hn" || output == "cn";
        EXPECT_TRUE(alone.floats == row_of(all.at(output), is_state ? 1 : 0, row).floats) << name << " " << output << " row " << row;
      }
    }
  }
}

TEST(NetworkRun, GoesOnFromAStateAsIfItHadNotBeenCut) {
  kernels::ThreadTeam team(1);
  const Network network = Files("gru").load(kernels::best_kernel_table()).value();
  constexpr std::int64_t kSteps = 5'000;
  constexpr std::int64_t kFirst = 1'234;
  const Tensor x = noise({1, kSteps, 5});
  const auto steps = [&x](std::int64_t begin, std::int64_t end) {
    Tensor part{.type = ElementType::kFloat32, .shape = {1, end - begin, 5}, .floats = {}, .integers = {}};
    part.floats.assign(x.floats.begin() + begin * 5, x.floats.begin() + end * 5);
    return part;
  };
  const auto whole = run(network, {{"x", x}}, team).value();
  const auto first = run(network, {{"x", steps(0, kFirst)}}, team).value();
  const auto second = run(network, {{"x", steps(kFirst, kSteps)}, {"h0", first.at("hn")}}, team).value();
  EXPECT_EQ(second.at("hn").floats, whole.at("hn").floats);
  std::vector<float> logits = first.at("logits").floats;
  logits.insert(logits.end(), second.at("logits").floats.begin(), second.at("logits").floats.end());
  EXPECT_TRUE(logits == whole.at("logits").floats);
}

TEST(NetworkRun, CutsALineOfASoftmax) {
  kernels::ThreadTeam team(1);
  constexpr std::int64_t kRows = 200'000;
  Tensor x = noise({kRows, 3});
  x.floats[7] = std::numeric_limits<float>::quiet_NaN();  // of the second line
  for (const char* type : {"softmax", "log_softmax"}) {
    const std::string layer = std::string(R"({"name": "y", "axis": 0, "type": ")") + type + R"("})";
    const Network network =
        Network::load(softmax_config(R"("x": {"shape": ["batch", 3]})", layer), {}, kernels::best_kernel_table()).value();
    EXPECT_GT(count_pieces(network, x, team).count, 20);
    std::vector<float> expected = x.floats;
    for (int line = 0; line < 3; ++line) (type[0] == 's' ? softmax : log_softmax)(expected.data() + line, kRows, 3);
    const std::vector<float> got = run(network, {{"x", x}}, team).value().at("y").floats;
    EXPECT_EQ(std::memcmp(got.data(), expected.data(), expected.size() * sizeof(float)), 0) << type;
    EXPECT_TRUE(std::isnan(got[1]) && std::isnan(got[3 * kRows - 2]));
  }
}

// Of the widths 7, 20, 20, 4, 4, 4, 20, 1 what a layer to come reads, and what is wanted.
TEST(NetworkRun, KeepsOnlyWhatIsReadLater) {
  kernels::ThreadTeam team(1);
  const Network network = Files("mlp").load(kernels::best_kernel_table()).value();
  const PieceCount pieces = count_pieces(network, noise({1'000, 7}), team);
  EXPECT_EQ(pieces.most_kept, 32'000U);
  EXPECT_EQ(pieces.kept, 13'000U);
}

TEST(NetworkFiles, CutOrSpoiltOnesAreErrorsAndNeverRead) {
  std::mt19937 random(7);
  for (const char* name : {"mlp", "lstm", "convolutions"}) {
    const Files whole(name);
    for (int round = 0; round < 300; ++round) {
      Files files = whole;
      std::string& text = round % 2 == 0 ? files.config : files.tensors;
      const std::size_t at = random() % text.size();
      round % 3 == 0 ? text.resize(at) : static_cast<void>(text[at] = static_cast<char>(random()));
      const auto loaded = files.load(kernels::best_kernel_table());
      EXPECT_TRUE(loaded || !loaded.error().message.empty());
    }
  }
}

}  // namespace
}  // namespace braid::model
