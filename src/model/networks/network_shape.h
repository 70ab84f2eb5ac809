// A small network as its config.json describes it (`"model_type": "braid-net"`): named inputs, layers that run in order, named outputs.
// Types, their options and their defaults are those of LayerType and NetworkLayer below.
#pragma once

#include "braid/policy.h"
#include "braid/result.h"
#include "braid/tensor.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace braid::model {

enum class LayerType : std::uint8_t {
  kLinear,
  kLayerNorm,
  kEmbedding,
  kConv1d,
  kLstm,
  kGru,
  kRelu,
  kTanh,
  kSigmoid,
  kGelu,
  kSilu,
  kSoftplus,
  kSoftmax,
  kLogSoftmax,
  kAdd,
  kConcat,
  kLast,
  kParameter,
};

// Values are numbered: the inputs, then of each layer its output and its states after the last step.
using ValueId = std::int32_t;

struct NetworkLayer {
  std::string name;
  LayerType type = LayerType::kLinear;
  std::vector<ValueId> inputs;  // one; of kAdd and kConcat several
  std::vector<ValueId> states;  // before the first step: none (zeros), that of kGru, or h and c of kLstm
  std::string weights;          // prefix of the tensors' names; of kParameter the whole name
  ValueId output = 0;           // its states after the last step are the next ones: kGru has one, kLstm h and c
  std::int64_t depth = 1;       // of kLstm and kGru
  bool bidirectional = false;   // of kLstm and kGru
  bool by_tanh = false;         // of kGelu: the approximation by tanh
  double epsilon = 1e-5;        // of kLayerNorm
  std::int64_t axis = -1;       // of kSoftmax, kLogSoftmax and kConcat; negative: from the end
  std::int64_t stride = 1;      // of kConv1d, as the next three
  std::int64_t padding = 0;
  std::int64_t dilation = 1;
  std::int64_t groups = 1;

  std::int64_t directions() const { return bidirectional ? 2 : 1; }
  std::int64_t state_count() const { return type == LayerType::kLstm ? 2 : type == LayerType::kGru ? 1 : 0; }
};

struct NetworkOutput {
  std::string name;
  ValueId value = 0;
};

struct NetworkShape {
  std::vector<TensorSignature> inputs;
  std::vector<NetworkLayer> layers;
  std::vector<NetworkOutput> outputs;
  std::optional<PolicyForm> policy;
  std::int64_t values = 0;  // ids
};

// Whether it is the config.json of a small network at all.
bool describes_network(std::string_view config);

// kBadFile or kUnsupported, with the path of what is wrong. Unknown keys are wrong: they may change what the network gives.
Result<NetworkShape> read_network_shape(std::string_view config);

}  // namespace braid::model
