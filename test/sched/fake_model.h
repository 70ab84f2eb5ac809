// A step executor without a model, for the scheduler's tests. Its "KV cache" holds the tokens themselves, each group of layers its own,
// and the next token is a hash of what a row's blocks hold: a lost, stolen, stale or misplaced block of any group changes the answer.
#pragma once

#include "step/step.h"
#include "step/visibility.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace braid::sched::test {

struct FakeModelOptions {
  std::int32_t block_tokens = 16;
  std::int32_t blocks = 0;
  std::int32_t vocab = 1000;
  std::int32_t eos = -1;  // -1: never; else the hash is taken modulo `vocab`, and this token ends a sequence
  std::vector<step::Visibility> groups{{}};
  std::int32_t state_blocks = 0;    // of a recurrent state: a digest of all tokens before
  std::int32_t stretch_beyond = 0;  // longer sequences are tinted from their beginning; 0: none are
  // The clock: what StepResult::seconds says.
  double step_seconds = 1e-3;
  double decode_row_seconds = 0.0;
  double prefill_token_seconds = 0.0;
};

// What else than its tokens a sequence's blocks hold: an adapter's work in all of them, an image's vectors in some. The fake sees the
// adapter's index in each row, and vectors of the width 1 in place of the image's tokens.
struct Tint {
  std::uint16_t adapter = 0;  // 0: none
  std::uint16_t image = 0;    // 0: none
  std::uint16_t first = 0;    // its place
  std::uint16_t count = 0;

  // The vector of one of the image's tokens. Float32 holds it.
  static float vector_of(std::uint16_t image, std::int32_t index) { return static_cast<float>(1'000'000 * image + 1'000 * index); }
  static constexpr std::uint32_t kStretched = 50;  // beside an adapter's index
  static TokenId adapted(TokenId held, std::uint32_t adapter) { return held + 20'000'000 * static_cast<TokenId>(adapter); }
  static TokenId adapted(TokenId held, const step::StepRow& row) { return adapted(held, row.adapter + (row.stretched ? kStretched : 0)); }
  // What the cache holds at a position.
  TokenId at(std::int32_t position, TokenId token) const {
    const bool is_image = image > 0 && position >= first && position < first + count;
    return adapted(is_image ? static_cast<TokenId>(vector_of(image, position - first)) : token, adapter);
  }
};

// What a test wants to know about a step afterwards.
struct StepRecord {
  std::vector<step::StepRow> rows;
  std::int32_t decode_rows = 0;
  std::int32_t prefill_tokens = 0;
  double seconds = 0.0;
};

class FakeModel final : public step::StepExecutor {
 public:
  explicit FakeModel(const FakeModelOptions& options);

  void execute(const step::StepPlan& plan, step::StepResult& result) override;

  // The answer of a sequence that has the machine for itself.
  std::vector<TokenId> expected(const std::vector<TokenId>& prompt, const StopRules& stop, const Tint& tint = {}) const;

  // The vector of a prompt: the sum of what its pooled positions hold, and how many these are.
  static std::vector<float> expected_vector(const std::vector<TokenId>& prompt, Pooling pooling, const Tint& tint = {});

  // From any thread. While held, steps wait; each allow() lets one through; release() lets all through again.
  void hold();
  void allow(int steps = 1);
  void release();
  // The next step to run throws.
  void fail_next(std::string message);
  // Until healed, a step throws half-way where one of its rows sees this token, and leaves rubbish in all that its rows write to.
  // With `names_row` it says which one.
  void poison(TokenId token, bool names_row = false);
  void heal() { poison(-1); }
  // Whoever has this token in sight gets no next one: his row fails, and nobody else's.
  void choke(TokenId token) { choking_ = token; }

  // From now on: what is saved is not what the blocks hold; blocks that are compared differ.
  void spoil_saves() { spoils_saves_ = true; }
  void spoil_checks() { spoils_checks_ = true; }

  std::vector<StepRecord> steps() const;
  // What broke the contract: empty when nothing did.
  std::vector<std::string> violations() const;

 private:
  struct Slot {
    StopRules stop;
    std::int32_t generated = 0;
    TokenId last = -1;
    std::int32_t next = -1;  // the position of its next token; -1: no row has told
    bool finished = false;
    Pooling pooling = Pooling::kNone;
    std::vector<TokenId> pooled = {};  // what the vector follows from so far
  };

  void wait_for_gate();
  void check_blocks(const step::StepPlan& plan);
  void copy_blocks(const step::StepPlan& plan, step::StepResult& result);
  void score(const step::StepPlan& plan, const step::StepRow& row, step::RowResult& result, step::StepResult& step);
  void run_row(const step::StepPlan& plan, const step::StepRow& row, step::RowResult& result, step::StepResult& step);
  static TokenId held(const step::StepPlan& plan, const step::StepRow& row, std::int32_t index);
  void pool(const step::StepPlan& plan, const step::StepRow& row, Slot& slot, step::RowResult& result, step::StepResult& step);
  void write(const step::StepPlan& plan, const step::StepRow& row, Slot& slot);
  void verify(const step::StepPlan& plan, const step::StepRow& row, Slot& slot, step::RowResult& result, step::StepResult& step);
  void answer(Slot& slot, TokenId token, step::RowResult& result) const;
  std::int32_t groups() const { return static_cast<std::int32_t>(options_.groups.size()); }
  TokenId& place(const step::StepPlan& plan, const step::StepRow& row, std::int32_t group, std::int32_t position);
  void put(const step::StepPlan& plan, const step::StepRow& row, std::int32_t position, TokenId token);
  std::vector<TokenId> read(const step::StepPlan& plan, const step::StepRow& row, std::int32_t end);
  TokenId next_token(const std::vector<TokenId>& context) const;
  static TokenId advance(TokenId state, TokenId token);
  TokenId& state(const step::StepPlan& plan, std::uint32_t block_begin, std::int32_t part);
  void put_state(const step::StepPlan& plan, std::uint32_t block_begin, TokenId value);
  TokenId take_state(const step::StepPlan& plan, const step::StepRow& row);
  void carry_state(const step::StepPlan& plan, const step::StepRow& row);
  bool sees(std::int32_t group, std::int32_t from, std::int32_t position) const;
  bool ends(TokenId token, std::int32_t generated, const StopRules& stop, FinishReason& reason) const;
  void violation(std::string what);
  void fail_if_poisoned(const step::StepPlan& plan, const step::StepResult& result);

  FakeModelOptions options_;
  std::map<step::SlotId, Slot> slots_;
  std::vector<TokenId> cache_;  // [blocks, block_tokens]

  mutable std::mutex mutex_;
  std::condition_variable gate_;
  bool held_ = false;
  int allowed_ = 0;
  std::string failure_;
  std::atomic<TokenId> poison_{-1};
  std::atomic<bool> names_row_{false};
  std::atomic<TokenId> choking_{-1};
  std::atomic<bool> spoils_saves_{false};
  std::atomic<bool> spoils_checks_{false};
  std::vector<StepRecord> steps_;
  std::vector<std::string> violations_;
};

}  // namespace braid::sched::test
