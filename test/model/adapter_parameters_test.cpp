// Adapters of parameters that no layer's matrix is: those of all experts at once (target_parameters), and single rows of embeddings and heads
// (trainable_token_indices), against what the base computes with them merged into its weights.
#include "model/adapter_harness.h"
#include "model/forward_harness.h"
#include "support/gguf_writer.h"

#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <limits>
#include <ostream>

namespace braid::model::test::adapting {
namespace {

using testing::HasSubstr;

// Where the tensors of a folder's experts lie.
enum class Layout {
  kApart,
  kRows,
  kColumns
};  // one for each; [experts, outputs, inputs]; [experts, inputs, outputs], gates and ups in turns

struct Experts {
  std::string base;
  std::string module;  // of PEFT's names, behind "model.layers.<layer>."
  std::string stored;  // of the folder's
  std::vector<std::string> ups;
  std::string down;
  Layout layout = Layout::kApart;
  std::string parameter = "gate_up_proj", down_parameter = "down_proj";

  friend void PrintTo(const Experts& experts, std::ostream* out) { *out << experts.base; }
};

class ExpertParameters : public testing::TestWithParam<Experts> {
 protected:
  static constexpr std::int64_t kRank = 3, kCount = 8;
  static constexpr float kScale = 2.0F;

  ExpertParameters() : base_(files::HfFolder::open(folder_path(GetParam().base)).value()) {
    for (const char* each : {"adapter", "merged"}) std::filesystem::create_directory(folder_ / each);
  }

  const files::SafeTensor* find(const std::string& name) const {
    const auto found = base_.tensors().find(name);
    return found == base_.tensors().end() ? nullptr : &found->second;
  }

  // What the definition says: delta[e][output][input] = sum over r of B[output, r * experts + e] * A[e * rank + r, input].
  static float delta(const Values& down, const Values& up, std::int64_t expert, std::int64_t output, std::int64_t input) {
    double sum = 0.0;
    for (std::int64_t r = 0; r < kRank; ++r)
      sum += double{up.at[static_cast<std::size_t>(output * kRank * kCount + r * kCount + expert)]} *
             down.at[static_cast<std::size_t>((expert * kRank + r) * down.columns() + input)];
    return static_cast<float>(sum * double{kScale});
  }

  // The tensors of a layer's parameter, whose outputs are those of `parts` one after the other.
  void adapt(const std::string& layer, const std::vector<std::string>& parts, const std::string& wrapped, bool inputs_first) {
    const Layout layout = GetParam().layout;
    const std::string stored = layer + GetParam().stored;
    const auto name_of = [&](const std::string& part, std::int64_t expert) {
      return layout == Layout::kApart ? fmt::format("{}.{}.{}.weight", stored, expert, part) : stored + part;
    };
    const Values first = values_of(*find(name_of(parts.front(), 0)));
    const std::int64_t inputs = layout == Layout::kColumns ? first.shape[1] : first.columns();
    const std::int64_t each = layout == Layout::kApart ? first.rows() : layout == Layout::kRows ? first.shape[1] : first.columns();
    const std::int64_t outputs = each * std::ssize(parts);
    const Values down = random_values(random_, {kCount * kRank, inputs}, 0.3F),
                 up = random_values(random_, {outputs, kRank * kCount}, 0.3F);
    const std::string module = "base_model.model." + layer + wrapped;
    if (inputs_first) {  // the parameter's [experts, outputs, inputs] taken for [experts, inputs, outputs]
      Values a{{kCount * kRank, outputs}, std::vector<float>(static_cast<std::size_t>(kCount * kRank * outputs))};
      Values b{{inputs, kRank * kCount}, std::vector<float>(static_cast<std::size_t>(kCount * kRank * inputs))};
      for (std::int64_t expert = 0; expert < kCount; ++expert)
        for (std::int64_t r = 0; r < kRank; ++r) {
          for (std::int64_t output = 0; output < outputs; ++output)
            a.at[static_cast<std::size_t>((expert * kRank + r) * outputs + output)] =
                up.at[static_cast<std::size_t>(output * kRank * kCount + r * kCount + expert)];
          for (std::int64_t input = 0; input < inputs; ++input)
            b.at[static_cast<std::size_t>(input * kRank * kCount + r * kCount + expert)] =
                down.at[static_cast<std::size_t>((expert * kRank + r) * inputs + input)];
        }
      tensors_.add(module + ".lora_A.weight", a);
      tensors_.add(module + ".lora_B.weight", b);
    } else {
      tensors_.add(module + ".lora_A.weight", down);
      tensors_.add(module + ".lora_B.weight", up);
    }
    for (std::int64_t expert = 0; expert < kCount; ++expert)
      for (std::size_t part = 0; part < parts.size(); ++part) {
        const std::string name = name_of(parts[part], expert);
        Values& weights = merged_.try_emplace(name, values_of(*find(name))).first->second;
        for (std::int64_t o = 0; o < each; ++o)
          for (std::int64_t i = 0; i < inputs; ++i) {
            const std::int64_t at = layout == Layout::kColumns ? (expert * inputs + i) * each + o
                                    : layout == Layout::kRows  ? (expert * each + o) * inputs + i
                                                               : o * inputs + i;
            weights.at[static_cast<std::size_t>(at)] += delta(down, up, expert, static_cast<std::int64_t>(part) * each + o, i);
          }
      }
  }

  // Of all layers that have experts.
  void adapt_layers(bool inputs_first) {
    const Experts& experts = GetParam();
    const std::string layers = base_.tensors().begin()->first.starts_with("backbone.") ? "backbone.layers." : "model.layers.";
    const bool is_one_module = experts.parameter != "weight";
    for (int i = 0; i < 8; ++i) {
      const std::string layer = fmt::format("{}{}.", layers, i);
      const std::string down =
          layer + experts.stored + (experts.layout == Layout::kApart ? ".0." + experts.down + ".weight" : experts.down);
      if (find(down) == nullptr) continue;
      adapt(layer, experts.ups, is_one_module ? experts.module + ".base_layer" : "block_sparse_moe.input_linear", inputs_first);
      adapt(layer, {experts.down}, is_one_module ? experts.module : "block_sparse_moe.output_linear", inputs_first);
    }
  }

  void expect_merged(const std::string& version) {
    const Experts& experts = GetParam();
    const std::string names = experts.parameter == "weight"
                                  ? R"("input_linear.weight","block_sparse_moe.output_linear.weight")"
                                  : fmt::format(R"("experts.{}","{}.{}")", experts.parameter, experts.module, experts.down_parameter);
    write_folder(base_, merged_, folder_ / "merged", base_.config());
    write_adapter(folder_ / "adapter",
                  fmt::format(R"({{"r":{},"lora_alpha":6,"target_modules":[],"target_parameters":[{}]{}}})", kRank, names, version),
                  tensors_);
    const auto& table = kernels::best_kernel_table();
    auto model = load(open_model(base_.path()), table);
    const DrivenAnswer plain = scores(*model), expected = scores(*load(open_model(folder_ / "merged"), table));
    for (const std::string& from : {base_.path(), std::string()}) {  // the base's folder, and a file
      const auto tuned = adapter_of(folder_ / "adapter", *model, from, table);
      ASSERT_NE(tuned, nullptr);
      EXPECT_EQ(tuned->rank, kRank);
      model->adapters().set(1, only(tuned));
      const DrivenAnswer adapted = scores(*model, 1);
      EXPECT_LT(distance(adapted, expected), 2e-3F);
      EXPECT_GT(distance(adapted, plain), 0.02F) << "it does something";
    }
  }

  const files::HfFolder base_;
  const braid::test::Folder folder_;
  std::mt19937 random_{47};
  Tensors tensors_;
  std::map<std::string, Values> merged_;
};

TEST_P(ExpertParameters, ComputeWhatTheMergedModelDoes) {
  adapt_layers(false);
  ASSERT_FALSE(merged_.empty());
  expect_merged(R"(,"peft_version":"0.19.0")");
}

// Whose parameters have outputs as rows, which shapes tell, or else nothing does; those with inputs first lie as ever.
TEST_P(ExpertParameters, AreReadAsPeftWroteThemBefore) {
  adapt_layers(GetParam().layout != Layout::kColumns);
  expect_merged(R"(,"peft_version":"0.18.1")");
}

INSTANTIATE_TEST_SUITE_P(
    Models, ExpertParameters,
    testing::Values(Experts{"qwen3-moe", "mlp.experts", "mlp.experts", {"gate_proj", "up_proj"}, "down_proj"},
                    Experts{"deepseek-v3", "mlp.experts", "mlp.experts", {"gate_proj", "up_proj"}, "down_proj"},
                    Experts{"lfm2-moe", "feed_forward.experts", "feed_forward.experts", {"w1", "w3"}, "w2"},
                    Experts{"mixtral", "mlp.experts", "block_sparse_moe.experts", {"w1", "w3"}, "w2"},
                    Experts{"nemotron-h-moe", "mixer.experts", "mixer.experts", {"up_proj"}, "down_proj", Layout::kApart, "up_proj"},
                    Experts{"gemma4-moe", "experts", "experts", {".gate_up_proj"}, ".down_proj", Layout::kRows},
                    Experts{
                        "granite-moe", "", "block_sparse_moe", {".input_linear.weight"}, ".output_linear.weight", Layout::kRows, "weight"},
                    Experts{"gpt-oss", "mlp.experts", "mlp.experts", {".gate_up_proj"}, ".down_proj", Layout::kColumns}),
    [](const auto& each) {
  std::string name = each.param.base;
  std::erase(name, '-');
  return name;
    });

// What a folder with such an adapter says.
class ParametersOf : public testing::Test {
 protected:
  explicit ParametersOf(const std::string& base) : base_(files::HfFolder::open(folder_path(base)).value()) {
    for (const char* each : {"adapter", "merged"}) std::filesystem::create_directory(folder_ / each);
  }

  void add(const std::string& name, std::vector<std::int64_t> shape) {
    tensors_.add("base_model.model." + name, random_values(random_, std::move(shape), 0.3F));
  }

  std::string fault(const std::string& config) {
    write_adapter(folder_ / "adapter", config, tensors_);
    if (!model_) model_ = load(open_model(base_.path()), kernels::best_kernel_table());
    return fault_of(folder_ / "adapter", *model_, base_.path());
  }

  const files::HfFolder base_;
  const braid::test::Folder folder_;
  std::mt19937 random_{53};
  Tensors tensors_;
  std::unique_ptr<LanguageModel> model_;
};

class ParametersOfExperts : public ParametersOf {
 protected:
  ParametersOfExperts() : ParametersOf("qwen3-moe") {}
};

TEST_F(ParametersOfExperts, SayWhatDoesNotFit) {
  const std::string down = R"({"r":2,"peft_version":"0.21.0","target_parameters":["mlp.experts.down_proj"]})";
  const std::string experts = "model.layers.1.mlp.experts.";
  add(experts + "lora_A.weight", {16, 20});
  add(experts + "lora_B.weight", {32, 16});
  EXPECT_EQ(fault(down), "");
  EXPECT_THAT(
      fault(R"({"r":3,"target_parameters":["mlp.experts.down_proj"]})"),
      HasSubstr("experts.lora_A.weight: found shape [16, 20], and [32, 16] of lora_B, expected [24, 20] and [32, 24], for 8 experts"));
  EXPECT_THAT(fault(R"({"r":2,"target_parameters":["mlp.experts.gate_up_proj"]})"),
              HasSubstr("experts.lora_A.weight: found shape [16, 20], and [32, 16] of lora_B, expected [16, 32] and [40, 16]"));
  EXPECT_THAT(fault(R"({"r":2,"target_parameters":["mlp.experts.up_proj"]})"), HasSubstr("the base's experts have gates"));
  EXPECT_THAT(fault(R"({"r":2,"target_parameters":["mlp.experts.down_proj","mlp.experts.gate_up_proj"]})"),
              HasSubstr("'mlp.experts.gate_up_proj', and no tensor is its"));
  EXPECT_THAT(fault(R"({"r":2,"target_parameters":["mlp.experts.gate_up_proj_bias"]})"),
              HasSubstr("'mlp.experts.gate_up_proj_bias', expected the name of a parameter weight, gate_up_proj"));
  EXPECT_THAT(fault(R"({"r":2})"), HasSubstr("layers.1.mlp.experts"));
  add(experts + "base_layer.lora_A.weight", {16, 32});
  add(experts + "base_layer.lora_B.weight", {40, 16});
  EXPECT_THAT(fault(down), HasSubstr("base_layer.lora_A.weight: is about no parameter that 'target_parameters' has"));
  EXPECT_EQ(fault(R"({"r":2,"peft_version":"0.21.0","target_parameters":["gate_up_proj","down_proj"]})"), "");
  tensors_.rename("layers.1.", "layers.0.");
  EXPECT_THAT(fault(R"({"r":2,"target_parameters":["gate_up_proj","down_proj"]})"),
              HasSubstr("layers.0.mlp.experts.lora_A.weight: the base has no experts there"));
}

// A parameter that is a layer's matrix is that matrix.
TEST_F(ParametersOfExperts, OfALayerAreItsMatrix) {
  add("model.layers.0.self_attn.q_proj.lora_A.weight", {2, 32});
  add("model.layers.0.self_attn.q_proj.lora_B.weight", {base_.tensors().at("model.layers.0.self_attn.q_proj.weight").shape[0], 2});
  EXPECT_EQ(fault(R"({"r":7,"target_parameters":["0.self_attn.q_proj.weight"],"rank_pattern":{"q_proj.weight":2}})"), "");
  EXPECT_THAT(fault(R"({"r":7,"target_parameters":["0.self_attn.q_proj.weight"]})"),
              HasSubstr("has the rank 2, and adapter_config.json says 7"));
}

// Rows of tokens in an embedding and a head.
class TokenRows : public ParametersOf {
 protected:
  explicit TokenRows(const std::string& base = "mistral") : ParametersOf(base) {}

  // Tokens are not in order.
  void replace(const std::string& module, const std::vector<std::int32_t>& tokens, bool is_stored = true) {
    Values& table = merged_.try_emplace(module + ".weight", values_of(base_.tensors().at(module + ".weight"))).first->second;
    Values rows = random_values(random_, {std::ssize(tokens), table.columns()}, 0.8F);
    for (std::size_t i = 0; i < tokens.size(); ++i)
      std::copy_n(rows.at.begin() + static_cast<std::ptrdiff_t>(i) * table.columns(), table.columns(),
                  table.at.begin() + tokens[i] * table.columns());
    if (is_stored) tensors_.add("base_model.model." + module + ".token_adapter.trainable_tokens_delta", rows);
  }

  void expect_merged(const std::string& config) {
    ASSERT_EQ(fault(config), "");
    write_folder(base_, merged_, folder_ / "merged", base_.config());
    for (const auto* table : available_tables()) {
      auto model = load(open_model(base_.path()), *table);
      const auto tuned = adapter_of(folder_ / "adapter", *model, base_.path(), *table);
      ASSERT_NE(tuned, nullptr);
      EXPECT_FALSE(tuned->is_linear());
      model->adapters().set(1, only(tuned));
      const DrivenAnswer adapted = scores(*model, 1);
      const DrivenAnswer expected = scores(*load(open_model(folder_ / "merged"), *table));
      EXPECT_LT(distance(adapted, expected), 2e-3F) << table->name;
      EXPECT_GT(distance(adapted, scores(*model)), 0.02F) << table->name;
      EXPECT_EQ(adapted.tokens, expected.tokens) << table->name;
    }
  }

  // More than a group of columns, the first and the last token among them.
  const std::vector<std::int32_t> many_ = {119, 5, 0, 17, 33, 34, 35, 36, 40, 44, 61, 77, 90, 91, 101, 102, 103, 110, 12};
  const std::string many_text_ = fmt::format("[{}]", fmt::join(many_, ","));
  std::map<std::string, Values> merged_;
};

TEST_F(TokenRows, AreTheEmbeddingsAlone) {
  replace("model.embed_tokens", many_);
  expect_merged(fmt::format(R"({{"r":2,"trainable_token_indices":{}}})", many_text_));
}

TEST_F(TokenRows, AreTheHeadsAlone) {
  replace("lm_head", many_);
  expect_merged(fmt::format(R"({{"r":2,"trainable_token_indices":{{"lm_head":{}}}}})", many_text_));
}

TEST_F(TokenRows, AreOthersInEach) {
  replace("lm_head", {7, 3, 111});
  replace("model.embed_tokens", many_);
  expect_merged(fmt::format(R"({{"r":2,"trainable_token_indices":{{"lm_head":[7,3,111],"embed_tokens":{}}}}})", many_text_));
}

class TiedTokenRows : public TokenRows {
 protected:
  TiedTokenRows() : TokenRows("gemma3") {}
};

TEST_F(TiedTokenRows, AreOfBoth) {
  replace("model.embed_tokens", many_);
  expect_merged(fmt::format(R"({{"r":2,"trainable_token_indices":{}}})", many_text_));
}

// Beside low ranks of other matrices, and of the tokens themselves the revision says.
TEST_F(TokenRows, ArePartOfTheRevision) {
  replace("lm_head", {7, 3});
  add("model.layers.0.self_attn.q_proj.lora_A.weight", {2, 32});
  add("model.layers.0.self_attn.q_proj.lora_B.weight", {64, 2});
  const auto revision_of = [&](const char* tokens) {
    const std::string config = fmt::format(R"({{"r":2,"trainable_token_indices":{{"lm_head":{}}}}})", tokens);
    EXPECT_EQ(fault(config), "");
    return adapter_of(folder_ / "adapter", *model_, base_.path(), kernels::best_kernel_table())->revision;
  };
  EXPECT_NE(revision_of("[7,3]"), revision_of("[3,7]"));
  EXPECT_NE(revision_of("[7,3]"), revision_of("[7,4]"));
  EXPECT_EQ(revision_of("[7,3]"), revision_of("[7,3]"));
}

TEST_F(TokenRows, SayWhatDoesNotFit) {
  const auto with = [&](const char* indices) { return fault(fmt::format(R"({{"r":2,"trainable_token_indices":{}}})", indices)); };
  replace("model.embed_tokens", {5, 9});
  EXPECT_EQ(with("[5,9]"), "");
  EXPECT_THAT(fault(R"({"r":2})"), HasSubstr("trainable_tokens_delta: is there, and 'trainable_token_indices' does not say"));
  EXPECT_THAT(with("[5]"), HasSubstr("trainable_tokens_delta: found shape [2, 32], expected a row for each of 1 tokens"));
  EXPECT_THAT(with("[5,120]"), HasSubstr("trainable_tokens_delta: is of the token 120, and the base has 120"));
  EXPECT_THAT(with("[5,5]"), HasSubstr("'trainable_token_indices' has 5 twice"));
  EXPECT_THAT(with("[5,-1]"), HasSubstr("'trainable_token_indices' has -1, which is no token"));
  EXPECT_THAT(with("7"), HasSubstr("'trainable_token_indices' is no list"));
  EXPECT_THAT(with(R"({"lm_head":[5,9]})"), HasSubstr("does not say of which tokens"));
  tensors_.add("base_model.model.model.embed_tokens.token_adapter.trainable_tokens_delta", random_values(random_, {2, 31}, 1.0F));
  EXPECT_THAT(with("[5,9]"), HasSubstr("trainable_tokens_delta: found shape [2, 31], expected [2, 32], as token_embd of the base has it"));
  tensors_.remove("base_model.model.model.embed_tokens.token_adapter.trainable_tokens_delta");
  add("model.layers.0.self_attn.q_proj.lora_A.weight", {2, 32});
  add("model.layers.0.self_attn.q_proj.lora_B.weight", {64, 2});
  EXPECT_THAT(with("[5,9]"), HasSubstr("'trainable_token_indices' is set, and no tensor has their rows"));
  std::string most;
  for (int token = 0; token < 1025; ++token) most += fmt::format("{}{}", token == 0 ? "" : ",", token);
  add("lm_head.token_adapter.trainable_tokens_delta", {1025, 32});
  EXPECT_THAT(with(fmt::format(R"({{"lm_head":[{}]}})", most).c_str()),
              HasSubstr("lm_head.token_adapter.trainable_tokens_delta: has 1025 rows of a head, expected at most 1024"));
  tensors_.remove("base_model.model.lm_head.token_adapter.trainable_tokens_delta");
  add("model.norm.token_adapter.trainable_tokens_delta", {2, 32});
  EXPECT_THAT(with("[5,9]"),
              HasSubstr("norm.token_adapter.trainable_tokens_delta: is of a module that this build does not know as an embedding"));
}

// Folders and files as people have them.
class OddAdapters : public ParametersOf {
 protected:
  OddAdapters() : ParametersOf("mistral") {
    add("model.layers.1.self_attn.q_proj.lora_A.weight", {4, 32});
    add("model.layers.1.self_attn.q_proj.lora_B.weight", {64, 4});
  }
};

TEST_F(OddAdapters, MayHavePatternsOfWholeNames) {
  for (const char* pattern : {R"(^model\\.layers\\.1\\.self_attn\\.q_proj$)", R"(layers\\.[0-9]+\\.self_attn\\.(q|k)_proj)",
                              "self_attn.q_proj", R"((?:.*\\.)?1\\..*q_proj)", "q_proj"})
    EXPECT_EQ(fault(fmt::format(R"({{"r":8,"rank_pattern":{{"k_proj":2,"{}":4}}}})", pattern)), "") << pattern;
  EXPECT_THAT(fault(R"({"r":8,"rank_pattern":{"(?P<a>q)_proj":4}})"), HasSubstr("is no regular expression that this build reads"));
  EXPECT_EQ(fault(R"({"r":4.0,"lora_alpha":0,"fan_in_fan_out":true,"lora_dropout":0.1,"layers_pattern":"layers","layers_to_transform":1})"),
            "");
}

TEST_F(OddAdapters, HaveFiniteValues) {
  for (const float value : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Values up{{64, 4}, std::vector<float>(256, 0.5F)};
    up.at.back() = value;
    tensors_.add("base_model.model.model.layers.1.self_attn.q_proj.lora_B.weight", up);
    EXPECT_THAT(fault(R"({"r":4})"), HasSubstr("q_proj.lora_B.weight: holds a value that is infinite or no number"));
    braid::test::GgufWriter writer;
    writer.string("general.type", "adapter").string("general.architecture", "llama").string("adapter.type", "lora");
    const auto* bytes = reinterpret_cast<const std::byte*>(up.at.data());
    writer.tensor("blk.1.attn_q.weight.lora_a", 0, {32, 4}, std::vector<std::byte>(bytes, bytes + 512));
    writer.tensor("blk.1.attn_q.weight.lora_b", 0, {4, 64}, std::vector<std::byte>(bytes, bytes + 1024));
    const auto stored = read_gguf_adapter(writer.source("tuned.gguf"), "llama", "token_embd");
    ASSERT_FALSE(stored);
    EXPECT_THAT(stored.error().message, HasSubstr("attn_q.weight.lora_b: holds a value that is infinite or no number"));
  }
}

// Whose scale would be none.
TEST_F(OddAdapters, HaveAFiniteAlpha) {
  for (const float value : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    braid::test::GgufWriter writer;
    writer.string("general.type", "adapter").string("general.architecture", "llama").string("adapter.type", "lora");
    writer.f32("adapter.lora.alpha", value);
    const auto stored = read_gguf_adapter(writer.source("tuned.gguf"), "llama", "token_embd");
    ASSERT_FALSE(stored);
    EXPECT_THAT(stored.error().message, HasSubstr("adapter.lora.alpha is"));
  }
  EXPECT_THAT(fault(R"({"r":4,"lora_alpha":NaN})"), HasSubstr("is not a JSON object: "));
}

TEST_F(OddAdapters, HaveTheTypesThatPeftWrites) {
  EXPECT_EQ(fault(R"({"peft_type":null,"r":4,"target_modules":"(","modules_to_save":["nobody"],"exclude_modules":"x","bias":"lora_only",)"
                  R"("layers_to_transform":[1],"layers_pattern":["layers"],"fan_in_fan_out":null,"lora_bias":false})"),
            "");
  const std::pair<const char*, const char*> faults[] = {{"\"r\":4.5", "'r' has 4.5, expected a whole number"},
                                                        {"\"r\":8,\"rank_pattern\":{\"q_proj\":4.5}", "'rank_pattern' has 4.5"},
                                                        {"\"target_modules\":5", "'target_modules' is neither"},
                                                        {"\"target_modules\":[\"q_proj\",5]", "'target_modules' is neither"},
                                                        {"\"modules_to_save\":{}", "'modules_to_save' is neither"},
                                                        {"\"exclude_modules\":true", "'exclude_modules' is neither"},
                                                        {"\"layers_pattern\":0", "'layers_pattern' is neither"},
                                                        {"\"layers_to_transform\":\"1\"", "'layers_to_transform' is neither"},
                                                        {"\"layers_to_transform\":[1.5]", "'layers_to_transform' is neither"},
                                                        {"\"fan_in_fan_out\":1", "'fan_in_fan_out' is neither"},
                                                        {"\"lora_bias\":\"x\"", "'lora_bias' is neither"},
                                                        {"\"bias\":\"some\"", "'bias' is \"some\", expected one of none, all"},
                                                        {"\"peft_type\":5", "'peft_type' is 5, expected \"LORA\""}};
  for (const auto& [member, said] : faults) EXPECT_THAT(fault(fmt::format("{{{}}}", member)), HasSubstr(said));
}

TEST_F(OddAdapters, AreNoPickles) {
  EXPECT_EQ(fault(R"({"r":4})"), "");
  std::filesystem::rename(folder_ / "adapter/adapter_model.safetensors", folder_ / "adapter/adapter_model.bin");
  const auto stored = read_adapter(folder_ / "adapter", {model_->shape(), base_.path()});
  ASSERT_FALSE(stored);
  EXPECT_THAT(stored.error().message, HasSubstr("adapter_model.bin): save the adapter as safetensors"));
}

// A and B in each other's place, and a rank that nobody has.
TEST_F(OddAdapters, SayWhichFactorIsNone) {
  tensors_.rename("lora_A", "lora_C");
  tensors_.rename("lora_B", "lora_A");
  tensors_.rename("lora_C", "lora_B");
  EXPECT_THAT(fault(R"({"r":4})"), HasSubstr("q_proj.lora_B.weight: has the rank 32, and adapter_config.json says 4"));
  add("model.layers.1.self_attn.q_proj.lora_A.weight", {1025, 32});
  add("model.layers.1.self_attn.q_proj.lora_B.weight", {64, 1025});
  EXPECT_THAT(fault(R"({"r":1025})"), HasSubstr("q_proj.lora_B.weight: found shape [64, 1025], expected a rank of 1 to 1024"));
  EXPECT_THAT(fault(R"({"r":4,"rank_pattern":{"q_proj":0}})"), HasSubstr("'rank_pattern' has no number of 1 to"));
}

}  // namespace
}  // namespace braid::model::test::adapting
