// Adapters that bring matrices and norms whole (modules_to_save), against models whose files have them: the same bits.
#include "model/adapter_harness.h"
#include "model/adapters/matrices.h"
#include "model/forward_harness.h"
#include "model/loaded_tensors.h"
#include "model/mixture_model.h"

#include <gmock/gmock.h>
#include <map>
#include <set>
#include <span>

namespace braid::model::test::adapting {
namespace {

using testing::HasSubstr;

void expect_same_bits(const DrivenAnswer& a, const DrivenAnswer& b, const std::string& what) {
  EXPECT_EQ(a.tokens, b.tokens) << what;
  EXPECT_EQ(a.logprobs, b.logprobs) << what;
  EXPECT_EQ(distance(a, b), 0.0F) << what;
}

// A base, what an adapter of it brings whole, and the base with that in the place of its own.
class WholeWeights : public testing::Test {
 protected:
  explicit WholeWeights(const std::string& name = "mistral") : base_(files::HfFolder::open(folder_path(name)).value()) {
    for (const char* each : {"adapter", "merged"}) std::filesystem::create_directory(folder_ / each);
  }

  // Other values for a tensor of the base.
  void save(const std::string& name) {
    Values values = values_of(base_.tensors().at(name));
    double squares = 0.0;
    for (const float value : values.at) squares += double{value} * value;
    const auto size = static_cast<float>(std::sqrt(squares / static_cast<double>(values.at.size())) + 0.05);
    for (float& value : values.at) value += std::normal_distribution<float>(0.0F, 0.2F * size)(random_);
    tensors_.add("base_model.model." + name, values);
    merged_.insert_or_assign(name, std::move(values));
  }

  void write(const std::string& config = R"({"r":4,"modules_to_save":["any"]})") {
    write_folder(base_, merged_, folder_ / "merged", base_.config());
    write_adapter(folder_ / "adapter", config, tensors_);
  }

  void expect_merged(const kernels::KernelTable& table) {
    auto model = load(open_model(base_.path()), table);
    const auto tuned = adapter_of(folder_ / "adapter", *model, base_.path(), table);
    ASSERT_NE(tuned, nullptr);
    EXPECT_FALSE(tuned->is_linear());
    model->adapters().set(1, only(tuned));
    const DrivenAnswer adapted = scores(*model, 1);
    expect_same_bits(adapted, scores(*load(open_model(folder_ / "merged"), table)), table.name);
    EXPECT_GT(distance(adapted, scores(*model)), 0.02F) << table.name << ": it does something";
  }

  // What reading it says.
  std::string fault(const std::string& folder_of_base) {
    write();
    if (!model_) model_ = load(open_model(base_.path()), kernels::best_kernel_table());
    return fault_of(folder_ / "adapter", *model_, folder_of_base);
  }

  const files::HfFolder base_;
  const braid::test::Folder folder_;
  std::mt19937 random_{29};
  Tensors tensors_;
  std::map<std::string, Values> merged_;
  std::unique_ptr<LanguageModel> model_;
};

// All matrices and norms of all layers of every family at once, whatever a file makes of them.
class WholeWeightsOfFamilies : public WholeWeights, public testing::WithParamInterface<std::string> {
 protected:
  WholeWeightsOfFamilies() : WholeWeights(GetParam()) {}
};

TEST_P(WholeWeightsOfFamilies, GiveTheBitsOfTheModelWhoseFileHasThem) {
  for (const auto& [name, tensor] : base_.tensors())
    if (is_adapted(name, tensor) || is_of_norm(name, tensor)) save(name);
  write();
  expect_merged(kernels::best_kernel_table());
}

INSTANTIATE_TEST_SUITE_P(Models, WholeWeightsOfFamilies, testing::ValuesIn(adapted_families()), folder_test_name);

TEST_F(WholeWeights, GiveThemOnEveryTier) {
  for (const char* part : {"self_attn.o_proj", "mlp.up_proj", "mlp.down_proj", "post_attention_layernorm"})
    save("model.layers.1." + std::string(part) + ".weight");
  save("model.norm.weight");
  write();
  for (const auto* table : available_tables()) expect_merged(*table);
}

// Beside what has a rank, in the same layer and in others.
TEST_F(WholeWeights, StandBesideLowRanks) {
  save("model.layers.0.mlp.down_proj.weight");
  save("model.layers.2.input_layernorm.weight");
  for (const char* name : {"model.layers.0.mlp.up_proj", "model.layers.1.mlp.down_proj"}) {
    Values weights = values_of(base_.tensors().at(std::string(name) + ".weight"));
    const Values down = random_values(random_, {4, weights.columns()}, 0.2F);
    const Values up = random_values(random_, {weights.rows(), 4}, 0.2F);
    tensors_.add("base_model.model." + std::string(name) + ".lora_A.weight", down);
    tensors_.add("base_model.model." + std::string(name) + ".lora_B.weight", up);
    merge(weights, up, down, 2.0F, false);
    merged_.insert_or_assign(std::string(name) + ".weight", std::move(weights));
  }
  write(R"({"r":4,"lora_alpha":8,"modules_to_save":["any"]})");
  const auto& table = kernels::best_kernel_table();
  auto model = load(open_model(base_.path()), table);
  model->adapters().set(1, only(adapter_of(folder_ / "adapter", *model, base_.path(), table)));
  EXPECT_LT(distance(scores(*model, 1), scores(*load(open_model(folder_ / "merged"), table))), 2e-3F);
}

// Matrices keep the type in which the adapter has them, whatever the base's is.
TEST(WholeWeightsOfQuantisedBases, AreComputedInTheTypeThatTheyCameIn) {
  const auto& table = kernels::best_kernel_table();
  const files::GgufFile file = files::GgufFile::open(BRAID_SOURCE_DIR "/models/demo-draft-q8_0.gguf").value();
  std::mt19937 random(37);
  Tensors adapter;
  std::vector<files::GgufTensor> merged = file.tensors();
  std::vector<std::vector<std::byte>> owned;
  owned.reserve(merged.size());
  for (files::GgufTensor& tensor : merged) {
    const std::map<std::string, std::string> modules = {{"blk.0.attn_q", "model.layers.0.self_attn.q_proj"},
                                                        {"blk.0.ffn_down", "model.layers.0.mlp.down_proj"},
                                                        {"blk.0.ffn_norm", "model.layers.0.post_attention_layernorm"},
                                                        {"output_norm", "model.norm"}};
    const auto module = modules.find(tensor.name.substr(0, tensor.name.rfind('.')));
    if (module == modules.end()) continue;
    Values values{{tensor.shape.rbegin(), tensor.shape.rend()}, {}};
    std::int64_t count = 1;
    for (const std::int64_t size : tensor.shape) count *= size;
    values.at.resize(static_cast<std::size_t>(count));
    kernels::dequantize_row(static_cast<kernels::WeightType>(tensor.type), tensor.bytes.data(), count, values.at.data());
    for (float& value : values.at) value *= std::normal_distribution<float>(1.0F, 0.3F)(random);
    const auto* begin = reinterpret_cast<const std::byte*>(values.at.data());
    owned.emplace_back(begin, begin + values.at.size() * 4);
    tensor.type = static_cast<std::uint32_t>(kernels::WeightType::kF32);
    tensor.bytes = owned.back();
    // Rows of queries lie in pairs in a file.
    const std::int32_t heads = describe_model(file)->layers.front().attention.heads;
    if (module->first == "blk.0.attn_q") {
      const std::int64_t dim = values.rows() / heads;
      Values apart = values;
      for (std::int64_t row = 0; row < values.rows(); ++row) {
        const std::int64_t in_head = row % dim;
        const std::int64_t from = row - in_head + in_head % 2 * (dim / 2) + in_head / 2;
        std::copy_n(values.at.data() + row * values.columns(), values.columns(), apart.at.data() + from * values.columns());
      }
      values = std::move(apart);
    }
    adapter.add("base_model.model." + module->second + ".weight", values);
  }
  ASSERT_EQ(owned.size(), 4U);
  const braid::test::Folder folder;
  write_file(folder / "adapter_config.json", std::string(R"({"r":4,"modules_to_save":["any"]})"));
  write_file(folder / "adapter_model.safetensors", adapter.file());
  auto model = load(file, table);
  const auto tuned = adapter_of(folder.path(), *model, "", table);
  ASSERT_NE(tuned, nullptr);
  model->adapters().set(1, only(tuned));
  const DrivenAnswer adapted = scores(*model, 1);
  auto other = load(files::GgufFile::from_contents(
                        {.sources = {braid::files::owned_bytes({}, "merged")}, .metadata = file.metadata(), .tensors = std::move(merged)}),
                    table);
  expect_same_bits(adapted, scores(*other), "merged");
  EXPECT_GT(distance(adapted, scores(*model)), 0.1F) << "it does something";
}

// Experts run what was added for them in every pass: the output of the one before is not among that, whose adapter may be gone.
TEST(WholeWeightsOfExperts, AreForgottenOnceTheyAreComputed) {
  const auto& table = kernels::best_kernel_table();
  auto model = load(MixtureModel().file(), table);
  const DrivenAnswer plain = scores(*model);
  std::mt19937 random(43);
  const Values whole = random_values(random, {MixtureModel::kVocab, MixtureModel::kWidth}, 0.3F);
  StoredAdapter stored{.name = "whole", .sources = {}, .matrices = {}};
  StoredMatrix& output = stored.matrices.emplace_back();
  output.name = model->shape().output.name;
  output.replacement = {
      .name = "lm_head.weight", .type = kernels::WeightType::kF32, .shape = whole.shape, .bytes = std::as_bytes(std::span(whole.at))};
  model->adapters().set(1, only(build_adapter(stored, model->shape(), *model->first()->weights, table).value()));
  EXPECT_GT(distance(scores(*model, 1), plain), 0.02F);
  model->adapters().set(1, nullptr);
  expect_same_bits(scores(*model), plain, "after it");
}

TEST_F(WholeWeights, SayWhatDoesNotFit) {
  const std::string layer = "base_model.model.model.layers.1.";
  tensors_.add(layer + "mlp.down_proj.weight", random_values(random_, {32, 40}, 1.0F));
  EXPECT_THAT(fault(base_.path()), HasSubstr("mlp.down_proj.weight: found shape [32, 40], expected [32, 48], as the base has it"));
  EXPECT_THAT(fault(""), HasSubstr("mlp.down_proj.weight: found shape [32, 40], expected [32, 48], as blk.1.ffn_down of the base has it"));
  tensors_.remove(layer + "mlp.down_proj.weight");
  tensors_.add(layer + "input_layernorm.weight", random_values(random_, {31}, 1.0F));
  EXPECT_THAT(fault(base_.path()), HasSubstr("input_layernorm.weight: found shape [31], expected [32], as the base has it"));
  EXPECT_THAT(fault(""),
              HasSubstr("input_layernorm.weight: found shape [31], expected 32 values, as blk.1.attn_norm of the base has them"));
  tensors_.add(layer + "input_layernorm.weight", random_values(random_, {32}, 1.0F));
  EXPECT_EQ(fault(base_.path()), "");
  tensors_.add(layer + "input_layernorm.bias", random_values(random_, {32}, 1.0F));
  EXPECT_THAT(fault(""), HasSubstr("input_layernorm.bias: blk.1.attn_norm of the base is a norm without a bias"));
  tensors_.remove(layer + "input_layernorm.bias");
  tensors_.remove(layer + "input_layernorm.weight");
  tensors_.add(layer + "input_layernorm.lora_A.weight", random_values(random_, {4, 32}, 1.0F));
  tensors_.add(layer + "input_layernorm.lora_B.weight", random_values(random_, {32, 4}, 1.0F));
  EXPECT_THAT(fault(base_.path()), HasSubstr("input_layernorm.lora_A.weight: blk.1.attn_norm of the base is a norm, which has no matrix"));
}

class WholeNormsOfHeads : public WholeWeights {
 protected:
  WholeNormsOfHeads() : WholeWeights("stablelm-parallel") {}
};

TEST_F(WholeNormsOfHeads, AreThereOfAllHeads) {
  const std::string norms = "model.layers.0.self_attn.q_layernorm.norms.";
  save(norms + "0.weight");
  EXPECT_THAT(fault(base_.path()), HasSubstr(norms + "1.weight: is missing; base_model.model." + norms + "0.weight is there"));
  for (int head = 1; base_.tensors().contains(norms + std::to_string(head) + ".weight"); ++head)
    save(norms + std::to_string(head) + ".weight");
  EXPECT_EQ(fault(base_.path()), "");
  EXPECT_EQ(fault(""), "");
  tensors_.add("base_model.model." + norms + "1.bias", random_values(random_, {8}, 1.0F));
  EXPECT_THAT(fault(base_.path()), HasSubstr("norms.1.bias: blk.0.attn_q_norm of the base is a norm without a bias"));
  tensors_.remove("base_model.model." + norms + "1.bias");
  tensors_.add("base_model.model." + norms + "1.weight", random_values(random_, {3}, 1.0F));
  EXPECT_THAT(fault(base_.path()), HasSubstr("norms.1.weight: is not as many weights as the other heads' norms"));
  tensors_.add("base_model.model." + norms + "1.weight", values_of(base_.tensors().at(norms + "1.weight")));
  tensors_.add("base_model.model." + norms + "64.weight", values_of(base_.tensors().at(norms + "1.weight")));
  EXPECT_THAT(fault(base_.path()), HasSubstr("norms.64.weight: is of no head"));
}

// Every norm that is computed with has a number of its own, under which an adapter may have another.
TEST(ModelNorms, AreAllFound) {
  for (const std::string& name : adapted_families()) {
    const files::GgufFile file = open_folder_model(name);
    ModelShape shape = describe_model(file).value();
    shape.prediction.reset();  // nobody adapts what guesses
    kernels::ThreadTeam team(1);
    const Weights weights = load_weights(file, shape, shape.context_length, kernels::best_kernel_table(), team, {}).value();
    std::set<std::uint32_t> numbers;
    for (const ModelNorm& norm : norms_of(shape, weights)) numbers.insert(norm.weights->number);
    EXPECT_EQ(numbers.size(), weights.norms) << name;
    EXPECT_EQ(numbers.contains(0), false) << name;
  }
}

// Half of a layer norm, and biases that are added to the base's, are of one revision of the base: with another one they are made anew.
TEST(WholeWeightsOfRevisions, AreMadeAnewWhereTheyFollowTheBase) {
  const auto& table = kernels::best_kernel_table();
  const files::HfFolder base = files::HfFolder::open(folder_path("gpt2")).value();
  const braid::test::Folder folder;
  for (const char* each : {"adapter", "merged"}) std::filesystem::create_directory(folder / each);
  std::mt19937 random(41);
  Tensors adapter, newer;
  std::map<std::string, Values> merged;
  const auto other = [&](const std::string& name, float deviation) {
    Values values = values_of(base.tensors().at(name));
    // Which any type of a file can hold.
    for (float& value : values.at) value = std::round((value + std::normal_distribution<float>(0.0F, deviation)(random)) * 32.0F) / 32.0F;
    return values;
  };
  for (const char* name : {"transformer.h.0.ln_1.bias", "transformer.h.1.attn.c_proj.bias"}) {
    const Values values = other(name, 0.5F);
    adapter.add("base_model.model." + std::string(name), values);
    merged.emplace(name, values);
    newer.add(name, other(name, 0.5F));  // which the adapter has its own of
  }
  const Values weight = other("transformer.h.0.ln_1.weight", 0.3F);
  newer.add("transformer.h.0.ln_1.weight", weight);
  merged.emplace("transformer.h.0.ln_1.weight", weight);
  write_folder(base, merged, folder / "merged", base.config());
  write_adapter(folder / "adapter", R"({"r":4,"bias":"all"})", adapter);

  auto model = load(open_model(base.path()), table);
  const auto first = adapter_of(folder / "adapter", *model, base.path(), table);
  ASSERT_NE(first, nullptr);
  EXPECT_TRUE(first->follows_weights());
  for (const auto& [name, values] : merged) {  // each of them is a half
    std::filesystem::create_directory(folder / name);
    Tensors alone;
    alone.add("base_model.model." + name, values);
    write_adapter(folder / name, R"({"r":4,"bias":"all"})", alone);
    const auto part = adapter_of(folder / name, *model, base.path(), table);
    ASSERT_NE(part, nullptr) << name;
    EXPECT_TRUE(part->follows_weights()) << name;
  }
  const auto tensors = newer_tensors(LoadedTensors::of(base).value(), files::owned_bytes(newer.file(), "newer"), true).value();
  const auto decoder = model->make_decoder(model->newer_weights(*model->first()->weights, tensors.file).value());
  const auto stored = read_adapter(folder / "adapter", {model->shape(), base.path()}).value();
  const auto remade = build_adapter(stored, model->shape(), *decoder->weights, table).value();
  EXPECT_EQ(remade->revision, first->revision);
  using Parts = std::vector<AdapterSet::Part>;
  model->adapters().set(1, std::make_shared<AdapterSet>(Parts{{remade, 1.0F}}, decoder));
  EXPECT_LT(distance(scores(*model, 1), scores(*load(open_model(folder / "merged"), table))), 1e-4F);
}

}  // namespace
}  // namespace braid::model::test::adapting
