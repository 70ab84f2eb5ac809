#include "model/networks/network_shape.h"

#include "model/networks/config_fields.h"
#include "model/networks/policy_config.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <optional>
#include <simdjson.h>
#include <span>
#include <utility>

namespace braid::model {
namespace {

using simdjson::dom::element;

constexpr std::int64_t kMostExtent = std::int64_t{1} << 31;
constexpr std::int64_t kMostLayers = 10'000;

struct NamedType {
  std::string_view name;
  LayerType type;
  std::string_view options;  // beside name, type and input, separated by spaces
};
constexpr std::array kTypes{
    NamedType{"linear", LayerType::kLinear, "weights"},
    NamedType{"layer_norm", LayerType::kLayerNorm, "weights epsilon"},
    NamedType{"embedding", LayerType::kEmbedding, "weights"},
    NamedType{"conv1d", LayerType::kConv1d, "weights stride padding dilation groups"},
    NamedType{"lstm", LayerType::kLstm, "weights state layers bidirectional"},
    NamedType{"gru", LayerType::kGru, "weights state layers bidirectional"},
    NamedType{"relu", LayerType::kRelu, ""},
    NamedType{"tanh", LayerType::kTanh, ""},
    NamedType{"sigmoid", LayerType::kSigmoid, ""},
    NamedType{"gelu", LayerType::kGelu, "approximate"},
    NamedType{"silu", LayerType::kSilu, ""},
    NamedType{"softplus", LayerType::kSoftplus, ""},
    NamedType{"softmax", LayerType::kSoftmax, "axis"},
    NamedType{"log_softmax", LayerType::kLogSoftmax, "axis"},
    NamedType{"add", LayerType::kAdd, ""},
    NamedType{"concat", LayerType::kConcat, "axis"},
    NamedType{"last", LayerType::kLast, ""},
    NamedType{"parameter", LayerType::kParameter, "weights"},
};

class Reader {
 public:
  Result<NetworkShape> read(const element& config) {
    auto fields = ConfigFields::of(config, "");
    if (!fields) return fields.error();
    const auto type = fields->text("model_type", "");
    if (!type) return type.error();
    if (*type != "braid-net") return bad_config("model_type", fmt::format("'{}' is no network; expected 'braid-net'", *type));
    if (const auto read = read_inputs(*fields); !read) return read.error();
    if (const auto read = read_layers(*fields); !read) return read.error();
    if (const auto read = read_outputs(*fields); !read) return read.error();
    shape_.values = static_cast<std::int64_t>(next_);
    if (const auto policy = fields->find("policy")) {
      auto read = read_policy(*policy, shape_);
      if (!read) return read.error();
      shape_.policy = std::move(*read);
    }
    for (const auto& [key, value] : fields->all()) {
      // Tools write these beside what describes the network.
      if (key.starts_with("_") || key == "architectures" || key == "torch_dtype" || key == "transformers_version") fields->find(key);
    }
    if (const auto end = fields->end(); !end) return end.error();
    return std::move(shape_);
  }

 private:
  Result<void> define(const std::string& name, ValueId value, const std::string& path) {
    if (name.empty()) return bad_config(path, "the name is empty");
    if (!names_.emplace(name, value).second) return bad_config(path, fmt::format("there are two values named '{}'", name));
    return {};
  }

  Result<ValueId> value_named(const element& named, const std::string& path) const {
    std::string_view name;
    if (named.get(name) != simdjson::SUCCESS) return bad_config(path, "expected the name of an input or an earlier layer");
    const auto found = names_.find(name);
    if (found == names_.end()) return bad_config(path, fmt::format("'{}' is no input and no earlier layer", name));
    return found->second;
  }

  Result<void> read_inputs(ConfigFields& fields) {
    const auto given = fields.need("inputs");
    if (!given) return given.error();
    auto inputs = ConfigFields::of(*given, "inputs");
    if (!inputs) return inputs.error();
    for (const auto& [key, value] : inputs->all()) {
      const auto read = read_input(std::string(key), value);
      if (!read) return read.error();
    }
    if (shape_.inputs.empty()) return bad_config("inputs", "there are none");
    return {};
  }

  Result<void> read_input(const std::string& name, const element& value) {
    auto fields = ConfigFields::of(value, "inputs." + name);
    if (!fields) return fields.error();
    TensorSignature input{.name = name, .type = ElementType::kFloat32, .shape = {}, .optional = false};
    const auto type = fields->text("dtype", "float32");
    if (!type) return type.error();
    if (*type == "int64" || *type == "int32") {
      input.type = ElementType::kInt64;
    } else if (*type != "float32") {
      return bad_config(fields->path_of("dtype"), fmt::format("'{}' is not served; expected float32, int64 or int32", *type));
    }
    const auto optional = fields->flag("optional");
    if (!optional) return optional.error();
    input.optional = *optional;
    const auto extents = fields->need("shape");
    if (!extents) return extents.error();
    auto shape = read_shape(*extents, fields->path_of("shape"));
    if (!shape) return shape.error();
    input.shape = std::move(*shape);
    if (const auto end = fields->end(); !end) return end.error();
    if (const auto defined = define(name, next_++, "inputs." + name); !defined) return defined.error();
    shape_.inputs.push_back(std::move(input));
    return {};
  }

  static Result<SymbolicShape> read_shape(const element& value, const std::string& path) {
    simdjson::dom::array extents;
    if (value.get(extents) != simdjson::SUCCESS || extents.size() == 0 || extents.size() > 8)
      return bad_config(path, "expected a list of 1 to 8 sizes and names of sizes");
    SymbolicShape shape;
    for (const element& extent : extents) {
      std::int64_t size = 0;
      std::string_view name;
      if (extent.get(size) == simdjson::SUCCESS && size > 0 && size <= kMostExtent) {
        shape.push_back({size, {}});
      } else if (extent.get(name) == simdjson::SUCCESS && !name.empty()) {
        shape.push_back({-1, std::string(name)});
      } else {
        return bad_config(fmt::format("{}[{}]", path, shape.size()), "expected a size of at least 1, or a name such as \"batch\"");
      }
    }
    return shape;
  }

  Result<void> read_layers(ConfigFields& fields) {
    const auto given = fields.need("layers");
    if (!given) return given.error();
    simdjson::dom::array layers;
    if (given->get(layers) != simdjson::SUCCESS) return bad_config("layers", "expected a list");
    if (layers.size() > kMostLayers) return bad_config("layers", fmt::format("there are more than {}", kMostLayers));
    for (const element& layer : layers) {
      const auto read = read_layer(layer, fmt::format("layers[{}]", shape_.layers.size()));
      if (!read) return read.error();
    }
    if (shape_.layers.empty()) return bad_config("layers", "there are none");
    return {};
  }

  Result<void> read_layer(const element& value, const std::string& path) {
    auto fields = ConfigFields::of(value, path);
    if (!fields) return fields.error();
    const auto type_name = fields->text("type", "");
    if (!type_name) return type_name.error();
    const auto* const type = std::ranges::find(kTypes, *type_name, &NamedType::name);
    if (type == kTypes.end()) {
      std::vector<std::string_view> known;
      for (const NamedType& each : kTypes) known.push_back(each.name);
      return bad_config(fields->path_of("type"), fmt::format("'{}' is no layer; there are {}", *type_name, fmt::join(known, ", ")));
    }
    NetworkLayer layer;
    layer.type = type->type;
    const auto name = fields->text("name", fmt::format("{}", shape_.layers.size()));
    if (!name) return name.error();
    layer.name = *name;
    if (const auto read = read_sources(*fields, layer); !read) return read.error();
    if (const auto read = read_options(*fields, *type, layer); !read) return read.error();
    if (const auto end = fields->end(); !end) return end.error();
    layer.output = next_++;
    if (const auto defined = define(layer.name, layer.output, fields->path_of("name")); !defined) return defined.error();
    for (std::int64_t state = 0; state < layer.state_count(); ++state) {
      constexpr std::array kParts{".h", ".c"};
      const std::string full = layer.name + ".state" + (layer.type == LayerType::kLstm ? kParts.at(static_cast<std::size_t>(state)) : "");
      if (const auto defined = define(full, next_++, fields->path_of("name")); !defined) return defined.error();
    }
    shape_.layers.push_back(std::move(layer));
    return {};
  }

  Result<void> read_sources(ConfigFields& fields, NetworkLayer& layer) {
    const bool several = layer.type == LayerType::kAdd || layer.type == LayerType::kConcat;
    const auto given = fields.find("input");
    if (!given) {
      if (several) return bad_config(fields.path_of("input"), "expected the names of two values or more");
      if (shape_.layers.empty() && shape_.inputs.size() > 1)
        return bad_config(fields.path_of("input"), "missing: there are several inputs");
      layer.inputs = {shape_.layers.empty() ? 0 : shape_.layers.back().output};
      return {};
    }
    simdjson::dom::array names;
    if (given->get(names) != simdjson::SUCCESS) {
      if (several) return bad_config(fields.path_of("input"), "expected a list of names");
      const auto value = value_named(*given, fields.path_of("input"));
      if (!value) return value.error();
      layer.inputs = {*value};
      return {};
    }
    if (!several || names.size() < 2)
      return bad_config(fields.path_of("input"), several ? "expected two names or more" : "expected one name");
    for (const element& name : names) {
      const auto value = value_named(name, fmt::format("{}[{}]", fields.path_of("input"), layer.inputs.size()));
      if (!value) return value.error();
      layer.inputs.push_back(*value);
    }
    return {};
  }

  Result<void> read_options(ConfigFields& fields, const NamedType& type, NetworkLayer& layer) const {
    const auto takes = [&](std::string_view option) {
      for (std::size_t at = type.options.find(option); at != std::string_view::npos; at = type.options.find(option, at + 1)) {
        const std::size_t end = at + option.size();
        if ((at == 0 || type.options[at - 1] == ' ') && (end == type.options.size() || type.options[end] == ' ')) return true;
      }
      return false;
    };
    if (takes("weights")) {
      const auto prefix = fields.text("weights", layer.name + (layer.type == LayerType::kParameter ? "" : "."));
      if (!prefix) return prefix.error();
      layer.weights = *prefix;
    }
    if (takes("epsilon")) {
      if (const auto value = fields.find("epsilon")) {
        if (value->get(layer.epsilon) != simdjson::SUCCESS || !(layer.epsilon >= 0.0) || !(layer.epsilon < 1.0))
          return bad_config(fields.path_of("epsilon"), "expected a number from 0 to 1");
      }
    }
    if (takes("approximate")) {
      const auto how = fields.text("approximate", "none");
      if (!how) return how.error();
      if (*how != "none" && *how != "tanh") return bad_config(fields.path_of("approximate"), "expected \"none\" or \"tanh\"");
      layer.by_tanh = *how == "tanh";
    }
    if (takes("bidirectional")) {
      const auto flag = fields.flag("bidirectional");
      if (!flag) return flag.error();
      layer.bidirectional = *flag;
    }
    if (takes("state")) {
      if (const auto read = read_states(fields, layer); !read) return read.error();
    }
    struct Number {
      std::string_view name;
      std::int64_t NetworkLayer::*field;
      std::int64_t least;
      std::int64_t most;
    };
    constexpr std::array kNumbers{Number{"layers", &NetworkLayer::depth, 1, 1000},
                                  Number{"axis", &NetworkLayer::axis, -8, 7},
                                  Number{"stride", &NetworkLayer::stride, 1, kMostExtent},
                                  Number{"padding", &NetworkLayer::padding, 0, kMostExtent},
                                  Number{"dilation", &NetworkLayer::dilation, 1, kMostExtent},
                                  Number{"groups", &NetworkLayer::groups, 1, kMostExtent}};
    for (const Number& number : kNumbers) {
      if (!takes(number.name)) continue;
      const auto value = fields.whole(number.name, layer.*number.field, number.least, number.most);
      if (!value) return value.error();
      layer.*number.field = *value;
    }
    return {};
  }

  // kGru: a name. kLstm: {"h": name, "c": name}.
  Result<void> read_states(ConfigFields& fields, NetworkLayer& layer) const {
    const auto given = fields.find("state");
    if (!given) return {};
    const std::string path = fields.path_of("state");
    if (layer.type == LayerType::kGru) {
      const auto value = value_named(*given, path);
      if (!value) return value.error();
      layer.states = {*value};
      return {};
    }
    auto parts = ConfigFields::of(*given, path);
    if (!parts) return bad_config(path, "expected {\"h\": NAME, \"c\": NAME}");
    for (const char* part : {"h", "c"}) {
      const auto named = parts->need(part);
      if (!named) return named.error();
      const auto value = value_named(*named, parts->path_of(part));
      if (!value) return value.error();
      layer.states.push_back(*value);
    }
    return parts->end();
  }

  Result<void> read_outputs(ConfigFields& fields) {
    const auto given = fields.need("outputs");
    if (!given) return given.error();
    auto outputs = ConfigFields::of(*given, "outputs");
    if (!outputs) return outputs.error();
    for (const auto& [key, value] : outputs->all()) {
      const auto named = value_named(value, fmt::format("outputs.{}", key));
      if (!named) return named.error();
      shape_.outputs.push_back({std::string(key), *named});
    }
    if (shape_.outputs.empty()) return bad_config("outputs", "there are none");
    return {};
  }

  NetworkShape shape_;
  std::map<std::string, ValueId, std::less<>> names_;
  ValueId next_ = 0;
};

}  // namespace

bool describes_network(std::string_view config) {
  simdjson::dom::parser parser;
  std::string_view type;
  const simdjson::padded_string text(config);
  return parser.parse(text)["model_type"].get(type) == simdjson::SUCCESS && type == "braid-net";
}

Result<NetworkShape> read_network_shape(std::string_view config) {
  simdjson::dom::parser parser;
  element root;
  const simdjson::padded_string text(config);
  if (const auto error = parser.parse(text).get(root); error != simdjson::SUCCESS)
    return Error{ErrorCode::kBadFile, fmt::format("config.json: no JSON: {}", simdjson::error_message(error)), {}};
  return Reader().read(root);
}

}  // namespace braid::model
