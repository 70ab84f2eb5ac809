// Tiny random encoders as folders against what transformers computes for them (reference/make_encoders.py), and the numerics contract.
#include "files/hf_folder.h"
#include "kernels/select.h"
#include "kernels/thread_team.h"
#include "model/encoder_models.h"
#include "model/encoders/encoder_families.h"
#include "model/encoders/sentence_modules.h"
#include "model/encoders/text_encoder.h"
#include "model/forward_harness.h"
#include "model/step_driver.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <simdjson.h>
#include <span>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace braid::model::test {
namespace {

struct EncoderReference {
  step::EncoderText text;
  std::vector<float> values;
};

std::vector<EncoderReference> read_references(const std::string& name, const LoadedEncoder& loaded) {
  simdjson::dom::parser parser;
  const simdjson::dom::element root = parser.load(encoder_path(name) + "/reference.json");
  std::vector<EncoderReference> references;
  for (const simdjson::dom::element entry : simdjson::dom::array(root)) {
    EncoderReference& reference = references.emplace_back();
    for (const std::int64_t id : simdjson::dom::array(entry["ids"])) reference.text.tokens.push_back(static_cast<TokenId>(id));
    std::int32_t place = 0;
    for (const std::int64_t type : simdjson::dom::array(entry["types"])) {
      if (type == 1 && reference.text.second_text == 0) reference.text.second_text = place;
      ++place;
    }
    simdjson::dom::array values;
    const bool is_vector = entry["vector"].get(values) == simdjson::SUCCESS;
    if (!is_vector) values = simdjson::dom::array(entry["logits"]);
    for (const double value : values) reference.values.push_back(static_cast<float>(value));
    reference.text.pooling = loaded.modules.pooling.value_or(Pooling::kMean);
    reference.text.output = is_vector ? PooledOutput::kVector : PooledOutput::kScores;
    std::string_view task;
    if (entry["task"].get(task) != simdjson::SUCCESS) continue;
    const std::vector<std::string>& tasks = loaded.encoder->shape().tasks;
    reference.text.task = static_cast<std::int32_t>(std::ranges::find(tasks, task) - tasks.begin()) + 1;
    EXPECT_LE(reference.text.task, static_cast<std::int32_t>(tasks.size())) << task;
  }
  return references;
}

double length_of(const std::vector<float>& vector) {
  double sum = 0.0;
  for (const float value : vector) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

class EncoderReferences : public testing::TestWithParam<std::string> {};

TEST_P(EncoderReferences, AreReproducedOnEveryTier) {
  for (const auto* table : available_tables()) {
    kernels::ThreadTeam team(2);
    const LoadedEncoder loaded = load_encoder(GetParam(), *table, team);
    for (const EncoderReference& reference : read_references(GetParam(), loaded)) {
      std::vector<float> vector = encode(*loaded.encoder, {reference.text}).front();
      ASSERT_EQ(vector.size(), reference.values.size());
      const double scale = loaded.modules.normalizes ? 1.0 / length_of(vector) : 1.0;
      const double bound = 1e-4 * length_of(reference.values);
      for (std::size_t i = 0; i < vector.size(); ++i)
        ASSERT_NEAR(vector[i] * scale, reference.values[i], bound)
            << table->name << ", " << reference.text.tokens.size() << " tokens, value " << i;
    }
  }
}

// Alone, in a batch, and with another number of threads.
TEST_P(EncoderReferences, HaveTheSameBitsInAnyBatch) {
  kernels::ThreadTeam one(1);
  kernels::ThreadTeam three(3);
  const LoadedEncoder alone = load_encoder(GetParam(), kernels::best_kernel_table(), one);
  const LoadedEncoder together = load_encoder(GetParam(), kernels::best_kernel_table(), three);
  std::vector<step::EncoderText> texts;
  const std::vector<EncoderReference> references = read_references(GetParam(), alone);
  for (std::size_t i = 0; i < 64; ++i) texts.push_back(references[i % references.size()].text);
  const std::vector<std::vector<float>> batch = encode(*together.encoder, texts);
  for (std::size_t i = 0; i < references.size(); ++i) {
    const std::vector<float> own = encode(*alone.encoder, {references[i].text}).front();
    for (std::size_t j = i; j < batch.size(); j += references.size()) EXPECT_EQ(batch[j], own);
  }
}

// `--pooling none`: what the other ways choose from, each through the Dense modules.
TEST_P(EncoderReferences, GiveEachTokensVectorToo) {
  kernels::ThreadTeam team(2);
  const LoadedEncoder loaded = load_encoder(GetParam(), kernels::best_kernel_table(), team);
  const auto width = static_cast<std::size_t>(loaded.encoder->vector_width());
  for (const EncoderReference& reference : read_references(GetParam(), loaded)) {
    if (reference.text.output == PooledOutput::kScores) continue;
    step::EncoderText text = reference.text;
    text.pooling = Pooling::kEach;
    const std::vector<float> all = encode(*loaded.encoder, {text}).front();
    ASSERT_EQ(all.size(), text.tokens.size() * width);
    text.pooling = Pooling::kFirst;
    EXPECT_EQ(std::vector(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(width)), encode(*loaded.encoder, {text}).front());
    text.pooling = Pooling::kLast;
    EXPECT_EQ(std::vector(all.end() - static_cast<std::ptrdiff_t>(width), all.end()), encode(*loaded.encoder, {text}).front());
  }
}

// The folder as llama.cpp's converter would write it.
files::GgufFile gguf_of(const files::HfFolder& folder, std::vector<std::pair<std::string, files::GgufValue>> metadata) {
  static const std::vector<std::pair<std::string, std::string>> kNames = {{"embeddings.word_embeddings", "token_embd"},
                                                                          {"embeddings.position_embeddings", "position_embd"},
                                                                          {"embeddings.token_type_embeddings", "token_types"},
                                                                          {"embeddings.LayerNorm", "token_embd_norm"},
                                                                          {"attention.self.query", "attn_q"},
                                                                          {"attention.self.key", "attn_k"},
                                                                          {"attention.self.value", "attn_v"},
                                                                          {"attention.output.dense", "attn_output"},
                                                                          {"attention.output.LayerNorm", "attn_output_norm"},
                                                                          {"intermediate.dense", "ffn_up"},
                                                                          {"output.dense", "ffn_down"},
                                                                          {"output.LayerNorm", "layer_output_norm"},
                                                                          {"mlp.gated_layers", "ffn_up"},
                                                                          {"mlp.wo", "ffn_down"},
                                                                          {"mlp.layernorm", "layer_output_norm"},
                                                                          {"attention.self.layer_norm_q", "attn_q_norm"},
                                                                          {"attention.self.layer_norm_k", "attn_k_norm"},
                                                                          {"layer_norm_1", "attn_norm_2"},
                                                                          {"mlp.up_gated_layer", "ffn_up"},
                                                                          {"mlp.down_layer", "ffn_down"},
                                                                          {"layer_norm_2", "layer_output_norm"},
                                                                          {"embeddings.tok_embeddings", "token_embd"},
                                                                          {"embeddings.norm", "token_embd_norm"},
                                                                          {"attn_norm", "attn_norm"},
                                                                          {"attn.Wqkv", "attn_qkv"},
                                                                          {"attn.Wo", "attn_output"},
                                                                          {"mlp_norm", "ffn_norm"},
                                                                          {"mlp.Wi", "ffn_up"},
                                                                          {"mlp.Wo", "ffn_down"},
                                                                          {"final_norm", "output_norm"},
                                                                          {"self_attn.q_proj", "attn_q"},
                                                                          {"self_attn.k_proj", "attn_k"},
                                                                          {"self_attn.v_proj", "attn_v"},
                                                                          {"self_attn.o_proj", "attn_output"},
                                                                          {"post_attention_layernorm", "attn_output_norm"},
                                                                          {"mlp.gate_proj", "ffn_gate"},
                                                                          {"mlp.up_proj", "ffn_up"},
                                                                          {"mlp.down_proj", "ffn_down"},
                                                                          {"mlp.fc1", "ffn_up"},
                                                                          {"mlp.fc2", "ffn_down"},
                                                                          {"post_mlp_layernorm", "layer_output_norm"},
                                                                          {"pooler.dense", "cls"},
                                                                          {"classifier", "cls.output"}};
  files::GgufContents contents;
  contents.sources = folder.sources();
  contents.metadata = std::move(metadata);
  for (const auto& [stored_name, stored] : folder.tensors()) {
    std::string name = stored_name.starts_with("bert.") ? stored_name.substr(5) : stored_name;
    const std::string layers = name.starts_with("layers.") ? "layers." : "encoder.layer.";
    std::string block;
    if (name.starts_with(layers)) {
      const std::size_t dot = name.find('.', layers.size());
      block = "blk." + name.substr(layers.size(), dot - layers.size()) + ".";
      name = name.substr(dot + 1);
    }
    const std::size_t kind = name.rfind('.');
    for (const auto& [own, theirs] : kNames) {
      if (name.substr(0, kind) != own) continue;
      files::GgufTensor& tensor = contents.tensors.emplace_back();
      tensor.name = block + theirs + name.substr(kind);
      tensor.type = static_cast<std::uint32_t>(kernels::WeightType::kBF16);
      tensor.shape.assign(stored.shape.rbegin(), stored.shape.rend());
      tensor.bytes = stored.bytes;
    }
  }
  return files::GgufFile::from_contents(std::move(contents));
}

// Its sizes in a file of that architecture against the folder itself.
void expect_same_bits(const std::string& name, const std::string& architecture,
                      const std::vector<std::pair<std::string, files::GgufValue>>& more = {}) {
  const files::HfFolder folder = files::HfFolder::open(encoder_path(name)).value();
  const EncoderShape sizes = read_encoder_folder(folder).value();
  std::vector<std::pair<std::string, files::GgufValue>> metadata = {
      {"general.architecture", architecture},
      {architecture + ".context_length", std::uint64_t{320}},
      {architecture + ".embedding_length", static_cast<std::uint64_t>(sizes.width)},
      {architecture + ".feed_forward_length", std::uint64_t{48}},
      {architecture + ".block_count", static_cast<std::uint64_t>(sizes.layers.size())},
      {architecture + ".attention.head_count", static_cast<std::uint64_t>(sizes.heads)},
      {architecture + ".attention.layer_norm_epsilon", sizes.epsilon}};
  for (const auto& [key, value] : more) metadata.emplace_back(architecture + key, value);
  const files::GgufFile file = gguf_of(folder, std::move(metadata));
  kernels::ThreadTeam team(1);
  const kernels::KernelTable& table = kernels::best_kernel_table();
  EncoderShape shape = read_encoder_gguf(file).value();
  EncoderWeights weights = load_encoder_weights(shape, GgufTensors(file), {}, table, kernels::WeightType::kF32).value();
  TextEncoder encoder(std::move(shape), std::move(weights), table, team);
  const LoadedEncoder own = load_encoder(name, table, team);
  for (const EncoderReference& reference : read_references(name, own))
    EXPECT_EQ(encode(encoder, {reference.text}).front(), encode(*own.encoder, {reference.text}).front());
}

TEST(EncoderFiles, OfLlamaCppGiveTheFoldersBits) {
  expect_same_bits("bert-labels", "bert");
  expect_same_bits("jina-v2", "jina-bert-v2");
  expect_same_bits("jina-v2-code", "jina-bert-v2");
  expect_same_bits("jina-v3", "jina-bert-v3", {{".rope.freq_base", 20'000.0}});
  expect_same_bits("nomic-bert", "nomic-bert", {{".rope.freq_base", 1'000.0}});
  expect_same_bits("modernbert", "modern-bert",
                   {{".rope.freq_base", 160'000.0}, {".rope.freq_base_swa", 10'000.0}, {".attention.sliding_window", std::uint64_t{16}}});
}

// A folder of XLM-R under the names of Jina AI's code, where queries, keys and values are one product.
class JointTensors final : public EncoderTensors {
 public:
  explicit JointTensors(const EncoderTensors& own) : own_(own) {}
  bool has(const std::string& name) const override { return own_.has(own_name(name, "query")); }
  Result<EncoderTensor> read(const std::string& name) const override {
    if (name.find("Wqkv") == std::string::npos) return own_.read(own_name(name, ""));
    EncoderTensor joint = own_.read(own_name(name, "query")).value();
    for (const char* part : {"key", "value"}) {
      const EncoderTensor more = own_.read(own_name(name, part)).value();
      joint.values.insert(joint.values.end(), more.values.begin(), more.values.end());
      joint.shape.front() += more.shape.front();
    }
    return joint;
  }

 private:
  static std::string own_name(std::string name, const std::string& part) {
    const std::pair<std::string, std::string> kNames[] = {{"encoder.layers.", "encoder.layer."},
                                                          {"mixer.Wqkv", "attention.self." + part},
                                                          {"mixer.out_proj", "attention.output.dense"},
                                                          {"norm1", "attention.output.LayerNorm"},
                                                          {"norm2", "output.LayerNorm"},
                                                          {"mlp.fc1", "intermediate.dense"},
                                                          {"mlp.fc2", "output.dense"},
                                                          {"emb_ln", "embeddings.LayerNorm"}};
    for (const auto& [joint, own] : kNames)
      if (const std::size_t at = name.find(joint); at != std::string::npos) name.replace(at, joint.size(), own);
    return name;
  }

  const EncoderTensors& own_;
};

TEST(EncoderFiles, OfJinasRerankersAreThoseOfXlmR) {
  const files::HfFolder folder = files::HfFolder::open(encoder_path("xlm-roberta-rank")).value();
  const FolderTensors plain(folder.tensors());
  const JointTensors joint(plain);
  FolderConfig config(folder.config(), folder.path());
  EncoderShape shape = roberta_shape(config, joint);
  ASSERT_FALSE(config.error) << config.error->message;
  ASSERT_FALSE(shape.positions.empty());
  kernels::ThreadTeam team(1);
  const kernels::KernelTable& table = kernels::best_kernel_table();
  EncoderWeights weights = load_encoder_weights(shape, joint, {}, table, kernels::WeightType::kF32).value();
  TextEncoder encoder(std::move(shape), std::move(weights), table, team);
  const LoadedEncoder own = load_encoder("xlm-roberta-rank", table, team);
  for (const EncoderReference& reference : read_references("xlm-roberta-rank", own))
    EXPECT_EQ(encode(encoder, {reference.text}).front(), encode(*own.encoder, {reference.text}).front());
}

// The words that go before a text where a request names none.
TEST(SentenceModules, HaveThePromptThatTheFolderMeans) {
  const std::string copy = testing::TempDir() + "bert_prompts_" + std::to_string(getpid());
  std::filesystem::copy(encoder_path("bert"), copy, std::filesystem::copy_options::recursive);
  std::ofstream(copy + "/config_sentence_transformers.json")
      << R"({"prompts": {"query": "what is ", "document": ""}, "default_prompt_name": "query"})";
  const SentenceModules modules = read_sentence_modules(files::HfFolder::open(copy).value()).value();
  EXPECT_EQ(modules.default_prompt, "query");
  std::filesystem::remove_all(copy);
}

// What llama.cpp's converter makes of tensors: their bytes are new.
class ConvertedFile {
 public:
  ConvertedFile(std::string architecture, const files::HfFolder& from) {
    contents_.sources = from.sources();  // which name the file
    add("general.architecture", std::move(architecture));
  }

  void add(const std::string& key, files::GgufValue value) { contents_.metadata.emplace_back(key, std::move(value)); }
  void add(const std::string& name, std::vector<std::int64_t> shape, std::vector<float> values) {
    const std::vector<float>& kept = *values_.emplace_back(std::make_unique<std::vector<float>>(std::move(values)));
    files::GgufTensor& tensor = contents_.tensors.emplace_back();
    tensor.name = name;
    tensor.type = static_cast<std::uint32_t>(kernels::WeightType::kF32);
    tensor.shape.assign(shape.rbegin(), shape.rend());
    tensor.bytes = std::as_bytes(std::span(kept));
  }
  files::GgufFile file() { return files::GgufFile::from_contents(std::move(contents_)); }

 private:
  files::GgufContents contents_;
  std::vector<std::unique_ptr<std::vector<float>>> values_;
};

void add_sizes(ConvertedFile& file, const std::string& architecture, const EncoderShape& shape) {
  file.add(architecture + ".context_length", std::uint64_t{320});
  file.add(architecture + ".embedding_length", static_cast<std::uint64_t>(shape.width));
  file.add(architecture + ".feed_forward_length", std::uint64_t{48});
  file.add(architecture + ".block_count", static_cast<std::uint64_t>(shape.layers.size()));
  file.add(architecture + ".attention.head_count", static_cast<std::uint64_t>(shape.heads));
}

// Of a name like "layers.3.mlp.up_proj.weight" what the block is called, and what follows it.
std::pair<std::string, std::string> block_of(const std::string& name, const std::string& layers) {
  if (!name.starts_with(layers)) return {"", name};
  const std::size_t dot = name.find('.', layers.size());
  return {"blk." + name.substr(layers.size(), dot - layers.size()) + ".", name.substr(dot + 1)};
}

std::vector<float> encode_file(const files::GgufFile& file, const step::EncoderText& text) {
  kernels::ThreadTeam team(1);
  const kernels::KernelTable& table = kernels::best_kernel_table();
  EncoderShape shape = read_encoder_gguf(file).value();
  const GgufTensors tensors(file);
  const std::vector<const EncoderTensors*> modules(shape.dense.size(), &tensors);
  EncoderWeights weights = load_encoder_weights(shape, tensors, modules, table, kernels::WeightType::kF32).value();
  TextEncoder encoder(std::move(shape), std::move(weights), table, team);
  return encode(encoder, {text}).front();
}

// With its dense modules, as --sentence-transformers-dense-modules writes them, and norms that have the 1 within them.
TEST(EncoderFiles, OfEmbeddingGemmaHaveItsDenseModules) {
  static const std::map<std::string, std::string> kNames = {{"embed_tokens.weight", "token_embd.weight"},
                                                            {"norm.weight", "output_norm.weight"},
                                                            {"input_layernorm.weight", "attn_norm.weight"},
                                                            {"self_attn.q_proj.weight", "attn_q.weight"},
                                                            {"self_attn.k_proj.weight", "attn_k.weight"},
                                                            {"self_attn.v_proj.weight", "attn_v.weight"},
                                                            {"self_attn.o_proj.weight", "attn_output.weight"},
                                                            {"self_attn.q_norm.weight", "attn_q_norm.weight"},
                                                            {"self_attn.k_norm.weight", "attn_k_norm.weight"},
                                                            {"post_attention_layernorm.weight", "post_attention_norm.weight"},
                                                            {"pre_feedforward_layernorm.weight", "ffn_norm.weight"},
                                                            {"post_feedforward_layernorm.weight", "post_ffw_norm.weight"},
                                                            {"mlp.gate_proj.weight", "ffn_gate.weight"},
                                                            {"mlp.up_proj.weight", "ffn_up.weight"},
                                                            {"mlp.down_proj.weight", "ffn_down.weight"}};
  const files::HfFolder folder = files::HfFolder::open(encoder_path("gemma3")).value();
  kernels::ThreadTeam team(1);
  const LoadedEncoder own = load_encoder("gemma3", kernels::best_kernel_table(), team);
  const FolderTensors tensors(folder.tensors());
  ConvertedFile converted("gemma-embedding", folder);
  add_sizes(converted, "gemma-embedding", own.encoder->shape());
  converted.add("gemma-embedding.attention.head_count_kv", std::uint64_t{2});
  converted.add("gemma-embedding.attention.key_length", std::uint64_t{16});
  converted.add("gemma-embedding.attention.layer_norm_rms_epsilon", 1e-6);
  converted.add("gemma-embedding.attention.sliding_window", std::uint64_t{16});
  converted.add("gemma-embedding.rope.freq_base", 1e6);
  for (const auto& [name, stored] : folder.tensors()) {
    const auto [block, rest] = block_of(name, "layers.");
    EncoderTensor tensor = tensors.read(name).value();
    if (rest.ends_with("norm.weight"))
      for (float& value : tensor.values) value += 1.0F;
    converted.add(block + kNames.at(rest), tensor.shape, tensor.values);
  }
  ASSERT_EQ(own.modules.dense.size(), 1U);
  const DenseModule& module = own.modules.dense.front();
  ASSERT_EQ(module.shape.activation, EncoderActivation::kNone);
  const EncoderTensor dense = FolderTensors(module.tensors.tensors).read(module.shape.linear.weight).value();
  converted.add("dense_2.weight", dense.shape, dense.values);
  const std::int64_t width = dense.shape.front();
  std::vector<float> twice(static_cast<std::size_t>(2 * width));
  twice[0] = 2.0F;
  twice[static_cast<std::size_t>(width) + 1] = -1.0F;
  converted.add("dense_3.weight", {2, width}, twice);
  const files::GgufFile file = converted.file();
  for (const EncoderReference& reference : read_references("gemma3", own)) {
    const std::vector<float> vector = encode(*own.encoder, {reference.text}).front();
    EXPECT_EQ(encode_file(file, reference.text), (std::vector<float>{2.0F * vector[0], -vector[1]}));
  }
}

TEST(EncoderFiles, WhoseDenseModulesDoNotFitAreErrors) {
  const files::HfFolder folder = files::HfFolder::open(encoder_path("bert-labels")).value();
  ConvertedFile converted("bert", folder);
  add_sizes(converted, "bert", read_encoder_folder(folder).value());
  converted.add("token_embd.weight", {300, 32}, std::vector<float>(300 * 32));
  converted.add("dense_2.weight", {8, 31}, std::vector<float>(8 * 31));
  const auto shape = read_encoder_gguf(converted.file());
  ASSERT_FALSE(shape);
  EXPECT_NE(shape.error().message.find("dense_2.weight does not take the 32 numbers"), std::string::npos) << shape.error().message;
}

// Experts lie in one tensor, those that lead down turned; their bias, which is zeros, is left out.
TEST(EncoderFiles, OfNomicsExpertsGiveTheFoldersBits) {
  static const std::map<std::string, std::string> kNames = {{"attn.Wqkv", "attn_qkv"},
                                                            {"attn.out_proj", "attn_output"},
                                                            {"norm1", "attn_output_norm"},
                                                            {"norm2", "layer_output_norm"},
                                                            {"mlp.fc1", "ffn_up"},
                                                            {"mlp.fc2", "ffn_down"},
                                                            {"mlp.router.layer", "ffn_gate_inp"},
                                                            {"emb_ln", "token_embd_norm"},
                                                            {"embeddings.word_embeddings", "token_embd"},
                                                            {"embeddings.token_type_embeddings", "token_types"}};
  constexpr std::int64_t kExperts = 8;
  const files::HfFolder folder = files::HfFolder::open(encoder_path("nomic-moe")).value();
  std::map<std::string, files::SafeTensor> stored = folder.tensors();
  const std::vector<std::byte> zeros(64);
  for (auto& [name, tensor] : stored)
    if (name.ends_with("experts.bias")) tensor.bytes = zeros;
  const FolderTensors tensors(stored);
  kernels::ThreadTeam team(1);
  const kernels::KernelTable& table = kernels::best_kernel_table();
  EncoderShape shape = read_encoder_folder(folder).value();
  ConvertedFile converted("nomic-bert-moe", folder);
  add_sizes(converted, "nomic-bert-moe", shape);
  converted.add("nomic-bert-moe.attention.layer_norm_epsilon", shape.epsilon);
  converted.add("nomic-bert-moe.rope.freq_base", 1e4);
  converted.add("nomic-bert-moe.expert_count", std::uint64_t{kExperts});
  converted.add("nomic-bert-moe.expert_used_count", std::uint64_t{2});
  for (const auto& [name, ignored] : stored) {
    const auto [block, rest] = block_of(name, "encoder.layers.");
    if (rest == "mlp.experts.bias") continue;
    const EncoderTensor tensor = tensors.read(name).value();
    if (!rest.starts_with("mlp.experts.")) {
      const std::size_t kind = rest.rfind('.');
      converted.add(block + kNames.at(rest.substr(0, kind)) + rest.substr(kind), tensor.shape, tensor.values);
      continue;
    }
    const std::int64_t inner = tensor.shape[0] / kExperts;
    const std::int64_t width = tensor.shape[1];
    if (rest.ends_with("w1")) {
      converted.add(block + "ffn_up_exps.weight", {kExperts, inner, width}, tensor.values);
      continue;
    }
    std::vector<float> turned(tensor.values.size());
    for (std::int64_t e = 0; e < kExperts; ++e)
      for (std::int64_t i = 0; i < inner; ++i)
        for (std::int64_t o = 0; o < width; ++o)
          turned[static_cast<std::size_t>((e * width + o) * inner + i)] =
              tensor.values[static_cast<std::size_t>((e * inner + i) * width + o)];
    converted.add(block + "ffn_down_exps.weight", {kExperts, width, inner}, std::move(turned));
  }
  const files::GgufFile file = converted.file();
  EncoderWeights weights = load_encoder_weights(shape, tensors, {}, table, kernels::WeightType::kF32).value();
  TextEncoder own(std::move(shape), std::move(weights), table, team);
  for (const EncoderReference& reference : read_references("nomic-moe", load_encoder("nomic-moe", table, team)))
    EXPECT_EQ(encode_file(file, reference.text), encode(own, {reference.text}).front());
}

TEST(EncoderFiles, NameWhatIsMissingOrHasAnotherShape) {
  const files::HfFolder folder = files::HfFolder::open(encoder_path("bert")).value();
  std::map<std::string, files::SafeTensor> tensors = folder.tensors();
  const EncoderShape shape = read_encoder_folder(folder).value();
  const auto fault = [&] {
    return load_encoder_weights(shape, FolderTensors(tensors), {}, kernels::best_kernel_table(), kernels::WeightType::kF32).error();
  };
  const std::string name = "encoder.layer.1.output.dense.weight";
  tensors.at(name).shape = {48, 32};
  EXPECT_NE(fault().message.find(name), std::string::npos);
  tensors.erase(name);
  EXPECT_NE(fault().message.find(name + "' is missing"), std::string::npos);
}

// 8 bits of 32 values to a scale: the direction of a vector stays.
TEST(EncoderFiles, MatricesMayBeRoundedTo8Bits) {
  kernels::ThreadTeam team(1);
  const kernels::KernelTable& table = kernels::best_kernel_table();
  const LoadedEncoder exact = load_encoder("bert", table, team);
  const LoadedEncoder rounded = load_encoder("bert", table, team, kernels::WeightType::kQ8_0);
  EXPECT_LT(rounded.encoder->weights().bytes, exact.encoder->weights().bytes);
  for (const EncoderReference& reference : read_references("bert", exact)) {
    const std::vector<float> one = encode(*exact.encoder, {reference.text}).front();
    const std::vector<float> other = encode(*rounded.encoder, {reference.text}).front();
    double dot = 0.0;
    for (std::size_t i = 0; i < one.size(); ++i) dot += static_cast<double>(one[i]) * other[i];
    EXPECT_GT(dot / length_of(one) / length_of(other), 0.999);
    EXPECT_NE(one, other);
  }
}

INSTANTIATE_TEST_SUITE_P(Folders, EncoderReferences, testing::ValuesIn(encoder_folders()), [](const auto& suite) {
  std::string name = suite.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace braid::model::test
