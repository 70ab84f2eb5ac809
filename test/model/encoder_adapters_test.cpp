// Adapters of encoders: against PEFT (reference/make_encoder_adapters.py) and against the base with them merged into its weights.
#include "kernels/select.h"
#include "model/adapter_models.h"
#include "model/encoder_models.h"
#include "model/encoders/encoder_adapter_builder.h"
#include "model/encoders/gguf_modules.h"
#include "model/forward_harness.h"
#include "support/gguf_writer.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <simdjson.h>

namespace braid::model::test {
namespace {

using adapting::Tensors;
using adapting::Values;
using testing::AllOf;
using testing::HasSubstr;

std::string encoder_adapter_path(const std::string& name) { return BRAID_SOURCE_DIR "/test/model/reference/encoder_adapters/" + name; }

using Built = Result<std::shared_ptr<const EncoderAdapter>>;

Built build_at(const std::string& path, const LoadedEncoder& loaded, const std::string& base,
               kernels::WeightType type = kernels::WeightType::kF32) {
  const Result<PeftFolder> folder = read_peft_folder(path);
  if (!folder) return folder.error();
  const TextEncoder& encoder = *loaded.encoder;
  return build_encoder_adapter(*folder->config, *folder->tensors, {encoder.shape(), encoder.weights(), encoder.table(), type, base});
}

std::shared_ptr<const void> use_of(std::vector<EncoderAdapterSet::Part> parts) {
  return std::make_shared<const EncoderAdapterSet>(EncoderAdapterSet{std::move(parts)});
}

struct AdaptedReference {
  std::string base;
  std::vector<step::EncoderText> texts;
  std::vector<std::vector<float>> values;
};

AdaptedReference adapted_reference(const std::string& name, Pooling pooling_of_base) {
  simdjson::dom::parser parser;
  const simdjson::dom::element root = parser.load(encoder_adapter_path(name) + "/reference.json");
  AdaptedReference reference{std::string(std::string_view(root["base"])), {}, {}};
  for (const simdjson::dom::element entry : simdjson::dom::array(root["texts"])) {
    step::EncoderText& text = reference.texts.emplace_back();
    for (const std::int64_t id : simdjson::dom::array(entry["ids"])) text.tokens.push_back(static_cast<TokenId>(id));
    std::int32_t place = 0;
    for (const std::int64_t type : simdjson::dom::array(entry["types"])) {
      if (type == 1 && text.second_text == 0) text.second_text = place;
      ++place;
    }
    simdjson::dom::array values;
    const bool is_vector = entry["vector"].get(values) == simdjson::SUCCESS;
    if (!is_vector) values = simdjson::dom::array(entry["logits"]);
    text.pooling = pooling_of_base;
    text.output = is_vector ? PooledOutput::kVector : PooledOutput::kScores;
    std::vector<float>& all = reference.values.emplace_back();
    for (const double value : values) all.push_back(static_cast<float>(value));
  }
  return reference;
}

std::string base_of(const std::string& name) { return adapted_reference(name, Pooling::kMean).base; }

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0.0;
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i)
    most = std::max(most, i < a.size() && i < b.size() ? std::fabs(double{a[i]} - b[i]) : 1e9);
  return most;
}

double largest(const std::vector<float>& a) { return distance(a, std::vector<float>(a.size())); }

class EncoderAdapterReferences : public testing::TestWithParam<std::string> {};

TEST_P(EncoderAdapterReferences, AreReproducedOnEveryTier) {
  const std::string base = base_of(GetParam());
  for (const auto* table : available_tables()) {
    kernels::ThreadTeam team(2);
    const LoadedEncoder loaded = load_encoder(base, *table, team);
    const Built adapter = build_at(encoder_adapter_path(GetParam()), loaded, encoder_path(base));
    ASSERT_TRUE(adapter) << adapter.error().message;
    AdaptedReference reference = adapted_reference(GetParam(), loaded.modules.pooling.value_or(Pooling::kMean));
    const auto use = use_of({{*adapter}});
    double changed = 0.0;
    for (std::size_t i = 0; i < reference.texts.size(); ++i) {
      step::EncoderText text = reference.texts[i];
      text.adapter = use;
      const std::vector<float> own = encode(*loaded.encoder, {text}).front();
      ASSERT_EQ(own.size(), reference.values[i].size());
      EXPECT_LT(distance(own, reference.values[i]), 2e-4 * std::max(1.0, largest(reference.values[i]))) << table->name << ", text " << i;
      if (loaded.encoder->shape().head || text.output == PooledOutput::kVector)
        changed = std::max(changed, distance(own, encode(*loaded.encoder, {reference.texts[i]}).front()));
      else
        changed = 1.0;  // the base has no head
    }
    EXPECT_GT(changed, 1e-2) << "it does something";
  }
}

// Beside texts without adapters and with others, in any order, with another number of threads.
TEST_P(EncoderAdapterReferences, HaveTheSameBitsInAnyBatch) {
  const std::string base = base_of(GetParam());
  kernels::ThreadTeam one(1);
  kernels::ThreadTeam three(3);
  const LoadedEncoder alone = load_encoder(base, kernels::best_kernel_table(), one);
  const LoadedEncoder together = load_encoder(base, kernels::best_kernel_table(), three);
  const Built adapter = build_at(encoder_adapter_path(GetParam()), alone, encoder_path(base));
  ASSERT_TRUE(adapter) << adapter.error().message;
  const AdaptedReference reference = adapted_reference(GetParam(), alone.modules.pooling.value_or(Pooling::kMean));
  const auto first = use_of({{*adapter}});
  const auto second = use_of({{*adapter, (*adapter)->is_linear() ? 0.5F : 1.0F}});
  const auto adapter_of = [&](std::size_t i) { return i % 3 == 0 ? nullptr : i % 3 == 1 ? first : second; };
  std::vector<step::EncoderText> texts;
  for (std::size_t i = 0; i < 48; ++i) {
    step::EncoderText text = reference.texts[i * 5 % reference.texts.size()];
    text.adapter = adapter_of(i);
    // A base without a head has no scores.
    if (text.adapter == nullptr && !alone.encoder->shape().head) text.output = PooledOutput::kVector;
    texts.push_back(std::move(text));
  }
  const std::vector<std::vector<float>> batch = encode(*together.encoder, texts);
  for (std::size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(batch[i], encode(*alone.encoder, {texts[i]}).front()) << i;
}

// On a base of 8-bit codes the same adapter is added to the coded products, and magnitudes follow from the codes.
TEST_P(EncoderAdapterReferences, AreNearOnAQuantisedBase) {
  const std::string base = base_of(GetParam());
  kernels::ThreadTeam team(2);
  const auto& table = kernels::best_kernel_table();
  const LoadedEncoder loaded = load_encoder(base, table, team, kernels::WeightType::kQ8_0);
  const Built adapter = build_at(encoder_adapter_path(GetParam()), loaded, encoder_path(base), kernels::WeightType::kQ8_0);
  ASSERT_TRUE(adapter) << adapter.error().message;
  const AdaptedReference reference = adapted_reference(GetParam(), loaded.modules.pooling.value_or(Pooling::kMean));
  const auto use = use_of({{*adapter}});
  for (std::size_t i = 0; i < reference.texts.size(); ++i) {
    step::EncoderText text = reference.texts[i];
    text.adapter = use;
    EXPECT_LT(distance(encode(*loaded.encoder, {text}).front(), reference.values[i]), 0.15 * std::max(1.0, largest(reference.values[i])));
  }
}

std::vector<std::string> encoder_adapter_folders() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(encoder_adapter_path(""))) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Peft, EncoderAdapterReferences, testing::ValuesIn(encoder_adapter_folders()), test_name);

// Every matrix of the layers of every family.
class EncoderAdaptersOfFamilies : public testing::TestWithParam<std::string> {};

// Of a matrix of the layers, whatever torch calls it where it has parts; nothing: it is none.
std::string adapted_module(const std::string& name, const files::SafeTensor& tensor) {
  if (tensor.shape.size() != 2 || name.find("layer") == std::string::npos || name.find("norm") != std::string::npos) return {};
  for (const std::string end : {".parametrizations.weight.original", ".weight"})
    if (name.ends_with(end)) return name.substr(0, name.size() - end.size());
  return {};
}

TEST_P(EncoderAdaptersOfFamilies, ComputeWhatTheMergedModelDoes) {
  const files::HfFolder base = files::HfFolder::open(encoder_path(GetParam())).value();
  std::mt19937 random(17);
  Tensors adapter;
  std::map<std::string, Values> merged;
  for (const auto& [name, tensor] : base.tensors()) {
    const std::string in_base = adapted_module(name, tensor);
    if (in_base.empty()) continue;
    Values weights = adapting::values_of(tensor);
    const Values down = adapting::random_values(random, {3, weights.columns()}, 1.0F / std::sqrt(static_cast<float>(weights.columns())));
    const Values up = adapting::random_values(random, {weights.rows(), 3}, 0.1F);
    adapting::merge(weights, up, down, 2.0F, false);
    merged.emplace(name, std::move(weights));
    const std::string module = "base_model.model." + in_base;
    adapter.add(module + ".lora_A.weight", down);
    adapter.add(module + ".lora_B.weight", up);
  }
  ASSERT_FALSE(merged.empty());
  const braid::test::Folder folder;
  for (const char* name : {"merged", "plain", "adapter"}) std::filesystem::create_directory(folder / name);
  adapting::write_folder(base, merged, folder / "merged", base.config());
  adapting::write_folder(base, {}, folder / "plain", base.config());
  adapting::write_file(folder / "adapter/adapter_config.json",
                       std::string(R"({"peft_type":"LORA","r":3,"lora_alpha":6,"target_modules":"all-linear"})"));
  adapting::write_file(folder / "adapter/adapter_model.safetensors", adapter.file());

  kernels::ThreadTeam team(2);
  const auto& table = kernels::best_kernel_table();
  const LoadedEncoder loaded = load_encoder_at(folder / "plain", table, team);
  const LoadedEncoder expected = load_encoder_at(folder / "merged", table, team);
  const Built built = build_at(folder / "adapter", loaded, folder / "plain");
  ASSERT_TRUE(built) << built.error().message;
  step::EncoderText text;
  for (TokenId id = 5; id < 45; ++id) text.tokens.push_back(id);
  if (loaded.encoder->shape().head) text.output = PooledOutput::kScores;
  const std::vector<float> plain = encode(*loaded.encoder, {text}).front();
  const std::vector<float> wanted = encode(*expected.encoder, {text}).front();
  text.adapter = use_of({{*built}});
  const std::vector<float> adapted = encode(*loaded.encoder, {text}).front();
  EXPECT_LT(distance(adapted, wanted), 1e-4 * std::max(1.0, largest(wanted)));
  EXPECT_GT(distance(adapted, plain), 1e-3) << "it does something";
}

INSTANTIATE_TEST_SUITE_P(Encoders, EncoderAdaptersOfFamilies, testing::ValuesIn(encoder_folders()), test_name);

// Files of llama.cpp's names give what the folder gives that they were made of.
class EncoderAdaptersOfFiles : public testing::TestWithParam<std::string> {};

TEST_P(EncoderAdaptersOfFiles, GiveWhatTheFolderGives) {
  const files::HfFolder base = files::HfFolder::open(encoder_path(GetParam())).value();
  kernels::ThreadTeam team(2);
  const LoadedEncoder loaded = load_encoder(GetParam(), kernels::best_kernel_table(), team);
  braid::test::GgufWriter writer;
  writer.string("general.type", "adapter").string("general.architecture", gguf_architecture(loaded.encoder->shape()).value());
  writer.string("adapter.type", "lora").f32("adapter.lora.alpha", 6.0F);
  std::mt19937 random(19);
  Tensors adapter;
  const auto bytes_of = [](const Values& values) {
    const auto* begin = reinterpret_cast<const std::byte*>(values.at.data());
    return std::vector<std::byte>(begin, begin + values.at.size() * 4);
  };
  for (const auto& [name, tensor] : base.tensors()) {
    const bool is_table = name.ends_with("word_embeddings.weight") || name.ends_with("tok_embeddings.weight");
    const std::string in_base = is_table ? name.substr(0, name.size() - 7) : adapted_module(name, tensor);
    const auto in_file = in_base.empty() ? std::nullopt : gguf_module(in_base);
    if (!in_file) continue;
    const Values whole = adapting::values_of(tensor);
    const std::int64_t inputs = is_table ? whole.rows() : whole.columns();
    const std::int64_t outputs = is_table ? whole.columns() : whole.rows();
    const Values down = adapting::random_values(random, {3, inputs}, is_table ? 0.3F : 1.0F / std::sqrt(static_cast<float>(inputs)));
    const Values up = adapting::random_values(random, {outputs, 3}, 0.1F);
    const std::string module = "base_model.model." + in_base;
    adapter.add(module + (is_table ? ".lora_embedding_A" : ".lora_A.weight"), down);
    adapter.add(module + (is_table ? ".lora_embedding_B" : ".lora_B.weight"), up);
    Values stored = down;  // of an embedding the other way round
    for (std::int64_t r = 0; r < 3 && is_table; ++r)
      for (std::int64_t i = 0; i < inputs; ++i)
        stored.at[static_cast<std::size_t>(i * 3 + r)] = down.at[static_cast<std::size_t>(r * inputs + i)];
    is_table ? writer.tensor(*in_file + ".weight.lora_a", 0, {3, inputs}, bytes_of(stored))
             : writer.tensor(*in_file + ".weight.lora_a", 0, {inputs, 3}, bytes_of(stored));
    writer.tensor(*in_file + ".weight.lora_b", 0, {3, outputs}, bytes_of(up));
  }
  const braid::test::Folder folder;
  adapting::write_file(folder / "adapter_config.json", std::string(R"({"peft_type":"LORA","r":3,"lora_alpha":6})"));
  adapting::write_file(folder / "adapter_model.safetensors", adapter.file());
  const Built of_folder = build_at(folder.path(), loaded, encoder_path(GetParam()));
  ASSERT_TRUE(of_folder) << of_folder.error().message;
  const TextEncoder& encoder = *loaded.encoder;
  const Built of_file = build_encoder_adapter(writer.source("tuned.gguf"), {encoder.shape(), encoder.weights(), encoder.table(),
                                                                            kernels::WeightType::kF32, encoder_path(GetParam())});
  ASSERT_TRUE(of_file) << of_file.error().message;
  EXPECT_EQ((*of_file)->parameters, (*of_folder)->parameters);
  step::EncoderText text;
  for (TokenId id = 5; id < 45; ++id) text.tokens.push_back(id);
  const std::vector<float> plain = encode(*loaded.encoder, {text}).front();
  text.adapter = use_of({{*of_folder}});
  const std::vector<float> wanted = encode(*loaded.encoder, {text}).front();
  text.adapter = use_of({{*of_file}});
  EXPECT_EQ(encode(*loaded.encoder, {text}).front(), wanted);
  EXPECT_GT(distance(wanted, plain), 1e-3) << "it does something";
}

INSTANTIATE_TEST_SUITE_P(Encoders, EncoderAdaptersOfFiles,
                         testing::Values("bert", "roberta", "distilbert", "nomic-bert", "jina-v2", "jina-v3", "modernbert", "gemma3"),
                         test_name);

// As llama.cpp's table of tensors has them.
TEST(EncoderAdapterNames, AreThoseOfLlamaCppsFiles) {
  for (const auto& [module, name] : {std::pair("bert.encoder.layer.2.attention.self.query", "blk.2.attn_q"),
                                     {"encoder.layer.0.attention.output.dense", "blk.0.attn_output"},
                                     {"encoder.layer.0.output.dense", "blk.0.ffn_down"},
                                     {"distilbert.transformer.layer.1.ffn.lin1", "blk.1.ffn_up"},
                                     {"layers.1.attn.Wqkv", "blk.1.attn_qkv"},
                                     {"embeddings.word_embeddings", "token_embd"}})
    EXPECT_EQ(gguf_module(module), name) << module;
}

// What is wrong with an adapter, by the name of its tensor.
class EncoderAdapterFaults : public testing::Test {
 protected:
  EncoderAdapterFaults() {
    const files::HfFolder base = files::HfFolder::open(encoder_path("bert-labels")).value();
    const std::string layers = "bert.encoder.layer.";
    std::mt19937 random(5);
    for (int layer = 0; layer < 3; ++layer) {
      const std::string module = "base_model.model." + layers + std::to_string(layer) + ".attention.self.query";
      tensors_.add(module + ".lora_A.weight", adapting::random_values(random, {2, 32}, 0.1F));
      tensors_.add(module + ".lora_B.weight", adapting::random_values(random, {32, 2}, 0.1F));
    }
  }

  std::string fault(const std::string& config = R"({"r":2,"lora_alpha":2,"target_modules":["query"]})") {
    adapting::write_file(folder_ / "adapter_config.json", config);
    adapting::write_file(folder_ / "adapter_model.safetensors", tensors_.file());
    const Built built = build_at(folder_ / "", loaded_, encoder_path("bert-labels"));
    return built ? "" : built.error().message;
  }

  static constexpr const char* kQuery = "base_model.model.bert.encoder.layer.1.attention.self.query";
  const braid::test::Folder folder_;
  kernels::ThreadTeam team_{1};
  const LoadedEncoder loaded_ = load_encoder("bert-labels", kernels::best_kernel_table(), team_);
  Tensors tensors_;
};

TEST_F(EncoderAdapterFaults, AreToldWithTheTensor) {
  EXPECT_EQ(fault(), "");
  const std::string query = kQuery;
  tensors_.add(query + ".lora_B.weight", Values{{16, 2}, std::vector<float>(32)});
  EXPECT_THAT(fault(), AllOf(HasSubstr(query + ".lora_B.weight: found shape [16, 2], expected [32, 2]"), HasSubstr("of the base")));
  tensors_.add(query + ".lora_B.weight", Values{{32, 2}, std::vector<float>(64)});
  tensors_.add(query + ".lora_A.weight", Values{{2, 30}, std::vector<float>(60)});
  EXPECT_THAT(fault(), HasSubstr(query + ".lora_A.weight: found shape [2, 30], expected [2, 32]"));
  tensors_.remove(query + ".lora_A.weight");
  EXPECT_THAT(fault(), AllOf(HasSubstr("layer.1.attention.self.query.lora_A.weight"), HasSubstr("missing")));
  tensors_.remove(query + ".lora_B.weight");
  EXPECT_THAT(fault(), AllOf(HasSubstr("layer.1.attention.self.query"), HasSubstr("is missing"), HasSubstr("every layer")));
}

TEST_F(EncoderAdapterFaults, OfFilesAreToldWithTheTensor) {
  const TextEncoder& encoder = *loaded_.encoder;
  const auto fault_of = [&](const std::string& architecture, const std::string& tensor, std::int64_t inputs, const EncoderShape& shape) {
    braid::test::GgufWriter writer;
    writer.string("general.type", "adapter").string("general.architecture", architecture).string("adapter.type", "lora");
    writer.tensor(tensor + ".weight.lora_a", 0, {inputs, 2}, std::vector<std::byte>(static_cast<std::size_t>(inputs) * 8));
    writer.tensor(tensor + ".weight.lora_b", 0, {2, 32}, std::vector<std::byte>(256));
    const Built built = build_encoder_adapter(
        writer.source("tuned.gguf"), {shape, encoder.weights(), encoder.table(), kernels::WeightType::kF32, encoder_path("bert-labels")});
    return built ? "" : built.error().message;
  };
  EXPECT_EQ(fault_of("bert", "blk.1.attn_q", 32, encoder.shape()), "");
  EXPECT_THAT(fault_of("bert", "blk.1.attn_q", 30, encoder.shape()),
              HasSubstr("blk.1.attn_q.weight.lora_a: found shape [2, 30], expected [2, 32]"));
  EXPECT_THAT(fault_of("bert", "blk.9.attn_q", 32, encoder.shape()), HasSubstr("the base has no matrix blk.9.attn_q"));
  EXPECT_THAT(fault_of("llama", "blk.1.attn_q", 32, encoder.shape()), HasSubstr("expected \"bert\""));
  EncoderShape other = encoder.shape();
  other.family = "mpnet";
  EXPECT_THAT(fault_of("bert", "blk.1.attn_q", 32, other), HasSubstr("no GGUF adapters of encoders of the family mpnet"));
}

TEST_F(EncoderAdapterFaults, OfOtherBasesAndTypesAreToldWithTheTensor) {
  const std::string other = "base_model.model.model.layers.0.self_attn.q_proj";
  tensors_.add(other + ".lora_A.weight", Values{{2, 32}, std::vector<float>(64)});
  tensors_.add(other + ".lora_B.weight", Values{{32, 2}, std::vector<float>(64)});
  EXPECT_THAT(fault(), AllOf(HasSubstr(other), HasSubstr("the base has no matrix")));
  tensors_.remove(other + ".lora_A.weight");
  tensors_.remove(other + ".lora_B.weight");
  const std::vector<std::byte> bytes(64);
  tensors_.add(std::string(kQuery) + ".lora_A.weight", files::SafeTensor{"I8", {2, 32}, bytes});
  EXPECT_THAT(fault(), AllOf(HasSubstr(std::string(kQuery) + ".lora_A.weight"), HasSubstr("I8")));
}

TEST_F(EncoderAdapterFaults, OfWholeWeightsAreToldWithTheTensor) {
  const std::string norm = "base_model.model.bert.encoder.layer.0.output.LayerNorm";
  tensors_.add(norm + ".weight", Values{{30}, std::vector<float>(30)});
  EXPECT_THAT(fault(), HasSubstr(norm + ".weight: found shape [30], expected [32]"));
  tensors_.remove(norm + ".weight");
  tensors_.add(norm + ".bias", Values{{3}, std::vector<float>(3)});
  EXPECT_THAT(fault(), HasSubstr(norm + ".bias: found shape [3], expected [32]"));
  tensors_.remove(norm + ".bias");
  tensors_.add("base_model.model.classifier.weight", Values{{7, 30}, std::vector<float>(210)});
  EXPECT_THAT(fault(), AllOf(HasSubstr("classifier.weight"), HasSubstr("[7, 30]"), HasSubstr("[7, 32]")));
}

TEST_F(EncoderAdapterFaults, AreNoneWhereOneAndAHalfAreUsedTogether) {
  ASSERT_EQ(fault(), "");
  const Built built = build_at(folder_ / "", loaded_, encoder_path("bert-labels"));
  const std::shared_ptr<const EncoderAdapter> adapter = built.value();
  step::EncoderText text;
  for (TokenId id = 5; id < 25; ++id) text.tokens.push_back(id);
  text.output = PooledOutput::kScores;
  const auto with = [&](std::vector<EncoderAdapterSet::Part> parts) {
    text.adapter = use_of(std::move(parts));
    return encode(*loaded_.encoder, {text}).front();
  };
  EXPECT_LT(distance(with({{adapter, 1.5F}}), with({{adapter, 1.0F}, {adapter, 0.5F}})), 1e-5);
  EXPECT_GT(distance(with({{adapter, 1.5F}}), with({{adapter, 1.0F}})), 1e-5);
}

}  // namespace
}  // namespace braid::model::test
