// What one rank has of a model: its share of the weights and of the pool, and the activations of a pass.
#pragma once

#include "braid/result.h"
#include "files/byte_source.h"
#include "files/gguf.h"
#include "files/progress.h"
#include "kernels/kernel_table.h"
#include "kernels/thread_team.h"
#include "model/adapters/adapter_table.h"
#include "model/decoder.h"
#include "model/kv_arena.h"
#include "model/loaded_tensors.h"
#include "model/model_shape.h"
#include "model/rank_gather.h"
#include "model/weights.h"
#include "model/workspace.h"
#include "ranks/message.h"
#include "ranks/rank_copies.h"
#include "ranks/seat.h"
#include "step/pass.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace braid::ranks {

// A rank's own thread, but for what says otherwise.
class RankModel {
 public:
  // What the file has is `tensors`, by the names of newer ones. The file is not needed afterwards.
  static Result<std::unique_ptr<RankModel>> load(const files::GgufFile& file, model::LoadedTensors tensors, const Setup& setup,
                                                 const Seat& seat, const files::Progress& progress = {});

  Ready ready() const;
  Result<void> allocate(std::int32_t blocks, const files::Progress& progress = {});

  // Each throws std::logic_error for what does not fit the model and the pool, before anything is changed.
  void move(const Moves& moves);
  // What is in these blocks, zeros where nothing is ever written; and to them what was in such.
  void save(std::span<const BlockPlace> places, Bytes& out) const;
  void restore(const BlockContents& contents);
  void run(const step::Pass& pass, const Uses& uses);
  model::Rows logits(const Wanted& wanted);
  void hidden(std::int64_t picked, std::span<float> out);

  // Of what was computed since the last call.
  Times take_times();

  // What passes may use from then on. Another thread, one at a time.
  Result<void> take_adapter(std::span<const std::byte> image);
  // Of such an adapter, whose magnitudes are lengths, those of the outputs that this rank has, for weights of that number.
  Result<Magnitudes> measure(std::uint64_t weights, std::span<const std::byte> image) const;
  Result<void> take_weights(const NewerWeights& what, std::shared_ptr<const files::ByteSource> tensors);

  std::int32_t vocab() const { return parts_.shape.vocab; }
  std::int64_t embedding() const { return parts_.shape.embedding; }

 private:
  // What of it stays as it was loaded.
  struct Parts {
    model::ModelShape shape;
    const kernels::KernelTable& table;
    std::unique_ptr<kernels::ThreadTeam> team;
    model::KvGroups groups;
    model::LoadedTensors tensors;
    model::Packing packing;
    std::int32_t context = 0;
  };

  RankModel(Parts parts, model::Weights weights, model::Workspace space, const Seat& seat);

  std::shared_ptr<const model::Decoder> make_decoder(std::shared_ptr<const model::Weights> weights);
  void use(const Uses& uses);
  void forget(std::uint64_t number);
  void check(const step::Pass& pass) const;
  std::size_t check(std::span<const BlockPlace> places) const;

  const Parts parts_;
  const std::uint64_t weight_bytes_;
  const std::uint32_t matrices_;  // the largest number of one
  model::RankGather gather_;
  model::AdapterTable adapters_;
  RankCopies copies_;                                      // the weights that were loaded are 0
  std::shared_ptr<const model::Decoder> decoder_;          // of the last pass
  std::map<std::uint32_t, std::vector<Uses::Part>> used_;  // what the entries of the table were made of
  model::Workspace space_;
  std::optional<model::KvArena> kv_;
  std::int64_t picked_ = 0;  // of the last pass
  double seconds_ = 0.0;     // since the last take_times()
};

}  // namespace braid::ranks
