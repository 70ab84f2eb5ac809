// The keys and values of a draft model go with the large model's blocks: through prefix hits, copies, preemptions and buffers of the disk tier.
// What it finds of a text it does not read again, and no answer depends on that.
#include "kernels/select.h"
#include "model/drafting/held_tokens.h"
#include "model/drafting/model_drafter.h"
#include "model/language_model.h"

#include <gtest/gtest.h>
#include <memory>
#include <numeric>

namespace braid::model::test {
namespace {

constexpr std::int32_t kPoolBlocks = 96;
constexpr std::int32_t kDrafts = 4;

// What was guessed last and what came instead, of each step.
constexpr int few(int steps) { return 3 * steps; }

std::unique_ptr<LanguageModel> load_small(std::shared_ptr<Drafter> drafter) {
  static const files::GgufFile file = files::GgufFile::open(BRAID_SOURCE_DIR "/models/demo-draft-q8_0.gguf").value();
  return LanguageModel::load(file, kernels::best_kernel_table(),
                             {.threads = 1, .max_batch = 4, .end_tokens = {}, .progress = {}, .drafter = std::move(drafter)})
      .value();
}

// Of one mind with its drafter, so that guesses are right.
struct Pair {
  Pair() { model->allocate_kv(kPoolBlocks).value(); }

  static std::shared_ptr<ModelDrafter> make_drafter() {
    auto drafter = std::make_shared<ModelDrafter>(load_small({}), 4);
    drafter->allocate_kv(kPoolBlocks).value();
    return drafter;
  }

  std::shared_ptr<ModelDrafter> drafter = make_drafter();
  std::unique_ptr<LanguageModel> model = load_small(drafter);
};

std::vector<TokenId> text_of(std::size_t length, TokenId key) {
  std::vector<TokenId> text(length);
  for (std::size_t i = 0; i < length; ++i) text[i] = 5 + (key * 131 + static_cast<TokenId>(i) * 7) % 1900;
  return text;
}

std::vector<std::int32_t> blocks_from(std::int32_t first, std::size_t count) {
  std::vector<std::int32_t> blocks(count);
  std::iota(blocks.begin(), blocks.end(), first);
  return blocks;
}

struct Running {
  step::SlotId slot = 0;
  std::vector<TokenId> text;  // prompt and answer
  std::vector<std::int32_t> blocks;
  std::int32_t computed = 0;  // positions that the model's blocks hold
  std::int32_t generated = 0;
  DraftMethod method = DraftMethod::kDraft;
};

void execute(LanguageModel& model, const step::StepPlan& plan, step::StepResult& result) {
  model.execute(plan, result);
  if (result.failure) std::rethrow_exception(result.failure);
}

void add_start(step::StepPlan& plan, const Running& running) {
  step::SlotStart& start = plan.starts.emplace_back();
  start.slot = running.slot;
  start.sampling = {.temperature = 0.9F, .top_k = 40, .seed = 17};
  start.stop = {.max_tokens = 400, .ignore_eos = true, .stop_token_ids = {}};
  start.generated = running.generated;
  start.speculation.method = running.method;
  start.history_begin = static_cast<std::uint32_t>(plan.tokens.size());
  start.history_count = static_cast<std::uint32_t>(running.text.size());
  plan.tokens.insert(plan.tokens.end(), running.text.begin(), running.text.end());
}

// The row that comes next: what the model lacks of the text, or one that verifies.
void add_row(step::StepPlan& plan, const Running& running, bool is_first) {
  step::StepRow& row = plan.rows.emplace_back();
  row.slot = running.slot;
  row.position = is_first ? running.computed : static_cast<std::int32_t>(running.text.size()) - 1;
  row.block_begin = static_cast<std::uint32_t>(plan.blocks.size());
  row.block_count = static_cast<std::uint32_t>(running.blocks.size());
  plan.blocks.insert(plan.blocks.end(), running.blocks.begin(), running.blocks.end());
  if (!is_first) {
    row.input = step::RowInput::kSampled;
    row.output = step::RowOutput::kVerify;
    row.drafts = kDrafts;
    return;
  }
  row.output = step::RowOutput::kSample;
  row.count = static_cast<std::int32_t>(running.text.size()) - running.computed;
  row.token_begin = static_cast<std::uint32_t>(plan.tokens.size());
  plan.tokens.insert(plan.tokens.end(), running.text.begin() + running.computed, running.text.end());
}

// Goes on, or comes back, for so many steps behind the first. Returns how many tokens of texts its drafter has read.
int go_on(LanguageModel& model, std::vector<Running*> all, std::size_t steps) {
  step::StepPlan plan;
  step::StepResult result;
  int read = 0;
  for (std::size_t i = 0; i <= steps; ++i) {
    plan.clear();
    for (const Running* running : all) {
      if (i == 0) add_start(plan, *running);
      add_row(plan, *running, i == 0);
    }
    execute(model, plan, result);
    read += result.draft_work.read;
    for (std::size_t row = 0; row < all.size(); ++row) {
      const step::RowResult& came = result.rows.at(row);
      Running& running = *all[row];
      running.text.push_back(came.token);
      for (std::uint32_t k = 0; k < came.more_count; ++k) running.text.push_back(result.more.at(came.more_begin + k).token);
      running.generated += 1 + static_cast<std::int32_t>(came.more_count);
      running.computed = static_cast<std::int32_t>(running.text.size()) - 1;
    }
  }
  return read;
}
int go_on(LanguageModel& model, Running& running, std::size_t steps) { return go_on(model, std::vector{&running}, steps); }

// Whether a model without a drafter says the same behind the prompt.
void expect_plain(const Running& running, std::size_t prompt) {
  static const std::unique_ptr<LanguageModel> plain = [] {
    auto model = load_small({});
    model->allocate_kv(kPoolBlocks).value();
    return model;
  }();
  Running alone{
      .slot = 0, .text = {running.text.begin(), running.text.begin() + static_cast<std::ptrdiff_t>(prompt)}, .blocks = blocks_from(0, 32)};
  go_on(*plain, alone, running.text.size() - prompt - 1);
  EXPECT_EQ(running.text, alone.text);
}

TEST(DraftBlocks, AreFoundWithAPrefix) {
  Pair pair;
  Running first{.slot = 0, .text = text_of(100, 1), .blocks = blocks_from(0, 20)};
  EXPECT_GE(go_on(*pair.model, first, 8), 100);
  expect_plain(first, 100);
  // The same beginning in the same blocks, of which the first six are full, and another end.
  Running second{.slot = 1, .text = text_of(100, 1), .blocks = blocks_from(0, 6), .computed = 96};
  second.text.resize(96);
  const std::vector<TokenId> end = text_of(30, 9);
  second.text.insert(second.text.end(), end.begin(), end.end());
  const std::vector<std::int32_t> own = blocks_from(40, 14);
  second.blocks.insert(second.blocks.end(), own.begin(), own.end());
  EXPECT_LE(go_on(*pair.model, second, 8), 30 + few(8));
  expect_plain(second, 126);
}

TEST(DraftBlocks, OfSomebodyElseAreNotTakenForItsOwn) {
  Pair pair;
  Running first{.slot = 0, .text = text_of(100, 1), .blocks = blocks_from(0, 20)};
  go_on(*pair.model, first, 6);
  // The same tokens behind other ones, in the same blocks: nothing of them is worth anything.
  Running second{.slot = 1, .text = text_of(100, 1), .blocks = blocks_from(0, 20)};
  second.text.front() += 1;
  EXPECT_GE(go_on(*pair.model, second, 6), 100);
  expect_plain(second, 100);
}

TEST(DraftBlocks, AreCopiedWithABeginning) {
  Pair pair;
  Running first{.slot = 0, .text = text_of(90, 2), .blocks = blocks_from(0, 20)};
  go_on(*pair.model, first, 6);
  // Five full blocks and the first eight tokens of the sixth.
  Running second{.slot = 1, .text = text_of(90, 2), .blocks = blocks_from(0, 5), .computed = 88};
  second.text.resize(88);
  second.text.insert(second.text.end(), {1000, 1001, 1002});
  const std::vector<std::int32_t> own = blocks_from(50, 15);
  second.blocks.insert(second.blocks.end(), own.begin(), own.end());
  step::StepPlan plan;
  step::StepResult result;
  plan.forks = {{5, 50}};
  execute(*pair.model, plan, result);
  EXPECT_EQ(go_on(*pair.model, second, 1), 4) << "the three behind the copied ones and what came first";
  go_on(*pair.model, second, 5);
  expect_plain(second, 91);
}

TEST(DraftBlocks, SurviveAPreemption) {
  Pair pair;
  Running running{.slot = 2, .text = text_of(120, 3), .blocks = blocks_from(10, 30)};
  EXPECT_GE(go_on(*pair.model, running, 8), 120);
  Running other{.slot = 2, .text = text_of(40, 4), .blocks = blocks_from(60, 20)};  // takes its slot meanwhile
  go_on(*pair.model, other, 4);
  running.slot = 1;
  EXPECT_LE(go_on(*pair.model, running, 8), few(8));
  expect_plain(running, 120);
}

TEST(DraftBlocks, OfSeveralChoicesAreReadOnce) {
  Pair pair;
  Running one{.slot = 0, .text = text_of(96, 5), .blocks = blocks_from(0, 6)};
  Running filled = one;
  filled.method = DraftMethod::kOff;  // the model has the prompt, its drafter nothing of it
  filled.blocks = blocks_from(0, 20);
  EXPECT_EQ(go_on(*pair.model, filled, 1), 0);
  Running two = one;
  two.slot = 1;
  for (Running* running : {&one, &two}) {
    running->text.push_back(running == &one ? 700 : 800);
    running->computed = 96;
    const std::vector<std::int32_t> own = blocks_from(running == &one ? 30 : 60, 20);
    running->blocks.insert(running->blocks.end(), own.begin(), own.end());
  }
  const int read = go_on(*pair.model, {&one, &two}, 6);
  EXPECT_GE(read, 96);
  EXPECT_LE(read, 96 + 2 * (1 + few(6)));
  expect_plain(one, 97);
  expect_plain(two, 97);
}

// To buffers, and from there to other blocks of a model that has just been loaded.
TEST(DraftBlocks, ComeBackFromBuffers) {
  Pair before;
  Running first{.slot = 0, .text = text_of(100, 6), .blocks = blocks_from(0, 20)};
  go_on(*before.model, first, 6);
  const std::size_t size = before.model->saved_bytes();
  EXPECT_GT(size, before.model->kv_groups().block_bytes());
  std::vector<std::byte> buffers(6 * size, std::byte{0x55});
  step::StepPlan plan;
  step::StepResult result;
  for (std::int32_t i = 0; i < 6; ++i) plan.saves.push_back({i, buffers.data() + static_cast<std::size_t>(i) * size, 0, 0});
  execute(*before.model, plan, result);

  Pair after;
  plan.clear();
  for (std::int32_t i = 0; i < 6; ++i) plan.loads.push_back({30 + i, buffers.data() + static_cast<std::size_t>(i) * size, 0, 0});
  execute(*after.model, plan, result);
  Running second{.slot = 3, .text = text_of(100, 6), .blocks = blocks_from(30, 20), .computed = 96};
  EXPECT_LE(go_on(*after.model, second, 6), 4 + few(6));
  expect_plain(second, 100);
}

// Of a server that guessed nothing, or of a record that is damaged: the draft reads the text itself.
TEST(DraftBlocks, ThatHoldNothingCostTimeOnly) {
  Pair before;
  Running first{.slot = 0, .text = text_of(100, 7), .blocks = blocks_from(0, 20), .method = DraftMethod::kOff};
  EXPECT_EQ(go_on(*before.model, first, 3), 0);
  const std::size_t size = before.model->saved_bytes();
  std::vector<std::byte> buffers(6 * size, std::byte{0x55});
  step::StepPlan plan;
  step::StepResult result;
  for (std::int32_t i = 0; i < 6; ++i) plan.saves.push_back({i, buffers.data() + static_cast<std::size_t>(i) * size, 0, 0});
  execute(*before.model, plan, result);
  std::fill_n(buffers.begin() + static_cast<std::ptrdiff_t>(before.model->kv_groups().block_bytes()), 64, std::byte{0xEE});

  Pair after;
  plan.clear();
  for (std::int32_t i = 0; i < 6; ++i) plan.loads.push_back({i, buffers.data() + static_cast<std::size_t>(i) * size, 0, 0});
  execute(*after.model, plan, result);
  Running second{.slot = 0, .text = text_of(100, 7), .blocks = blocks_from(0, 20), .computed = 96};
  EXPECT_GE(go_on(*after.model, second, 6), 100);
  expect_plain(second, 100);
}

// Which sequences of other lengths see: blocks that are given back, and taken by others.
TEST(DraftBlocks, ThatAreGivenBackHoldNothing) {
  Pair pair;
  Running first{.slot = 0, .text = text_of(100, 8), .blocks = blocks_from(0, 20)};
  go_on(*pair.model, first, 4);
  step::StepPlan plan;
  step::StepResult result;
  plan.given_back = blocks_from(0, 20);
  execute(*pair.model, plan, result);
  Running second{.slot = 1, .text = text_of(100, 8), .blocks = blocks_from(0, 20)};
  EXPECT_GE(go_on(*pair.model, second, 4), 100);
  expect_plain(second, 100);
}

// As the model's pool, which takes more of it into use when memory comes free.
TEST(DraftBlocks, AreThereForAPoolThatGrows) {
  auto drafter = std::make_shared<ModelDrafter>(load_small({}), 4);
  drafter->allocate_kv(4, kPoolBlocks).value();
  const auto model = load_small(drafter);
  model->allocate_kv(4, LanguageModel::Prefault::kInBackground, kPoolBlocks).value();
  Running running{.slot = 0, .text = text_of(100, 9), .blocks = blocks_from(50, 20)};
  EXPECT_GE(go_on(*model, running, 6), 100);
  expect_plain(running, 100);
}

TEST(DraftBlocks, OfWhoIsNotAskedAgainAreTheSystems) {
  ModelDrafter drafter(load_small({}), 4);
  drafter.allocate_kv(kPoolBlocks).value();
  const std::uint64_t pool = kPoolBlocks * drafter.block_bytes();
  EXPECT_EQ(drafter.model().untouched_kv_bytes(pool), 0U);
  drafter.give_up();
  EXPECT_TRUE(drafter.has_given_up());
  EXPECT_GT(drafter.model().untouched_kv_bytes(pool), pool - pool / 8);
}

TEST(HeldTokens, ArePutCutAndFoundByTheirBeginning) {
  HeldTokens held(8, 4);
  const std::vector<TokenId> text{1, 2, 3, 4, 5, 6, 7, 8, 9};
  const std::vector<std::int32_t> blocks{3, 1, 5};
  EXPECT_EQ(held.common(text, blocks), 0U);
  held.put(blocks, 0, std::span(text).first(6));
  held.put(blocks, 6, std::span(text).subspan(6));
  EXPECT_EQ(held.common(text, blocks), 9U);
  EXPECT_EQ(held.common(std::vector<TokenId>{1, 2, 3, 4, 5, 7}, blocks), 5U);
  EXPECT_EQ(held.common(text, std::vector<std::int32_t>{3, 5}), 4U) << "of which the second holds what comes later";
  EXPECT_EQ(held.common(std::span(text).subspan(4), std::vector<std::int32_t>{1, 5}), 0U) << "these are not at a beginning";
  held.cut(blocks, 6, 9);
  EXPECT_EQ(held.common(text, blocks), 6U);
  held.copy(1, 7);
  EXPECT_EQ(held.common(text, std::vector<std::int32_t>{3, 7}), 6U);
  std::vector<std::byte> record(held.record_bytes());
  held.write(3, record);
  HeldTokens other(8, 4);
  other.read(0, record);
  EXPECT_EQ(other.common(text, std::vector<std::int32_t>{0}), 4U);
  other.clear(0);
  EXPECT_EQ(other.common(text, std::vector<std::int32_t>{0}), 0U);
}

}  // namespace
}  // namespace braid::model::test
