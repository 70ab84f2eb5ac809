// A head that reads what a model has computed guesses for it.
#pragma once

#include "braid/result.h"
#include "files/mapping.h"
#include "kernels/kernel_table.h"
#include "kernels/thread_team.h"
#include "model/drafting/drafter.h"
#include "model/kv_arena.h"
#include "model/model_shape.h"
#include "model/product_runner.h"
#include "model/rope.h"
#include "model/sampling/sampler.h"
#include "model/transformer.h"
#include "model/weights.h"
#include "model/workspace.h"
#include "step/pass.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace braid::model {

// One layer and an output, which guess what comes next at each position from what the model has computed there and the token that came.
struct HeadModel {
  ModelShape shape;  // of that layer alone, whose rows are given; its vocabulary is that of the output
  Weights weights;
  std::int64_t heard_width = 0;            // floats of a position that are heard
  std::vector<std::int32_t> read_layers;   // of which: the residual stream behind so many layers each; empty: what the last norm gives
  std::vector<TokenId> tokens;             // by those of its output: the model's; empty: they are the same
  DraftMethod method = DraftMethod::kMtp;  // of requests that ask for it, beside auto
};

// Where its pool and its passes lie.
struct HeadRoom {
  const kernels::KernelTable& table;
  kernels::ThreadTeam& team;
  std::size_t slots = 0;  // of the model
  std::int32_t block_tokens = 16;
  files::HugePages pages = files::HugePages::kTransparent;
};

// It hears rows that sample, of a prompt those of its end; what it has not heard it does not attend to, which costs guesses and nothing else.
// Its keys and values lie in a pool of its own, for a few sequences at once and so many positions of each; who has read more begins anew.
// Further guesses follow from its own hidden states. What its rows are made of is a subclass's. Strand only.
class HeadDrafter : public Drafter {
 public:
  // What a drafter takes besides weights; the weights need no data.
  static std::size_t bytes(const HeadModel& head, const kernels::KernelTable& table, int members, std::int32_t block_tokens);
  std::size_t bytes() const { return space_.storage.size() + kv_.bytes(); }

  static constexpr std::int32_t kMostHeard = 256;  // positions of a sequence that are kept until a guess is wanted

  std::span<const std::int32_t> read_layers() const { return head_.read_layers; }
  std::int64_t heard_width() const { return head_.heard_width; }

  // Whether the slot's hidden states are of use.
  bool listens(step::SlotId slot) const { return by_slot_[slot] != kNoCache; }
  // hidden: [heard_width], at `position` of the slot's text, which will not change any more.
  void hear(step::SlotId slot, std::int32_t position, std::span<const float> hidden);

  void start(const step::SlotStart& start) override;
  void end(step::SlotId slot) override;
  void draft(std::span<DraftWish> wishes) override;

 protected:
  // Of a row of a pass: the token that came behind what is heard of the position, or, further on, behind its own hidden state.
  struct Input {
    TokenId token = 0;
    const float* hidden = nullptr;
  };
  // What they lie in.
  struct Parts {
    Workspace space;
    KvArena kv;
  };
  static Result<Parts> make_parts(const HeadModel& head, const HeadRoom& room);

  HeadDrafter(HeadModel head, const HeadRoom& room, Parts parts);

  // The rows of the pass: `rows` [inputs, embedding] as they go into the layer, and what else that reads.
  virtual void make_rows(std::span<const Input> inputs, bool are_heard, std::vector<float>& rows) = 0;
  // What a guess behind that token of the pass reads, [embedding].
  virtual void read_hidden(std::int64_t picked, float* out) const = 0;

  // Whether the head knows the token.
  bool embeds(TokenId token) const { return token < head_.weights.embedding.outputs; }

  const HeadModel head_;
  const kernels::KernelTable& table_;
  const std::vector<RopeTable> ropes_;
  const Transformer transformer_;
  const ProductRunner products_;
  Workspace space_;

 private:
  static constexpr std::size_t kCaches = 16;
  static constexpr std::int32_t kPositions = 1024;  // of one
  static constexpr std::int32_t kPassRows = 512;    // of all sequences
  static constexpr std::size_t kNoCache = ~std::size_t{0};

  struct Cache {
    std::optional<step::SlotId> owner;
    std::int32_t first = 0;    // position of the text that it begins with
    std::int32_t held = 0;     // so many of them are computed
    std::vector<float> heard;  // [heard, heard_width]: of those that follow
    std::uint64_t used = 0;
  };
  struct Going {
    DraftWish* wish = nullptr;
    std::size_t cache = 0;
    std::vector<float> hidden;  // of its last position
  };

  static WorkspaceShape workspace_shape(int members);

  std::int32_t heard(const Cache& cache) const {
    return static_cast<std::int32_t>(cache.heard.size() / static_cast<std::size_t>(head_.heard_width));
  }
  void begin_pass();
  // One position more of a cache: behind `hidden` came `token`.
  void add(std::size_t cache, std::int32_t index, TokenId token, const float* hidden);
  void read(DraftWish& wish, std::int32_t& room);
  void compute(bool are_heard);
  void take_guesses();

  KvArena kv_;
  Sampler sampler_;
  std::vector<Cache> caches_;
  std::vector<std::size_t> by_slot_;
  std::vector<SamplingParams> sampling_;  // by slot
  std::uint64_t uses_ = 0;
  std::vector<Input> inputs_;  // parallel to pass_.tokens
  step::Pass pass_;
  std::vector<Going> going_;  // parallel to pass_.picked
};

}  // namespace braid::model
