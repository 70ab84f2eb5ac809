// Adapters against what the base computes with them merged into its weights.
#include "model/adapter_harness.h"
#include "model/folder_models.h"
#include "model/forward_harness.h"
#include "model/mixture_model.h"
#include "support/gguf_writer.h"

#include <gmock/gmock.h>
#include <set>
#include <simdjson.h>
#include <utility>

namespace braid::model::test::adapting {
namespace {

using testing::HasSubstr;

// Every matrix of the layers of every family, whatever a file makes of its rows.
class AdaptersOfFamilies : public testing::TestWithParam<std::string> {};

TEST_P(AdaptersOfFamilies, ComputeWhatTheMergedModelDoes) {
  const auto& table = kernels::best_kernel_table();
  const files::HfFolder base = files::HfFolder::open(folder_path(GetParam())).value();
  const bool turned = GetParam() == "gpt2";
  std::mt19937 random(17);
  Tensors adapter;
  std::map<std::string, Values> merged;
  for (const auto& [name, tensor] : base.tensors()) {
    if (!is_adapted(name, tensor)) continue;
    Values weights = values_of(tensor);
    const std::int64_t outputs = turned ? weights.columns() : weights.rows();
    const std::int64_t inputs = turned ? weights.rows() : weights.columns();
    const Values down = random_values(random, {3, inputs}, 1.0F / std::sqrt(static_cast<float>(inputs)));
    const Values up = random_values(random, {outputs, 3}, 0.1F);
    merge(weights, up, down, 2.0F, turned);
    merged.emplace(name, std::move(weights));
    const std::string module = "base_model.model." + name.substr(0, name.size() - 7);
    adapter.add(module + ".lora_A.weight", down);
    adapter.add(module + ".lora_B.weight", up);
  }
  const braid::test::Folder folder;
  std::filesystem::create_directory(folder / "merged");
  std::filesystem::create_directory(folder / "adapter");
  write_folder(base, merged, folder / "merged", base.config());
  write_adapter(folder / "adapter", R"({"peft_type":"LORA","r":3,"lora_alpha":6,"target_modules":"all-linear"})", adapter);

  auto model = load(open_model(base.path()), table);
  const auto tuned = adapter_of(folder / "adapter", *model, base.path(), table);
  ASSERT_NE(tuned, nullptr);
  model->adapters().set(7, only(tuned));
  const DrivenAnswer plain = scores(*model);
  const DrivenAnswer adapted = scores(*model, 7);
  const DrivenAnswer expected = scores(*load(open_model(folder / "merged"), table));
  EXPECT_LT(distance(adapted, expected), 2e-3F);
  EXPECT_GT(distance(adapted, plain), 0.05F) << "it does something";
}

INSTANTIATE_TEST_SUITE_P(Models, AdaptersOfFamilies, testing::ValuesIn(adapted_families()), folder_test_name);

// An adapter of such modules for a base that is a file is refused with the name of one of its tensors.
void expect_named(const ModelShape& file, const std::map<std::string, std::pair<std::int64_t, std::int64_t>>& modules) {
  std::mt19937 random(5);
  Tensors adapter;
  for (const auto& [name, size] : modules) {
    adapter.add("base_model.model." + name + ".lora_A.weight", random_values(random, {2, size.second}, 0.1F));
    adapter.add("base_model.model." + name + ".lora_B.weight", random_values(random, {size.first, 2}, 0.1F));
  }
  const auto config = std::make_shared<const PeftConfig>(PeftConfig::parse(R"({"r":2})", "adapter_config.json").value());
  const auto stored = read_peft_tensors(config, files::owned_bytes(adapter.file(), "adapter_model.safetensors"), {file, ""});
  ASSERT_FALSE(stored);
  EXPECT_THAT(stored.error().message, HasSubstr("tensor base_model.model."));
  EXPECT_THAT(stored.error().message, HasSubstr("load the base from its folder"));
}

// A file says as much about its model as a folder does, as far as an adapter's names and rows depend on it.
TEST(AdapterNames, LieInAFileWhereTheFolderHasThem) {
  for (const std::string& name : adapted_families()) {
    const files::HfFolder folder = files::HfFolder::open(folder_path(name)).value();
    std::map<std::string, std::pair<std::int64_t, std::int64_t>> modules;
    for (const auto& [tensor, stored] : folder.tensors())
      if (is_adapted(tensor, stored)) {
        auto size = std::pair(stored.shape[0], stored.shape[1]);
        if (name == "gpt2") std::swap(size.first, size.second);
        modules.emplace(tensor.substr(0, tensor.size() - 7), size);
      }
    const ModelShape shape = describe_model(open_model(folder.path())).value();
    // Of these a folder says more than can be told from a shape: an adapter for such a file is a GGUF file, too.
    const bool is_latent = std::ranges::any_of(shape.layers, [](const LayerShape& layer) { return layer.attention.latent.has_value(); });
    const bool says_less = is_latent || shape.is_recurrent() || shape.architecture == "apertus";
    const Result<std::string> config = config_like(shape);
    ASSERT_TRUE(config) << name;
    const auto found = place_modules(files::HfFolder::of_config("a file", *config), modules);
    const auto expected = place_modules(folder, modules).value();
    const auto key = [](const ModulePlace& place) {
      return std::tuple(place.module, place.tensor, place.expert, place.order, place.columns, place.factors);
    };
    std::set<decltype(key(expected.front()))> of_file, of_folder;
    if (found)
      for (const ModulePlace& place : *found) of_file.insert(key(place));
    for (const ModulePlace& place : expected) of_folder.insert(key(place));
    EXPECT_EQ(found ? of_file == of_folder : says_less, true) << name << ": " << (found ? "elsewhere" : found.error().message);
    if (!found) expect_named(shape, modules);
  }
}

// A base with an adapter of some matrices, and the base that they make of it.
class AdapterKinds : public testing::Test {
 protected:
  AdapterKinds() {
    for (const char* name : {"adapter", "merged"}) std::filesystem::create_directory(folder_ / name);
  }

  static std::string module(int layer, const std::string& part) { return "model.layers." + std::to_string(layer) + "." + part; }

  Values base(const std::string& name) const { return values_of(base_.tensors().at(name + ".weight")); }

  // One of a rank, merged with that scale.
  void add(const std::string& name, std::int64_t rank, float scale, bool magnitudes = false) {
    Values weights = base(name);
    const Values down = random_values(random_, {rank, weights.columns()}, 0.2F);
    const Values up = random_values(random_, {weights.rows(), rank}, 0.2F);
    tensors_.add("base_model.model." + name + ".lora_A.weight", down);
    tensors_.add("base_model.model." + name + ".lora_B.weight", up);
    merge(weights, up, down, scale, false);
    if (magnitudes) {
      const Values lengths = random_values(random_, {weights.rows()}, 0.2F);
      Values shifted = lengths;
      for (float& length : shifted.at) length += 1.0F;
      tensors_.add("base_model.model." + name + ".lora_magnitude_vector", shifted);
      set_lengths(weights, shifted.at);
    }
    merged_.insert_or_assign(name + ".weight", std::move(weights));
  }

  void expect_merged(const std::string& config, const std::string& base_config = {}) {
    write_folder(base_, merged_, folder_ / "merged", base_config.empty() ? base_.config() : base_config);
    write_adapter(folder_ / "adapter", config, tensors_);
    for (const auto* table : available_tables()) {
      auto model = load(open_model(base_.path()), *table);
      const auto tuned = adapter_of(folder_ / "adapter", *model, base_.path(), *table);
      ASSERT_NE(tuned, nullptr);
      model->adapters().set(1, only(tuned));
      const DrivenAnswer adapted = scores(*model, 1);
      const DrivenAnswer expected = scores(*load(open_model(folder_ / "merged"), *table));
      EXPECT_LT(distance(adapted, expected), 2e-3F) << table->name;
      EXPECT_GT(distance(adapted, scores(*model)), 0.02F) << table->name;
      EXPECT_EQ(adapted.tokens, expected.tokens) << table->name;
    }
  }

  // What reading it says.
  std::string fault(const std::string& config) {
    write_adapter(folder_ / "adapter", config, tensors_);
    if (!model_) model_ = load(open_model(base_.path()), kernels::best_kernel_table());
    return fault_of(folder_ / "adapter", *model_, base_.path());
  }

  const files::HfFolder base_ = files::HfFolder::open(folder_path("mistral")).value();
  const braid::test::Folder folder_;
  std::mt19937 random_{23};
  Tensors tensors_;
  std::map<std::string, Values> merged_;
  std::unique_ptr<LanguageModel> model_;
};

TEST_F(AdapterKinds, ScaleByTheRootOfTheRank) {
  for (int layer = 0; layer < 3; ++layer) add(module(layer, "self_attn.q_proj"), 4, 6.0F / 2.0F);
  expect_merged(R"({"peft_type":"LORA","r":4,"lora_alpha":6,"use_rslora":true,"target_modules":["q_proj"]})");
}

TEST_F(AdapterKinds, KeepMagnitudesOfRows) {
  for (int layer = 0; layer < 3; ++layer)
    for (const char* part : {"self_attn.k_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.down_proj"})
      add(module(layer, part), 5, 2.0F, true);
  expect_merged(R"({"peft_type":"LORA","r":5,"lora_alpha":10,"use_dora":true,"target_modules":"all-linear"})");
}

TEST_F(AdapterKinds, HaveRanksAndScalesByPatterns) {
  add(module(0, "self_attn.q_proj"), 2, 8.0F / 2);
  add(module(1, "self_attn.q_proj"), 3, 9.0F / 3);
  add(module(2, "self_attn.q_proj"), 2, 8.0F / 2);
  for (int layer = 0; layer < 3; ++layer) add(module(layer, "mlp.up_proj"), 6, 3.0F / 6);
  expect_merged(R"({"peft_type":"LORA","r":2,"lora_alpha":8,"target_modules":["q_proj","up_proj"],
                    "rank_pattern":{"layers\\.1\\.self_attn.q_proj":3,"up_proj":6},
                    "alpha_pattern":{"model.layers.[1].self_attn.*":9,"^model.*up_proj":3}})");
}

TEST_F(AdapterKinds, ChangeBiases) {
  const std::string name = module(1, "self_attn.v_proj");
  add(name, 4, 1.0F);
  const Values bias = random_values(random_, {base(name).rows()}, 0.3F);
  tensors_.add("base_model.model." + name + ".bias", bias);
  tensors_.add("base_model.model." + name + ".lora_B.bias", Values{{base(name).rows()}, std::vector<float>(bias.at.size(), 0.5F)});
  Values whole = bias;
  for (float& value : whole.at) value += 0.5F;
  merged_.emplace(name + ".bias", whole);
  for (int layer = 0; layer < 3; ++layer)
    for (const char* part : {"q_proj", "k_proj", "v_proj", "o_proj"}) {
      const std::string other = module(layer, std::string("self_attn.") + part);
      if (other != name)
        merged_.emplace(other + ".bias", Values{{base(other).rows()}, std::vector<float>(static_cast<std::size_t>(base(other).rows()))});
    }
  std::string config = base_.config();
  config.replace(config.find('{'), 1, R"({"attention_bias":true,)");
  const std::size_t at = config.find("\"model_type\": \"mistral\"");
  ASSERT_NE(at, std::string::npos);
  config.replace(at, 23, "\"model_type\": \"llama\"");
  expect_merged(R"({"r":4,"lora_alpha":4,"bias":"lora_only","lora_bias":true,"target_modules":["v_proj"],"layers_to_transform":[1]})",
                config);
}

TEST_F(AdapterKinds, AdaptEmbeddingsAndHeads) {
  Values table = base("model.embed_tokens");
  const Values down = random_values(random_, {4, table.rows()}, 0.3F);
  const Values up = random_values(random_, {table.columns(), 4}, 0.3F);
  tensors_.add("base_model.model.model.embed_tokens.lora_embedding_A", down);
  tensors_.add("base_model.model.model.embed_tokens.lora_embedding_B", up);
  for (std::int64_t token = 0; token < table.rows(); ++token)
    for (std::int64_t i = 0; i < table.columns(); ++i)
      for (std::int64_t r = 0; r < 4; ++r)
        table.at[static_cast<std::size_t>(token * table.columns() + i)] +=
            0.5F * down.at[static_cast<std::size_t>(r * table.rows() + token)] * up.at[static_cast<std::size_t>(i * 4 + r)];
  merged_.emplace("model.embed_tokens.weight", table);
  add("lm_head", 4, 0.5F);
  expect_merged(R"({"r":4,"lora_alpha":2,"target_modules":["embed_tokens","lm_head"]})");
}

TEST_F(AdapterKinds, BringWholeEmbeddingsAndHeads) {
  for (const std::string name : {"lm_head", "model.embed_tokens"}) {
    Values whole = base(name);
    for (float& value : whole.at) value += std::normal_distribution<float>(0.0F, 0.1F)(random_);
    tensors_.add("base_model.model." + name + (name == "lm_head" ? ".modules_to_save.weight" : ".weight"), whole);
    merged_.emplace(name + ".weight", whole);
  }
  add(module(2, "mlp.down_proj"), 2, 1.0F);
  expect_merged(R"({"r":2,"lora_alpha":2,"target_modules":".*\\.2\\.mlp\\.down_proj","modules_to_save":["lm_head","embed_tokens"]})");
}

TEST_F(AdapterKinds, BringHeadsForClassesAndValues) {
  const std::string config = R"({"r":4,"modules_to_save":["score"]})";
  const Values weight = random_values(random_, {2, 32}, 1.0F);
  tensors_.add("base_model.model.score.modules_to_save.weight", weight);
  tensors_.add("base_model.model.score.modules_to_save.bias", Values{{2}, {0.5F, -1.0F}});
  ASSERT_EQ(fault(config), "");
  const auto adapter = adapter_of(folder_ / "adapter", *model_, base_.path(), kernels::best_kernel_table());
  ASSERT_EQ(adapter->head.classes(), 2);
  EXPECT_EQ(adapter->parameters, 66);
  EXPECT_FALSE(adapter->is_linear());
  std::vector<float> vector(32, 0.0F);
  vector[7] = 2.0F;
  std::vector<float> scores(2);
  adapter->head.apply(vector, scores);
  EXPECT_EQ(scores, (std::vector<float>{2.0F * weight.at[7] + 0.5F, 2.0F * weight.at[39] - 1.0F}));
  tensors_.remove("base_model.model.score.modules_to_save.bias");
  tensors_.remove("base_model.model.score.modules_to_save.weight");
  tensors_.add("base_model.model.v_head.summary.weight", random_values(random_, {1, 32}, 1.0F));
  EXPECT_EQ(fault(config), "");
  tensors_.add("base_model.model.v_head.summary.weight", random_values(random_, {1, 31}, 1.0F));
  EXPECT_THAT(fault(config), HasSubstr("v_head.summary.weight: found shape [1, 31], expected [classes, 32]"));
}

TEST_F(AdapterKinds, SayWhatDoesNotFit) {
  const std::string config = R"({"r":4,"lora_alpha":4,"target_modules":["q_proj"]})";
  const std::string q = "base_model.model.model.layers.1.self_attn.q_proj";
  for (int layer = 0; layer < 3; ++layer) add(module(layer, "self_attn.q_proj"), 4, 1.0F);
  EXPECT_EQ(fault(config), "");
  EXPECT_THAT(fault(R"({"r":8,"lora_alpha":4})"), HasSubstr("q_proj.lora_B.weight: has the rank 4, and adapter_config.json says 8"));
  EXPECT_THAT(fault(R"({"peft_type":"IA3"})"), HasSubstr("'peft_type' is \"IA3\", expected \"LORA\""));
  EXPECT_THAT(fault(R"({"r":0})"), HasSubstr("'r' is 0, expected a number of 1 to"));
  EXPECT_THAT(fault(R"({"r":4,"target_parameters":["mlp.experts.down_proj"]})"),
              HasSubstr("'target_parameters' has 'mlp.experts.down_proj', and no tensor is its"));
  EXPECT_THAT(fault(R"({"r":4,"target_parameters":7})"), HasSubstr("'target_parameters' is no list"));
  EXPECT_THAT(fault(R"({"r":4,"alpha_pattern":{"(":4}})"), HasSubstr("is no regular expression"));
  EXPECT_THAT(fault(R"({"r":4,"use_dora":true})"), HasSubstr("q_proj.lora_magnitude_vector: is missing"));
  EXPECT_THAT(fault("[]"), HasSubstr("is not a JSON object"));

  tensors_[q + ".lora_A.weight"].dtype = "I32";
  EXPECT_THAT(fault(config), HasSubstr(q + ".lora_A.weight: found type I32, expected F32, F16 or BF16"));
  tensors_.add(q + ".lora_A.weight", random_values(random_, {4, 40}, 1.0F));
  EXPECT_THAT(fault(config), HasSubstr(q + ".lora_A.weight: found shape [4, 40], expected [4, 32], as blk.1.attn_q of the base has it"));
  tensors_.add(q + ".lora_A.weight", random_values(random_, {4, 32}, 1.0F));
  tensors_.add(q + ".lora_B.weight", random_values(random_, {40, 4}, 1.0F));
  EXPECT_THAT(fault(config), HasSubstr(q + ".lora_B.weight: found shape [40, 4], expected [64, 4]"));
  tensors_.remove(q + ".lora_B.weight");
  EXPECT_THAT(fault(config), HasSubstr("layers.1.self_attn.q_proj.lora_B.weight: is missing"));
  tensors_.remove(q + ".lora_A.weight");
  EXPECT_THAT(fault(config), HasSubstr("blk.1.attn_q (as the base's file calls it): is missing"));
  EXPECT_EQ(fault(R"({"r":4,"lora_alpha":4,"target_modules":["q_proj"],"layers_to_transform":[0,2]})"), "");
  tensors_.add("base_model.model.model.layers.7.self_attn.q_proj.lora_A.weight", random_values(random_, {4, 32}, 1.0F));
  tensors_.add("base_model.model.model.layers.7.self_attn.q_proj.lora_B.weight", random_values(random_, {64, 4}, 1.0F));
  EXPECT_THAT(fault(R"({"r":4})"), HasSubstr("the base has no matrix or norm blk.7.attn_q"));
  tensors_.remove("base_model.model.model.layers.7.self_attn.q_proj.lora_A.weight");
  tensors_.remove("base_model.model.model.layers.7.self_attn.q_proj.lora_B.weight");
  tensors_.add("base_model.model.model.layers.0.mlp.up_proj.ia3_l", random_values(random_, {32}, 1.0F));
  EXPECT_THAT(fault(R"({"r":4})"), HasSubstr("up_proj.ia3_l: is no part of a LoRA"));
}

// The first layer's number is no "nothing".
TEST_F(AdapterKinds, AreOfTheLayersThatTheyName) {
  add(module(0, "self_attn.q_proj"), 4, 1.0F);
  for (const char* layers : {"0", "[0]"})
    EXPECT_EQ(fault(fmt::format(R"({{"r":4,"lora_alpha":4,"target_modules":["q_proj"],"layers_to_transform":{}}})", layers)), "") << layers;
  for (const char* layers : {"null", "[]"})
    EXPECT_THAT(fault(fmt::format(R"({{"r":4,"target_modules":["q_proj"],"layers_to_transform":{}}})", layers)), HasSubstr("is missing"))
        << layers;
}

// Of a model without its head, or within another one.
TEST_F(AdapterKinds, AreFoundUnderAllNamesOfTheWholeModel) {
  const std::string config = R"({"r":4,"lora_alpha":4,"target_modules":["q_proj"]})";
  for (int layer = 0; layer < 3; ++layer) add(module(layer, "self_attn.q_proj"), 4, 1.0F);
  std::string before = "base_model.model.model.layers.";
  for (const char* after :
       {"language_model.model.layers.", "base_model.model.model.language_model.layers.", "layers.", "base_model.model.layers."}) {
    tensors_.rename(std::exchange(before, after), after);
    EXPECT_EQ(fault(config), "") << after;
  }
  expect_merged(config);
  tensors_.rename(before, "base_model.model.visual.layers.");
  EXPECT_THAT(fault(config), HasSubstr("visual.layers.0.self_attn.q_proj.lora_A.weight: "));
}

// Some ways to begin take from the base's weights what the adapter has.
TEST_F(AdapterKinds, AreReadWhereTheyBeganBesideTheWholeBase) {
  for (int layer = 0; layer < 3; ++layer) add(module(layer, "self_attn.q_proj"), 4, 1.0F);
  const auto with = [&](const char* beginning) { return fault(fmt::format(R"({{"r":4,"init_lora_weights":{}}})", beginning)); };
  for (const char* beside : {"true", "false", "null", "\"gaussian\"", "\"eva\"", "\"orthogonal\""}) EXPECT_EQ(with(beside), "") << beside;
  for (const char* within : {"\"pissa\"", "\"pissa_niter_16\"", "\"OLoRA\"", "\"corda\"", "\"loftq\"", "\"lora_ga\""})
    EXPECT_THAT(with(within), HasSubstr("by which a part of the base's weights is in the adapter")) << within;
  EXPECT_THAT(with("\"some-way\""), HasSubstr("'init_lora_weights' is \"some-way\", and whether that leaves the base's weights"));
  EXPECT_THAT(with("7"), HasSubstr("'init_lora_weights' is 7"));
}

// The same sums from a GGUF file, whose rows lie as the base's.
TEST_F(AdapterKinds, AreTheSameFromAGgufFile) {
  for (int layer = 0; layer < 3; ++layer) add(module(layer, "self_attn.q_proj"), 4, 1.0F);
  write_adapter(folder_ / "adapter", R"({"r":4,"lora_alpha":2})", tensors_);
  const auto& table = kernels::best_kernel_table();
  auto model = load(open_model(base_.path()), table);
  const StoredAdapter stored = read_adapter(folder_ / "adapter", {model->shape(), base_.path()}).value();
  braid::test::GgufWriter writer;
  writer.string("general.type", "adapter").string("general.architecture", "llama").string("adapter.type", "lora");
  writer.f32("adapter.lora.alpha", 2.0F);
  for (const StoredMatrix& matrix : stored.matrices) {
    std::vector<std::byte> up;  // in the base's order
    for (const std::int32_t row : matrix.order) {
      const auto bytes = matrix.up.bytes.subspan(static_cast<std::size_t>(row) * 16, 16);
      up.insert(up.end(), bytes.begin(), bytes.end());
    }
    writer.tensor(matrix.name + ".weight.lora_a", 0, {32, 4}, {matrix.down.bytes.begin(), matrix.down.bytes.end()});
    writer.tensor(matrix.name + ".weight.lora_b", 0, {4, 64}, up);
  }
  const auto source = writer.source("tuned.gguf");
  write_file(folder_ / "tuned.gguf", std::vector<std::byte>(source->bytes().begin(), source->bytes().end()));
  model->adapters().set(1, only(build_adapter(stored, model->shape(), *model->first()->weights, table).value()));
  model->adapters().set(2, only(adapter_of(folder_ / "tuned.gguf", *model, base_.path(), table)));
  const DrivenAnswer peft = scores(*model, 1);
  const DrivenAnswer gguf = scores(*model, 2);
  EXPECT_EQ(distance(peft, gguf), 0.0F);
  EXPECT_EQ(peft.logprobs, gguf.logprobs);
  EXPECT_GT(distance(peft, scores(*model)), 0.02F);
}

// Two at once, with scales, are their sum.
TEST_F(AdapterKinds, AddUpWithScales) {
  for (int layer = 0; layer < 3; ++layer) add(module(layer, "mlp.gate_proj"), 4, 1.0F);
  write_adapter(folder_ / "adapter", R"({"r":4,"lora_alpha":4})", tensors_);
  const auto& table = kernels::best_kernel_table();
  auto model = load(open_model(base_.path()), table);
  const auto tuned = adapter_of(folder_ / "adapter", *model, base_.path(), table);
  ASSERT_NE(tuned, nullptr);
  using Parts = std::vector<AdapterSet::Part>;
  model->adapters().set(1, only(tuned));
  model->adapters().set(2, std::make_shared<AdapterSet>(Parts{{tuned, 0.25F}, {tuned, 0.75F}}));
  model->adapters().set(3, only(tuned, 0.0F));
  EXPECT_LT(distance(scores(*model, 1), scores(*model, 2)), 1e-3F);
  EXPECT_EQ(distance(scores(*model, 3), scores(*model)), 0.0F);
  EXPECT_GT(distance(scores(*model, 1), scores(*model)), 0.02F);
}

// Of experts, in each of them and in the router.
TEST(Adapters, AdaptEachExpert) {
  const MixtureModel mixture;
  const files::GgufFile file = mixture.file();
  const auto& table = kernels::best_kernel_table();
  constexpr std::int64_t kWidth = MixtureModel::kWidth;
  auto model = load(file, table);
  braid::test::GgufWriter writer;
  writer.string("general.type", "adapter").string("general.architecture", "qwen2moe").string("adapter.type", "lora");
  std::mt19937 random(9);
  const auto bytes_of = [](const Values& values) {
    const auto* begin = reinterpret_cast<const std::byte*>(values.at.data());
    return std::vector<std::byte>(begin, begin + values.at.size() * 4);
  };
  for (const char* part : {"ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"}) {
    const std::string name = "blk.1." + std::string(part) + ".weight";
    writer.tensor(name + ".lora_a", 0, {kWidth, 2, 8}, bytes_of(random_values(random, {8, 2, kWidth}, 0.1F)));
    writer.tensor(name + ".lora_b", 0, {2, kWidth, 8}, bytes_of(random_values(random, {8, kWidth, 2}, 0.1F)));
  }
  const auto stored = read_gguf_adapter(writer.source("experts.gguf"), model->shape().architecture, model->shape().input.name).value();
  const auto tuned = build_adapter(stored, model->shape(), *model->first()->weights, table).value();
  EXPECT_EQ(tuned->matrices.size(), 24U);
  model->adapters().set(1, only(tuned));

  // The base with them merged.
  std::vector<files::GgufTensor> tensors = file.tensors();
  std::vector<std::vector<std::byte>> owned;
  for (files::GgufTensor& tensor : tensors) {
    if (!tensor.name.starts_with("blk.1.ffn_") || !tensor.name.ends_with("_exps.weight")) continue;
    std::vector<std::byte>& bytes = owned.emplace_back(tensor.bytes.begin(), tensor.bytes.end());
    for (const StoredMatrix& matrix : stored.matrices) {
      if (matrix.name + ".weight" != tensor.name) continue;
      Values weights{{kWidth, kWidth}, std::vector<float>(kWidth * kWidth)};
      std::byte* at = bytes.data() + static_cast<std::size_t>(matrix.expert) * weights.at.size() * 4;
      std::memcpy(weights.at.data(), at, weights.at.size() * 4);
      Values up{{kWidth, 2}, std::vector<float>(2 * kWidth)}, down{{2, kWidth}, std::vector<float>(2 * kWidth)};
      std::memcpy(up.at.data(), matrix.up.bytes.data(), up.at.size() * 4);
      std::memcpy(down.at.data(), matrix.down.bytes.data(), down.at.size() * 4);
      merge(weights, up, down, 1.0F, false);
      std::memcpy(at, weights.at.data(), weights.at.size() * 4);
    }
    tensor.bytes = bytes;
  }
  files::GgufContents contents{.sources = {braid::files::owned_bytes({}, "merged")}, .metadata = file.metadata(), .tensors = tensors};
  auto merged = load(files::GgufFile::from_contents(std::move(contents)), table);
  EXPECT_LT(distance(scores(*model, 1), scores(*merged)), 2e-3F);
  EXPECT_GT(distance(scores(*model, 1), scores(*model)), 0.02F);
}

// What a quantised base means: its values as floats, with the adapter merged into them. Only activations are rounded otherwise, which the
// bases alone show.
class AdaptersOfQuantisedBases : public testing::TestWithParam<bool> {};

TEST_P(AdaptersOfQuantisedBases, ComputeWhatTheDequantisedAndMergedModelDoes) {
  const auto& table = kernels::best_kernel_table();
  const files::GgufFile file = files::GgufFile::open(BRAID_SOURCE_DIR "/models/demo-draft-q8_0.gguf").value();
  auto model = load(file, table);
  std::mt19937 random(31);
  Tensors adapter;
  std::vector<std::vector<std::byte>> plain_bytes, merged_bytes;
  std::vector<files::GgufTensor> plain = file.tensors(), merged = file.tensors();
  const auto put = [](files::GgufTensor& tensor, const Values& values, std::vector<std::vector<std::byte>>& owned) {
    const auto* begin = reinterpret_cast<const std::byte*>(values.at.data());
    owned.emplace_back(begin, begin + values.at.size() * 4);
    tensor.type = static_cast<std::uint32_t>(kernels::WeightType::kF32);
    tensor.bytes = owned.back();
  };
  for (std::size_t i = 0; i < plain.size(); ++i) {
    if (static_cast<kernels::WeightType>(plain[i].type) != kernels::WeightType::kQ8_0) continue;
    Values weights{{plain[i].shape[1], plain[i].shape[0]}, {}};
    weights.at.resize(static_cast<std::size_t>(weights.rows() * weights.columns()));
    kernels::dequantize_row(kernels::WeightType::kQ8_0, plain[i].bytes.data(), static_cast<std::int64_t>(weights.at.size()),
                            weights.at.data());
    put(plain[i], weights, plain_bytes);
    for (const auto& [part, module] : {std::pair{"attn_v", "self_attn.v_proj"}, {"ffn_up", "mlp.up_proj"}, {"ffn_down", "mlp.down_proj"}}) {
      if (plain[i].name.find(part) == std::string::npos) continue;
      const std::string name = "base_model.model.model.layers." + plain[i].name.substr(4, plain[i].name.find('.', 4) - 4) + "." + module;
      const Values down = random_values(random, {4, weights.columns()}, 1.0F / std::sqrt(static_cast<float>(weights.columns())));
      const Values up = random_values(random, {weights.rows(), 4}, 0.1F);
      adapter.add(name + ".lora_A.weight", down);
      adapter.add(name + ".lora_B.weight", up);
      merge(weights, up, down, 2.0F, false);
      if (!GetParam()) continue;
      Values lengths = random_values(random, {weights.rows()}, 0.1F);
      for (float& length : lengths.at) length += 1.0F;
      adapter.add(name + ".lora_magnitude_vector", lengths);
      set_lengths(weights, lengths.at);
    }
    put(merged[i], weights, merged_bytes);
  }
  const auto floats = [&](std::vector<files::GgufTensor> tensors) {
    return load(files::GgufFile::from_contents(
                    {.sources = {braid::files::owned_bytes({}, "floats")}, .metadata = file.metadata(), .tensors = std::move(tensors)}),
                table);
  };
  const braid::test::Folder folder;
  const std::string config = R"({"peft_type":"LORA","r":4,"lora_alpha":8,"target_modules":["v_proj","up_proj","down_proj"]%})";
  write_file(folder / "adapter_config.json", config.substr(0, config.find('%')) + (GetParam() ? R"(,"use_dora":true})" : "}"));
  write_file(folder / "adapter_model.safetensors", adapter.file());
  const auto tuned = adapter_of(folder.path(), *model, "", table);
  ASSERT_NE(tuned, nullptr);
  model->adapters().set(1, only(tuned));
  const float rounding = distance(scores(*model), scores(*floats(plain)));
  EXPECT_GT(rounding, 0.0F);
  EXPECT_LT(distance(scores(*model, 1), scores(*floats(merged))), 4.0F * rounding);
  EXPECT_GT(distance(scores(*model, 1), scores(*model)), 10.0F * rounding) << "it does something";
}

INSTANTIATE_TEST_SUITE_P(Kinds, AdaptersOfQuantisedBases, testing::Bool(), [](const auto& kind) { return kind.param ? "Dora" : "Lora"; });

// Files from outside, cut and changed anywhere, are read or refused.
TEST_F(AdapterKinds, SurviveChangedFiles) {
  for (int layer = 0; layer < 3; ++layer) add(module(layer, "self_attn.q_proj"), 4, 1.0F);
  const auto& table = kernels::best_kernel_table();
  auto model = load(open_model(base_.path()), table);
  const std::string config = R"({"peft_type":"LORA","r":4,"lora_alpha":2,"rank_pattern":{"q.*":4},"target_modules":["q_proj"]})";
  const std::vector<std::byte> file = tensors_.file();
  std::mt19937 random(31);
  int read = 0;
  for (int round = 0; round < 400; ++round) {
    std::vector<std::byte> bytes = file;
    if (round % 4 == 0) bytes.resize(random() % bytes.size());
    for (int i = 0; i < 3 && !bytes.empty(); ++i)
      bytes[random() % std::min<std::size_t>(bytes.size(), 900)] = static_cast<std::byte>(random() % 256);
    std::string text = config;
    if (round % 3 == 0) text[random() % text.size()] = static_cast<char>(random() % 128);
    auto parsed = PeftConfig::parse(text, "config");
    if (!parsed) continue;
    const auto stored = read_peft_tensors(std::make_shared<const PeftConfig>(std::move(*parsed)),
                                          braid::files::owned_bytes(bytes, "changed"), {model->shape(), base_.path()});
    if (stored && build_adapter(*stored, model->shape(), *model->first()->weights, table)) ++read;
  }
  EXPECT_LT(read, 400);
}

std::string reference_path(const std::string& name) { return BRAID_SOURCE_DIR "/test/model/reference/adapters/" + name; }

// What PEFT computes with adapters that it has saved (reference/make_adapters.py).
class AdapterReferences : public testing::TestWithParam<std::string> {};

TEST_P(AdapterReferences, AreReproducedOnEveryTier) {
  simdjson::dom::parser parser;
  const simdjson::dom::element reference = parser.load(reference_path(GetParam()) + "/reference.json");
  const std::string base = folder_path(std::string(std::string_view(reference["base"])));
  const auto ids_of = [&](const char* key) {
    std::vector<TokenId> ids;
    for (const std::int64_t id : simdjson::dom::array(reference[key])) ids.push_back(static_cast<TokenId>(id));
    return ids;
  };
  const std::vector<TokenId> greedy = ids_of("greedy");
  for (const auto* table : available_tables()) {
    auto model = load(open_model(base), *table);
    const auto tuned = adapter_of(reference_path(GetParam()), *model, base, *table);
    ASSERT_NE(tuned, nullptr);
    model->adapters().set(1, only(tuned));
    DrivenRequest request{.prompt = ids_of("input_ids"),
                          .sampling = {.temperature = 0.0F, .top_logprobs = 0},
                          .stop = {.max_tokens = static_cast<std::int32_t>(greedy.size()), .stop_token_ids = {}}};
    request.adapter = 1;
    EXPECT_EQ(StepDriver(*model, kAdapterBlocks).run({request}, {}).front().tokens, greedy) << table->name;
    request.adapter = 0;
    EXPECT_NE(StepDriver(*model, kAdapterBlocks).run({request}, {}).front().tokens, greedy) << "it does something";
  }
}

std::vector<std::string> adapter_references() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(reference_path(""))) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Adapters, AdapterReferences, testing::ValuesIn(adapter_references()), folder_test_name);

}  // namespace
}  // namespace braid::model::test::adapting
