// LoRA beside the last layer: what it makes of a text against the served model, and its derivatives against differences and torch.
#include "files/byte_source.h"
#include "kernels/select.h"
#include "model/adapter_models.h"
#include "model/folder_models.h"
#include "model/step_driver.h"
#include "model/training/tuned_layer.h"

#include <gmock/gmock.h>
#include <numeric>

namespace braid::model::test {
namespace {

using testing::HasSubstr;

constexpr std::int32_t kTrainingBlocks = 32;
constexpr std::size_t kAtOnce = 1'000'000'000;

const std::vector<std::string> kAllModules = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"};

// A tiny model, computed in float32 throughout.
struct Tuned {
  explicit Tuned(const std::string& name, LoraShape its_lora = {.rank = 2, .alpha = 6.0F, .modules = kAllModules})
      : path(folder_path(name)), lora(std::move(its_lora)) {
    LoadOptions options{.kv_type = kernels::KvType::kF32, .max_batch = 4, .end_tokens = {}, .progress = {}};
    options.packing.float_type = kernels::WeightType::kF32;
    model = LanguageModel::load(open_folder_model(name), table, options).value();
    model->allocate_kv(kTrainingBlocks).value();
  }

  AdaptedBase base() const { return {model->shape(), path}; }
  Result<std::shared_ptr<TunableLayer>> tune() const { return tune_last_layer(base(), *model->first(), table, lora); }

  std::vector<float> vector_of(std::vector<TokenId> text, Pooling pooling, PooledOutput output, std::uint32_t adapter = 0) {
    DrivenRequest request{.prompt = std::move(text), .sampling = {}, .stop = {.max_tokens = 0, .stop_token_ids = {}}};
    request.pooling = pooling;
    request.pooled_output = output;
    request.adapter = adapter;
    return StepDriver(*model, kTrainingBlocks).run({request}, {.slice = 5}).front().vector;
  }
  std::vector<float> inputs_of(const std::vector<TokenId>& text) { return vector_of(text, Pooling::kEach, PooledOutput::kLastInputs); }

  const std::string path;
  const LoraShape lora;
  const kernels::KernelTable& table = kernels::best_kernel_table();
  std::unique_ptr<LanguageModel> model;
};

std::vector<TokenId> random_text(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<TokenId> text(count);
  for (TokenId& id : text) id = static_cast<TokenId>(3 + random() % 110);
  return text;
}

std::vector<float> random_parameters(const TunableLayer& layer, std::uint32_t seed = 5) {
  std::mt19937 random(seed);
  return adapting::random_values(random, {static_cast<std::int64_t>(layer.parameter_count())}, 0.3F).at;
}

void finish(TunableLayer& layer, std::size_t work = kAtOnce) {
  while (!layer.is_over()) layer.advance(work);
}

void add_text(TunableLayer& layer, std::vector<float> inputs) {
  layer.begin_text(std::move(inputs));
  finish(layer);
}

double score_of(TunableLayer& layer, const std::vector<float>& parameters, std::size_t text = 0) {
  layer.begin_score(text, parameters);
  finish(layer);
  return layer.score();
}

std::vector<double> slope_of(TunableLayer& layer, const std::vector<float>& parameters, std::size_t text = 0, double factor = 1.0) {
  score_of(layer, parameters, text);
  std::vector<double> gradient(parameters.size(), 0.0);
  layer.begin_slope(factor, gradient);
  finish(layer);
  return gradient;
}

// As a job writes it.
std::shared_ptr<const Adapter> adapter_of(const Tuned& tuned, const TunableLayer& layer, const std::vector<float>& parameters) {
  const braid::test::Folder folder;
  adapting::Tensors tensors;
  for (const auto& [name, tensor] : layer.tensors(parameters)) tensors.add(name, {tensor.shape, tensor.floats});
  adapting::write_file(folder / "adapter_config.json", std::string(R"({"r": 2, "lora_alpha": 6, "modules_to_save": ["score"]})"));
  adapting::write_file(folder / "adapter_model.safetensors", tensors.file());
  const Result<StoredAdapter> stored = read_adapter(folder.path(), tuned.base());
  EXPECT_TRUE(stored) << (stored ? "" : stored.error().message);
  if (!stored) return nullptr;
  const auto built = build_adapter(*stored, tuned.model->shape(), *tuned.model->first()->weights, tuned.table);
  EXPECT_TRUE(built) << (built ? "" : built.error().message);
  return built ? *built : nullptr;
}

// Every family is trained as it is served, or refused with a reason.
class TunedFamilies : public testing::TestWithParam<std::string> {};

TEST_P(TunedFamilies, ScoreAsTheyAreServedOrAreRefused) {
  Tuned tuned(GetParam());
  const auto made = tuned.tune();
  if (!made) {
    EXPECT_EQ(made.error().code, ErrorCode::kUnsupported) << made.error().message;
    EXPECT_THAT(made.error().message, testing::AnyOf(HasSubstr("such as Llama"), HasSubstr("otherwise than Llama's")));
    return;
  }
  TunableLayer& layer = **made;
  const std::vector<TokenId> text = random_text(21, 3);
  add_text(layer, tuned.inputs_of(text));
  const std::vector<float> parameters = random_parameters(layer);
  const auto adapter = adapter_of(tuned, layer, parameters);
  ASSERT_NE(adapter, nullptr);
  tuned.model->adapters().set(7, adapting::only(adapter));
  const std::vector<float> served = tuned.vector_of(text, Pooling::kLast, PooledOutput::kScores, 7);
  ASSERT_EQ(served.size(), 1U);
  EXPECT_NEAR(score_of(layer, parameters), served.front(), 2e-4);

  std::vector<float> head_alone = parameters;
  const std::size_t head = parameters.size() - 1 - static_cast<std::size_t>(tuned.model->shape().embedding);
  std::fill_n(head_alone.begin(), head, 0.0F);
  EXPECT_GT(std::fabs(score_of(layer, head_alone) - served.front()), 1e-2) << "it does something";

  // Where the base is a file, its shape tells the same names and rows, or that they cannot be told.
  const auto of_file = tune_last_layer({tuned.model->shape(), ""}, *tuned.model->first(), tuned.table, tuned.lora);
  if (!of_file) return;
  const auto told = layer.tensors(parameters), same = (*of_file)->tensors(parameters);
  ASSERT_EQ(told.size(), same.size());
  for (std::size_t i = 0; i < told.size(); ++i) {
    EXPECT_EQ(told[i].first, same[i].first);
    EXPECT_EQ(told[i].second.floats, same[i].second.floats) << told[i].first;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, TunedFamilies, testing::ValuesIn(folder_models()), folder_test_name);

TEST(TunedFamilies, AreThoseLikeLlama) {
  for (const char* name : {"llama-biased", "llama-llama3", "mistral", "ministral", "qwen2-window", "qwen3", "smollm3", "granite", "gemma"})
    EXPECT_TRUE(Tuned(name).tune()) << name;
  Tuned llama("llama-llama3");
  EXPECT_TRUE(tune_last_layer({llama.model->shape(), ""}, *llama.model->first(), llama.table, llama.lora)) << "of a file";
  for (const char* name : {"mixtral", "gemma2", "gpt2", "phi3", "deepseek-v3", "mamba2", "cohere", "olmo2"})
    EXPECT_FALSE(Tuned(name).tune()) << name;
}

// Differences over what a parameter's neighbours make, in every part of the parameters.
TEST(TunedLayer, HasTheSlopesOfItsScore) {
  for (const char* name : {"llama-biased", "qwen3", "gemma", "qwen2-window", "granite"}) {
    Tuned tuned(name);
    const auto layer = tuned.tune().value();
    add_text(*layer, tuned.inputs_of(random_text(19, 4)));
    std::vector<float> parameters = random_parameters(*layer);
    const std::vector<double> slopes = slope_of(*layer, parameters);
    double most = 0.0;
    for (const double slope : slopes) most = std::max(most, std::fabs(slope));
    for (std::size_t i = 0; i < parameters.size(); i += 7) {
      const float at = parameters[i];
      const float above = at + 1e-4F, below = at - 1e-4F;
      parameters[i] = above;
      const double higher = score_of(*layer, parameters);
      parameters[i] = below;
      const double lower = score_of(*layer, parameters);
      parameters[i] = at;
      EXPECT_NEAR(slopes[i], (higher - lower) / (double{above} - double{below}), 1e-5 * most) << name << " " << i;
    }
  }
}

TEST(TunedLayer, HasTheSameBitsInPiecesOfAnySize) {
  Tuned tuned("qwen3");
  const std::vector<float> inputs = tuned.inputs_of(random_text(19, 4));
  std::vector<std::vector<double>> all;
  for (const std::size_t work : {std::size_t{1}, std::size_t{777}, kAtOnce}) {
    const auto layer = tuned.tune().value();
    const std::vector<float> parameters = random_parameters(*layer);
    layer->begin_text(inputs);
    finish(*layer, work);
    layer->begin_score(0, parameters);
    finish(*layer, work);
    std::vector<double>& told = all.emplace_back(parameters.size() + 1, 0.0);
    told.back() = layer->score();
    layer->begin_slope(-0.5, std::span(told).first(parameters.size()));
    std::size_t pieces = 0;
    for (; !layer->is_over(); ++pieces) EXPECT_GE(layer->advance(work), 1U);
    EXPECT_TRUE(work == kAtOnce ? pieces == 1 : pieces > 10) << pieces;
  }
  EXPECT_EQ(all[0], all[2]);
  EXPECT_EQ(all[1], all[2]);
}

// Only what is named, and nothing else, has parameters; what is taken from a text is counted.
TEST(TunedLayer, HasParametersOfTheModulesThatAreNamed) {
  const Tuned all("mistral");
  const Tuned two("mistral", {.rank = 2, .alpha = 6.0F, .modules = {"v_proj", "q_proj"}});
  const Tuned query("mistral", {.rank = 2, .alpha = 6.0F, .modules = {"q_proj"}});
  const Tuned key("mistral", {.rank = 2, .alpha = 6.0F, .modules = {"k_proj"}});
  const auto count = [](const Tuned& tuned) {
    return tuned.tune().value()->tensors(std::vector<float>(tuned.tune().value()->parameter_count(), 0.0F)).size();
  };
  EXPECT_EQ(count(all), 16U);
  EXPECT_EQ(count(two), 6U);
  EXPECT_EQ(count(query), 4U);
  EXPECT_EQ(key.tune().value()->text_bytes(100), two.tune().value()->text_bytes(100)) << "what the layer reads is kept";
  EXPECT_LT(query.tune().value()->text_bytes(100), two.tune().value()->text_bytes(100));
  EXPECT_GE(key.tune().value()->work_bytes(100),
            two.tune().value()->work_bytes(100) +
                3 * sizeof(double) * 100 * static_cast<std::size_t>(key.model->shape().layers.back().attention.key.outputs));
  const Result<std::shared_ptr<TunableLayer>> unknown = Tuned("mistral", {.rank = 2, .alpha = 6.0F, .modules = {"in_proj"}}).tune();
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, HasSubstr("'in_proj', but beside q_proj, k_proj, v_proj"));
}

TEST(TunedLayer, IsNotMadeBeyondItsBytes) {
  const Tuned tuned("mistral");
  const std::uint64_t bytes = tuned.tune().value()->bytes();
  EXPECT_TRUE(tune_last_layer(tuned.base(), *tuned.model->first(), tuned.table, tuned.lora, bytes));
  const auto refused = tune_last_layer(tuned.base(), *tuned.model->first(), tuned.table, tuned.lora, bytes - 1);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("wait for other jobs"));
}

TEST(TunedLayer, BeginsWithWhatAddsNothingAndTheModelsOwnHead) {
  Tuned tuned("mistral");
  const auto layer = tuned.tune().value();
  EXPECT_FALSE(layer->has_own_head());
  const std::vector<float> first = layer->first_parameters(1);
  EXPECT_EQ(first, layer->first_parameters(1));
  EXPECT_NE(first, layer->first_parameters(2));
  for (const auto& [name, tensor] : layer->tensors(first)) {
    const bool is_down = name.find("lora_A") != std::string::npos;
    const bool has_any = std::ranges::any_of(tensor.floats, [](float x) { return x != 0.0F; });
    EXPECT_EQ(has_any, is_down) << name;
    if (!is_down) continue;
    for (const float x : tensor.floats) EXPECT_LE(std::fabs(x), 1.0F / std::sqrt(static_cast<float>(tensor.shape[1]))) << name;
  }
}

// reference/make_training.py
class TorchsSlopes : public testing::TestWithParam<const char*> {};

TEST_P(TorchsSlopes, AreFoundAgain) {
  const auto file = files::map_file(std::string(BRAID_SOURCE_DIR "/test/model/reference/training/") + GetParam() + ".safetensors").value();
  const files::SafeTensors reference = files::parse_safetensors(file->bytes()).value();
  const auto text = [&](const char* name) {
    const files::SafeTensor& tensor = reference.tensors.at(name);
    std::vector<TokenId> ids(static_cast<std::size_t>(tensor.shape.front()));
    std::memcpy(ids.data(), tensor.bytes.data(), tensor.bytes.size());
    return ids;
  };
  const auto values = [&](const std::string& name) { return adapting::values_of(reference.tensors.at(name)).at; };

  std::vector<std::string> modules;
  for (const std::string& name : kAllModules)
    if (std::ranges::any_of(reference.tensors, [&](const auto& known) { return known.first.find(name) != std::string::npos; }))
      modules.push_back(name);
  Tuned tuned(GetParam(), {.rank = 2, .alpha = 6.0F, .modules = modules});
  const auto layer = tuned.tune().value();
  for (const char* name : {"chosen", "rejected"}) add_text(*layer, tuned.inputs_of(text(name)));

  std::vector<float> places(layer->parameter_count());
  std::iota(places.begin(), places.end(), 0.0F);
  std::vector<float> parameters(places.size());
  std::vector<double> slopes(places.size());
  for (const auto& [name, tensor] : layer->tensors(places)) {
    const std::vector<float> own = values(name), slope = values("grad." + name);
    for (std::size_t i = 0; i < own.size(); ++i) {
      parameters[static_cast<std::size_t>(tensor.floats[i])] = own[i];
      slopes[static_cast<std::size_t>(tensor.floats[i])] = slope[i];
    }
  }
  const std::vector<float> scores = values("scores");
  for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(score_of(*layer, parameters, i), scores[i], 1e-5);
  const double wrong = 1.0 / (1.0 + std::exp(double{scores[0]} - double{scores[1]}));
  const std::vector<double> chosen = slope_of(*layer, parameters, 0, -wrong), rejected = slope_of(*layer, parameters, 1, wrong);
  double most = 0.0;
  for (const double slope : slopes) most = std::max(most, std::fabs(slope));
  for (std::size_t i = 0; i < slopes.size(); ++i) EXPECT_NEAR(chosen[i] + rejected[i], slopes[i], 1e-5 * most) << i;
}

INSTANTIATE_TEST_SUITE_P(Models, TorchsSlopes, testing::Values("mistral", "qwen3", "llama-biased"));

}  // namespace
}  // namespace braid::model::test
