// Models and heads that guess for real, in a pool that holds some of the requests: evicted, preempted, forked and cancelled sequences, and a
// drafter that is gone at run time. Answers are those without guesses, bit for bit.
#include "model/drafting/model_drafter.h"
#include "model/made_eagle.h"
#include "model/model_with_head.h"
#include "sched/speculation/answers.h"

#include <map>
#include <stdexcept>

namespace braid::sched::test {
namespace {

// Answers without guesses, and what is then asked of whoever guesses.
struct Asked {
  Asked(const files::GgufFile& file, const Constraints* constraints, DraftMethod by_model, std::int32_t kv_limit = 0) {
    const auto alone = load(file, kRoomyBlocks, kv_limit, nullptr);
    requests = make_requests(request_count(), constraints, alone->shape().vocab);
    plain = run(*alone, options_of(*alone, kRoomyBlocks, 0), requests, false);
    want_guesses(requests, plain.answers, by_model);
  }

  // Beside others' wishes, in a pool of that size; what it took.
  EngineStats expect_same(model::LanguageModel& model, std::int32_t blocks = kTightBlocks) const {
    const Run guessed = run(model, options_of(model, blocks, 8), requests, true);
    std::int32_t accepted = 0;
    test::expect_same(plain.answers, guessed.answers, accepted);
    EXPECT_GT(guessed.stats.preemptions, 0U);
    return guessed.stats;
  }

  std::vector<GenerationRequest> requests;
  Run plain;
};

std::uint64_t guesses_of(const EngineStats& stats, DraftSource source) { return stats.drafts.drafted[static_cast<std::size_t>(source)][0]; }

std::shared_ptr<model::ModelDrafter> small_drafter(std::int32_t blocks) {
  auto own = model::LanguageModel::load(small_model(), kernels::best_kernel_table(),
                                        {.threads = 1, .block_tokens = kBlockTokens, .max_batch = kSlots, .end_tokens = {}, .progress = {}})
                 .value();
  auto drafter = std::make_shared<model::ModelDrafter>(std::move(own), static_cast<std::size_t>(kSlots));
  drafter->allocate_kv(blocks).value();
  return drafter;
}

TEST(GuessingModels, ChangeNoBit) {
  const Constraints constraints;
  const Asked asked(small_model(), &constraints, DraftMethod::kDraft);
  const auto model = load(small_model(), kTightBlocks, 0, small_drafter(kTightBlocks));
  const EngineStats stats = asked.expect_same(*model);
  EXPECT_GT(guesses_of(stats, DraftSource::kDraft), 0U);
  EXPECT_GT(stats.drafts.read, 0U);
}

// Whose keys and values lie apart from the model's, because no layer of that sees everything.
TEST(GuessingModels, ChangeNoBitWithinAWindow) {
  const Constraints constraints;
  const Asked asked(small_model(), &constraints, DraftMethod::kDraft, 48);
  const auto model = load(small_model(), kTightWindows, 48, small_drafter(kTightBlocks));
  EXPECT_GT(guesses_of(asked.expect_same(*model, kTightWindows), DraftSource::kDraft), 0U);
}

TEST(GuessingModels, ThatAreGoneCostTimeOnly) {
  const Constraints constraints;
  const Asked asked(small_model(), &constraints, DraftMethod::kDraft);
  std::map<AnswerKey, std::vector<TokenId>> wholes;
  for (std::size_t i = 0; i < asked.requests.size(); ++i) {
    std::vector<TokenId>& whole = wholes[key_of(asked.requests[i].sampling)] = asked.requests[i].prompt;
    whole.insert(whole.end(), asked.plain.answers[i].tokens.begin(), asked.plain.answers[i].tokens.end());
  }
  const auto drafter = std::make_shared<HostileDrafter>(wholes);
  drafter->disappear_after(20);
  const auto model = load(small_model(), kTightBlocks, 0, drafter);
  const EngineStats stats = asked.expect_same(*model);
  EXPECT_GT(guesses_of(stats, DraftSource::kDraft), 0U) << "it guessed as long as it was there";
  EXPECT_EQ(drafter->calls(), 23U) << "and is not asked for ever";
  EXPECT_GT(guesses_of(stats, DraftSource::kNgram), 0U) << "others guess on";
}

// Forks and blocks that come back ask something of whoever has a part of them.
class Immovable final : public model::Drafter {
 public:
  void draft(std::span<model::DraftWish> wishes) override {
    ++drafts;
    for (model::DraftWish& wish : wishes) wish.count = 0;
  }
  std::size_t saved_bytes() const override { return 64; }
  void move(const step::StepPlan&, std::size_t) override {
    if (++moves > 10) throw std::runtime_error("nothing moves here");
  }
  int moves = 0;
  int drafts = 0;
};

TEST(GuessingModels, ThatCannotFollowTheBlocksAreNotAskedAnyMore) {
  const Constraints constraints;
  const Asked asked(small_model(), &constraints, DraftMethod::kDraft);
  const auto drafter = std::make_shared<Immovable>();
  const auto model = load(small_model(), kTightBlocks, 0, drafter);
  asked.expect_same(*model);
  EXPECT_EQ(drafter->moves, 11);
  EXPECT_LE(drafter->drafts, 10);
}

TEST(GuessingHeads, ChangeNoBit) {
  const files::GgufFile file = model::test::ModelWithHead("glm4-moe").file();
  const Asked asked(file, nullptr, DraftMethod::kMtp);
  model::LoadOptions more;
  more.heads = true;
  const auto model = load(file, kTightBlocks, 0, nullptr, more);
  ASSERT_TRUE(model->has_heads());
  EXPECT_GT(guesses_of(asked.expect_same(*model), DraftSource::kMtp), 0U);
}

TEST(GuessingHeads, OfTheEagleKindChangeNoBit) {
  const Constraints constraints;
  const Asked asked(small_model(), &constraints, DraftMethod::kDraft);
  const model::ModelShape shape = model::describe_model(small_model()).value();
  const braid::test::Folder folder;
  const auto made = model::test::MadeEagle::random(5, {.width = shape.embedding, .vocab = shape.vocab}, 64, 500);
  model::LoadOptions more;
  more.eagle = std::make_shared<const model::EagleHead>(model::read_eagle_head(made.folder(folder), shape).value());
  const auto model = load(small_model(), kTightBlocks, 0, nullptr, more);
  ASSERT_TRUE(model->has_eagle());
  EXPECT_GT(guesses_of(asked.expect_same(*model), DraftSource::kDraft), 0U);
}

}  // namespace
}  // namespace braid::sched::test
