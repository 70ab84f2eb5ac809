// Heads of the EAGLE-3 kind: read from folders as their makers write them, held against the same in double, and never a bit of an answer.
#include "kernels/select.h"
#include "model/adapter_models.h"
#include "model/drafting/eagle_drafter.h"
#include "model/folder_models.h"
#include "model/made_eagle.h"
#include "model/verified_rows.h"
#include "support/gguf_writer.h"

#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <map>
#include <random>

namespace braid::model::test::eagles {
namespace {

using Doubles = std::vector<double>;
using adapting::Values;

constexpr std::int64_t kWidth = 64;  // of the model
constexpr std::int32_t kVocab = 120;
constexpr std::int32_t kLayers = 5;
constexpr std::int32_t kOwnTokens = 50;  // of the head
constexpr std::int32_t kHeads = MadeEagle::kHeads;
constexpr std::int32_t kKvHeads = MadeEagle::kKvHeads;
constexpr std::int32_t kHeadDim = MadeEagle::kHeadDim;
constexpr MadeEagle::Of kModel{.width = kWidth, .vocab = kVocab};

Values filled(std::vector<std::int64_t> shape, float value) {
  std::mt19937 none(0);
  Values values = adapting::random_values(none, std::move(shape), 0.0F);
  std::ranges::fill(values.at, value);
  return values;
}

using Head = MadeEagle;

// The same head in double, position by position.
class Reference {
 public:
  Reference(const Head& head, const Values& embedding) : head_(head), embedding_(embedding) {}

  // What it foretells behind a position of the model, whose residual stream it reads there, and the token that came.
  Doubles read(const Doubles& heard, TokenId token) { return go_on(product("fc.weight", heard), token); }
  // And further on behind its own.
  Doubles guess(TokenId token) { return go_on(Doubles(residual_), token); }
  // Forgets the last positions.
  void forget(std::size_t positions) {
    keys_.resize(keys_.size() - positions);
    values_.resize(values_.size() - positions);
  }

 private:
  Doubles product(const std::string& name, const Doubles& x) const {
    const Values& matrix = head_.at(name);
    Doubles y(static_cast<std::size_t>(matrix.rows()));
    for (std::size_t row = 0; row < y.size(); ++row)
      for (std::size_t i = 0; i < x.size(); ++i) y[row] += double{matrix.at[row * x.size() + i]} * x[i];
    return y;
  }

  Doubles norm(const std::string& name, const Doubles& x) const {
    double squares = 0.0;
    for (const double value : x) squares += value * value;
    const double scale = 1.0 / std::sqrt(squares / static_cast<double>(x.size()) + 1e-5);
    Doubles y(x);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] *= scale * double{head_.at(name).at[i]};
    return y;
  }

  static void rotate(Doubles& heads, std::size_t position) {
    constexpr std::size_t kHalf = kHeadDim / 2;
    for (std::size_t first = 0; first < heads.size(); first += kHeadDim)
      for (std::size_t i = 0; i < kHalf; ++i) {
        const double angle = static_cast<double>(position) * std::pow(10000.0, -2.0 * static_cast<double>(i) / kHeadDim);
        double& a = heads[first + i];
        double& b = heads[first + i + kHalf];
        const double turned = a * std::cos(angle) - b * std::sin(angle);
        b = a * std::sin(angle) + b * std::cos(angle);
        a = turned;
      }
  }

  Doubles attend(const Doubles& query) const {
    Doubles found(query.size());
    for (std::size_t head = 0; head < kHeads; ++head) {
      const std::size_t shared = head / (kHeads / kKvHeads) * kHeadDim;
      Doubles weights;
      double sum = 0.0;
      for (const Doubles& key : keys_) {
        double score = 0.0;
        for (std::size_t i = 0; i < kHeadDim; ++i) score += query[head * kHeadDim + i] * key[shared + i];
        weights.push_back(std::exp(score / std::sqrt(double{kHeadDim})));
        sum += weights.back();
      }
      for (std::size_t t = 0; t < values_.size(); ++t)
        for (std::size_t i = 0; i < kHeadDim; ++i) found[head * kHeadDim + i] += weights[t] / sum * values_[t][shared + i];
    }
    return found;
  }

  Doubles go_on(Doubles hidden, TokenId token) {
    const auto width = static_cast<std::size_t>(head_.width);
    const auto row = static_cast<std::size_t>(token) * width;
    const Doubles embedded(embedding_.at.begin() + static_cast<std::ptrdiff_t>(row),
                           embedding_.at.begin() + static_cast<std::ptrdiff_t>(row + width));
    const Doubles normed = norm("midlayer.hidden_norm.weight", hidden);
    Doubles beside = norm("midlayer.input_layernorm.weight", embedded);
    beside.insert(beside.end(), normed.begin(), normed.end());
    Doubles query = product("midlayer.self_attn.q_proj.weight", beside);
    Doubles key = product("midlayer.self_attn.k_proj.weight", beside);
    rotate(query, keys_.size());
    rotate(key, keys_.size());
    keys_.push_back(std::move(key));
    values_.push_back(product("midlayer.self_attn.v_proj.weight", beside));
    residual_ = head_.norms_residual ? normed : std::move(hidden);
    add(product("midlayer.self_attn.o_proj.weight", attend(query)));
    const Doubles read = norm("midlayer.post_attention_layernorm.weight", residual_);
    Doubles gate = product("midlayer.mlp.gate_proj.weight", read);
    const Doubles up = product("midlayer.mlp.up_proj.weight", read);
    for (std::size_t i = 0; i < gate.size(); ++i) gate[i] *= up[i] / (1.0 + std::exp(-gate[i]));
    add(product("midlayer.mlp.down_proj.weight", gate));
    return product("lm_head.weight", norm("norm.weight", residual_));
  }

  void add(const Doubles& branch) {
    for (std::size_t i = 0; i < branch.size(); ++i) residual_[i] += branch[i];
  }

  const Head& head_;
  const Values& embedding_;
  Doubles residual_;
  std::vector<Doubles> keys_, values_;
};

// A model of the Llama kind with drawn weights, or one whose next token follows from the last one alone.
struct Target {
  std::map<std::string, Values> tensors;

  explicit Target(std::uint32_t seed = 9) {
    std::mt19937 random(seed);
    const auto draw = [&](const std::string& name, std::vector<std::int64_t> shape, float deviation) {
      tensors[name + ".weight"] = adapting::random_values(random, std::move(shape), deviation);
    };
    draw("token_embd", {kVocab, kWidth}, 0.8F);
    draw("output", {kVocab, kWidth}, 0.4F);
    tensors["output_norm.weight"] = filled({kWidth}, 1.0F);
    for (int i = 0; i < kLayers; ++i) {
      const std::string layer = fmt::format("blk.{}.", i);
      for (const char* norm : {"attn_norm", "ffn_norm"}) tensors[layer + norm + ".weight"] = filled({kWidth}, 1.0F);
      draw(layer + "attn_q", {64, kWidth}, 0.2F);
      draw(layer + "attn_k", {32, kWidth}, 0.2F);
      draw(layer + "attn_v", {32, kWidth}, 0.2F);
      draw(layer + "attn_output", {kWidth, 64}, 0.2F);
      draw(layer + "ffn_gate", {96, kWidth}, 0.2F);
      draw(layer + "ffn_up", {96, kWidth}, 0.2F);
      draw(layer + "ffn_down", {kWidth, 96}, 0.2F);
    }
  }

  void silence() {
    for (auto& [name, values] : tensors)
      if (name.find("attn_output") != std::string::npos || name.find("ffn_down") != std::string::npos) std::ranges::fill(values.at, 0.0F);
  }

  files::GgufFile file() const {
    braid::test::GgufWriter writer;
    writer.string("general.architecture", "llama");
    writer.u32("llama.context_length", 128).u32("llama.block_count", kLayers).u32("llama.embedding_length", kWidth);
    writer.u32("llama.feed_forward_length", 96).u32("llama.attention.head_count", 4).u32("llama.attention.head_count_kv", 2);
    writer.f32("llama.attention.layer_norm_rms_epsilon", 1e-5F);
    for (const auto& [name, values] : tensors)
      writer.tensor(name, 0, {values.shape.rbegin(), values.shape.rend()}, std::as_bytes(std::span(values.at)));
    return files::GgufFile::from_bytes(writer.source("target.gguf")).value();
  }
};

constexpr Packing kExact{.float_type = kernels::WeightType::kF32};

// A drafter of the head, for a model that it is told of.
struct Drafting {
  Drafting(const Head& its_head, const Target& target, std::string_view layer) : head(its_head) {
    const files::GgufFile file = target.file();
    const ModelShape model = describe_model(file).value();
    eagle.emplace(read_eagle_head(head.folder(folder, layer), model).value());
    const auto load = [&](const files::GgufFile& from, const ModelShape& shape) {
      return std::make_unique<const Weights>(load_weights(from, shape, 128, table, team, {}, kExact).value());
    };
    weights = load(file, model);
    own = load(eagle->file, eagle->shape);
    drafter = EagleDrafter::create(*eagle, model, *own, *weights, {.table = table, .team = team, .slots = 2}).value();
    drafter->start({.slot = 1,
                    .sampling = {.temperature = 0.0F},
                    .stop = {.max_tokens = 99, .stop_token_ids = {}},
                    .speculation = {.method = DraftMethod::kDraft}});
  }

  std::vector<TokenId> guess(const std::vector<TokenId>& text, std::size_t count) {
    std::vector<TokenId> guesses(count);
    DraftWish wish{.slot = 1, .text = text, .guesses = guesses};
    drafter->draft(std::span(&wish, 1));
    guesses.resize(wish.count);
    return guesses;
  }

  Head head;
  braid::test::Folder folder;
  const kernels::KernelTable& table = kernels::best_kernel_table();
  kernels::ThreadTeam team{2};
  std::optional<EagleHead> eagle;
  std::unique_ptr<const Weights> weights, own;
  std::unique_ptr<EagleDrafter> drafter;
};

// Keys and values are rounded in the pool, so that tokens which are nearly as good may change places.
struct Best {
  std::int64_t own = 0;
  double lead = 0.0;
};

Best best_of(const Doubles& logits) {
  const auto first = std::ranges::max_element(logits);
  double second = -1e9;
  for (auto at = logits.begin(); at != logits.end(); ++at)
    if (at != first) second = std::max(second, *at);
  return {first - logits.begin(), *first - second};
}

// Returns how many guesses were compared; after one that is too close the two may go different ways.
int compare(const Head& head, const Target& target, std::uint32_t seed, std::string_view layer) {
  Drafting drafting(head, target, layer);
  Reference reference(
      head, head.tensors.contains("embed_tokens.weight") ? head.at("embed_tokens.weight") : target.tensors.at("token_embd.weight"));
  std::mt19937 random(seed);
  std::normal_distribution<float> draw(0.0F, 1.5F);
  std::vector<TokenId> text{static_cast<TokenId>(random() % kVocab)};
  int compared = 0;
  for (int round = 0; round < 3; ++round) {
    Doubles logits;
    const std::size_t positions = 1 + random() % 9;
    for (std::size_t i = 0; i < positions; ++i) {
      std::vector<float> heard(3 * kWidth);
      for (float& value : heard) value = draw(random);
      const auto position = static_cast<std::int32_t>(text.size()) - 1;
      text.push_back(static_cast<TokenId>(random() % kVocab));
      drafting.drafter->hear(1, position, heard);
      logits = reference.read({heard.begin(), heard.end()}, text.back());
    }
    const std::vector<TokenId> guesses = drafting.guess(text, 5);
    EXPECT_EQ(guesses.size(), 5U);
    std::size_t passed = 0;  // positions that the reference is further on by
    for (const TokenId guess : guesses) {
      const Best best = best_of(logits);
      if (best.lead < 0.1) break;
      const auto own = static_cast<TokenId>(best.own);
      EXPECT_EQ(guess, head.offsets.empty() ? own : own + static_cast<TokenId>(head.offsets[static_cast<std::size_t>(own)]));
      ++compared;
      logits = reference.guess(guess);
      ++passed;
    }
    reference.forget(passed);  // what was guessed did not come
  }
  return compared;
}

TEST(EagleHeads, GuessWhatTheyDoInDouble) {
  const Target target;
  int compared = 0;
  for (std::uint32_t seed = 1; seed <= 6; ++seed) {
    Head shared = Head::random(seed, kModel, kWidth, kOwnTokens);
    shared.skip_tokens();
    compared += compare(shared, target, seed, "midlayer.");
    Head own = Head::random(seed + 10, kModel, 96, kVocab);
    own.norms_residual = seed % 2 == 0;
    compared += compare(own, target, seed, "layers.0.");
  }
  EXPECT_GT(compared, 100) << "of 180";
}

LoadOptions with_head(const Head& head, const files::GgufFile& target, int threads = 1) {
  const braid::test::Folder folder;
  LoadOptions options{.threads = threads, .state_drafts = 5, .end_tokens = {}, .progress = {}};
  options.packing = kExact;
  options.eagle = std::make_shared<const EagleHead>(read_eagle_head(head.folder(folder), describe_model(target).value()).value());
  return options;
}

class EagleAnswers : public VerifiedRows {};

TEST_F(EagleAnswers, ChangeNoBit) {
  const files::GgufFile file = Target().file();
  Head head = Head::random(3, kModel, kWidth, kOwnTokens);
  head.skip_tokens();
  LoadOptions without = with_head(head, file);
  without.eagle = nullptr;
  const SamplingParams ways[] = {{.temperature = 0.0F, .top_logprobs = 2}, {.temperature = 1.0F, .seed = 3, .top_logprobs = 1}};
  for (const SamplingParams& sampling : ways) {
    const Said plain = answer(*load_from(file, without), sampling, 0);
    for (const int threads : {1, 3}) {
      const auto model = load_from(file, with_head(head, file, threads));
      ASSERT_TRUE(model->has_eagle());
      EXPECT_EQ(model->kept_bytes(), model->weight_bytes()) << "it has no embedding of its own";
      const Said guessed = answer(*model, sampling, 5, DraftMethod::kDraft);
      EXPECT_TRUE(guessed == plain) << threads << " threads";
      EXPECT_GT(guessed.drafted, 0) << "it guesses";
      EXPECT_TRUE(answer(*model, sampling, 5, DraftMethod::kNgram) == plain) << "and does not where nobody asks it";
    }
  }
}

// Which reads nothing of the model, and finds in its own position the token that came: the model's next one follows from that, and so the head
// foretells it, where it hears the right token at the right place.
TEST_F(EagleAnswers, GuessRightWhereTheyAgree) {
  Target target;
  target.silence();
  std::mt19937 random(5);
  Values& embedding = target.tensors.at("token_embd.weight");
  for (float& value : embedding.at) value = random() % 2 == 0 ? 1.0F : -1.0F;
  for (std::int64_t token = 0; token < kVocab; ++token)
    embedding.at[static_cast<std::size_t>(token * kWidth)] = 1.0F;  // of all tokens alike
  Head head = Head::random(3, kModel, kWidth, kVocab);
  for (auto& [name, values] : head.tensors) std::ranges::fill(values.at, name.find("norm") != std::string::npos ? 1.0F : 0.0F);
  const auto set = [&](const std::string& name, std::int64_t row, std::int64_t column, float value) {
    Values& matrix = head.tensors.at(name);
    matrix.at[static_cast<std::size_t>(row * matrix.columns() + column)] = value;
  };
  // Queries and keys are the same everywhere but for their rotation, so that a position is most like itself.
  for (std::int64_t row = 0; row < kHeads * kHeadDim; ++row) set("midlayer.self_attn.q_proj.weight", row, 0, 30.0F);
  for (std::int64_t row = 0; row < kKvHeads * kHeadDim; ++row) set("midlayer.self_attn.k_proj.weight", row, 0, 30.0F);
  // Two heads share a value, of half the token's signs in all: so the head's output knows tokens by these. What is left of the token before, in the stream that the head goes on with, is taken away: half of the stream is zero, so a norm makes its
  // signs longer.
  for (std::int64_t row = 0; row < kKvHeads * kHeadDim; ++row) {
    set("midlayer.self_attn.v_proj.weight", row, row, 1.0F);
    set("midlayer.self_attn.v_proj.weight", row, kWidth + row, -std::sqrt(0.5F));
  }
  for (std::int64_t row = 0; row < kKvHeads * kHeadDim; ++row)
    set("midlayer.self_attn.o_proj.weight", row, row / kHeadDim * 2 * kHeadDim + row % kHeadDim, 1.0F);
  Values& output = target.tensors.at("output.weight");
  for (std::int64_t token = 0; token < kVocab; ++token)
    for (std::int64_t i = kKvHeads * kHeadDim; i < kWidth; ++i) output.at[static_cast<std::size_t>(token * kWidth + i)] = 0.0F;
  head.tensors.at("lm_head.weight") = output;
  const files::GgufFile half_seen = target.file();
  const LoadOptions options = with_head(head, half_seen);
  LoadOptions without = options;
  without.eagle = nullptr;
  const Said plain = answer(*load_from(half_seen, without), {.temperature = 0.0F, .top_logprobs = 1}, 0);
  const Said guessed = answer(*load_from(half_seen, options), {.temperature = 0.0F, .top_logprobs = 1}, 5, DraftMethod::kDraft);
  EXPECT_TRUE(guessed == plain);
  EXPECT_LE(guessed.steps, 1 + (kTokens - 1 + 5) / 6 + 1) << "six tokens a step";
}

// The other half: residual streams are heard at their places, from the layers that config.json names. The model's never changes behind its
// embedding, and each token is foretold again and again.
TEST_F(EagleAnswers, ReadTheModelsResidualStream) {
  Target target;
  target.silence();
  target.tensors.at("output.weight") = target.tensors.at("token_embd.weight");
  const files::GgufFile file = target.file();
  for (std::int64_t part = 0; part < 3; ++part) {
    Head head = Head::random(3, kModel, kWidth, kVocab);
    head.more = R"(,"eagle_config":{"eagle_aux_hidden_state_layer_ids":[0,2,3]})";
    for (auto& [name, values] : head.tensors) std::ranges::fill(values.at, name.find("norm") != std::string::npos ? 1.0F : 0.0F);
    for (std::int64_t i = 0; i < kWidth; ++i)
      head.tensors.at("fc.weight").at[static_cast<std::size_t>(i * 3 * kWidth + part * kWidth + i)] = 1.0F;
    head.tensors.at("lm_head.weight") = target.tensors.at("token_embd.weight");
    const Said guessed = answer(*load_from(file, with_head(head, file)), {.temperature = 0.0F}, 5, DraftMethod::kDraft);
    EXPECT_LE(guessed.steps, 1 + (kTokens - 1 + 5) / 6 + 1) << "part " << part;
  }
}

// Of models that carry a state on, whose layers are others, and which have a head of their own.
TEST_F(EagleAnswers, OfAHybridAreTheSame) {
  const files::GgufFile file = open_folder_model("granite4");
  const ModelShape shape = describe_model(file).value();
  const Head head = Head::random(4, {.width = shape.embedding, .vocab = shape.vocab}, 96, kOwnTokens);
  const LoadOptions options = with_head(head, file);
  LoadOptions without = options;
  without.eagle = nullptr;
  const SamplingParams sampling{.temperature = 0.8F, .seed = 5, .top_logprobs = 1};
  const Said plain = answer(*load_from(file, without), sampling, 0);
  const Said guessed = answer(*load_from(file, options), sampling, 5, DraftMethod::kDraft);
  EXPECT_TRUE(guessed == plain);
  EXPECT_GT(guessed.drafted, 0);
}

TEST(EagleHeads, ThatFitNoModelAreRefused) {
  const ModelShape model = describe_model(Target().file()).value();
  const auto error_of = [&](const Head& head) {
    const braid::test::Folder folder;
    const auto read = read_eagle_head(head.folder(folder), model);
    return read ? std::string() : read.error().message;
  };
  EXPECT_EQ(error_of(Head::random(1, kModel, kWidth, kOwnTokens)), "") << "its tokens are the model's first ones";
  Head narrow = Head::random(1, kModel, 96, kOwnTokens);
  narrow.tensors.erase("embed_tokens.weight");
  EXPECT_THAT(error_of(narrow), testing::HasSubstr("it has no embedding, and a width of 96 where the model's is 64"));
  Head beyond = Head::random(1, kModel, kWidth, kOwnTokens);
  beyond.skip_tokens();
  beyond.offsets.back() = kVocab;
  EXPECT_THAT(error_of(beyond), testing::HasSubstr("d2t makes of token 49 none of the model's 120"));
  Head many = Head::random(1, kModel, kWidth, kVocab + 1);
  EXPECT_THAT(error_of(many), testing::HasSubstr("the head has 121 tokens, the model 120, and d2t is missing"));
  Head deep = Head::random(1, kModel, kWidth, kOwnTokens);
  deep.more = R"(,"eagle_config":{"eagle_aux_hidden_state_layer_ids":[1,2,4]})";
  EXPECT_THAT(error_of(deep), testing::HasSubstr("names 4 of a model of 5 layers"));
  Head without = Head::random(1, kModel, kWidth, kOwnTokens);
  without.tensors["other.weight"] = without.at("norm.weight");
  const LoadOptions options = with_head(without, Target().file());
  const auto loaded = LanguageModel::load(Target().file(), kernels::best_kernel_table(), options);
  ASSERT_FALSE(loaded);
  EXPECT_THAT(loaded.error().message, testing::HasSubstr("other.weight"));
}

}  // namespace
}  // namespace braid::model::test::eagles
