#include "ranks/rank_model.h"

#include "kernels/numerics.h"
#include "kernels/select.h"
#include "model/adapters/magnitudes.h"
#include "model/adapters/matrices.h"
#include "model/families/families.h"
#include "model/require.h"
#include "model/rope.h"
#include "ranks/adapter_image.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <utility>

namespace braid::ranks {
namespace {

using model::require;

Result<const kernels::KernelTable*> table_of(const Setup& setup) {
  const kernels::KernelTable& best = kernels::best_kernel_table();
  if (setup.isa < 0) return setup.float_weights != 0 ? &kernels::for_float_weights(best) : &best;
  std::string missing;
  if (const kernels::KernelTable* table = kernels::kernel_table(static_cast<kernels::Isa>(setup.isa), missing)) return table;
  return Error{ErrorCode::kUnsupported, fmt::format("this machine lacks {}, which --isa asks for", missing), {}};
}

// Adds to `seconds` what passes until its end.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  ~Stopwatch() { seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& seconds_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace

Result<std::unique_ptr<RankModel>> RankModel::load(const files::GgufFile& file, model::LoadedTensors tensors, const Setup& setup,
                                                   const Seat& seat, const files::Progress& progress) {
  const Result<const kernels::KernelTable*> table = table_of(setup);
  if (!table) return table.error();
  auto shape = model::describe_model(file);
  if (!shape) return shape.error();
  shape->kv_limit = setup.kv_limit;
  shape->prediction.reset();  // nobody guesses with it
  auto team = std::make_unique<kernels::ThreadTeam>(setup.threads);
  model::Packing packing{.float_type = {}, .rotated = setup.rotated != 0, .share = seat.share(), .stage = seat.stage()};
  if (setup.float_type >= 0) packing.float_type = static_cast<kernels::WeightType>(setup.float_type);
  auto weights = model::load_weights(file, *shape, setup.context, **table, *team, progress, packing);
  if (!weights) return weights.error();
  const auto kv_type = setup.kv_type < 0 ? (*table)->kv_type : static_cast<kernels::KvType>(setup.kv_type);
  model::KvGroups groups = shape->kv_groups(setup.block_tokens, kv_type, packing.share);
  if (seat.stages > 1) groups = groups.of_layers(packing.stage.begin(shape->layers.size()), packing.stage.end(shape->layers.size()));
  const model::WorkspaceShape workspace{.rows = setup.pass_rows,
                                        .logit_rows = setup.logit_rows,
                                        .members = team->size(),
                                        .parts = std::max(64, (setup.context + kernels::kChunkTokens - 1) / kernels::kChunkTokens)};
  auto space = model::Workspace::create(*shape, *weights, **table, workspace);
  if (!space) return space.error();
  Parts parts{std::move(*shape), **table, std::move(team), std::move(groups), std::move(tensors), packing, setup.context};
  return std::unique_ptr<RankModel>(new RankModel(std::move(parts), std::move(*weights), std::move(*space), seat));
}

RankModel::RankModel(Parts parts, model::Weights weights, model::Workspace space, const Seat& seat)
    : parts_(std::move(parts)), weight_bytes_(weights.packed_bytes), matrices_(weights.matrices),
      gather_(parts_.packing.share, seat.exchange, parts_.packing.stage, seat.relay),
      decoder_(make_decoder(std::make_shared<const model::Weights>(std::move(weights)))), space_(std::move(space)) {
  copies_.add(0, decoder_);
}

std::shared_ptr<const model::Decoder> RankModel::make_decoder(std::shared_ptr<const model::Weights> weights) {
  std::vector<model::RopeTable> ropes =
      model::rope_tables(parts_.shape, weights->rope_divisors, weights->stretched_divisors, parts_.context);
  return std::make_shared<const model::Decoder>(parts_.shape, std::move(weights), model::ClassHead(), std::move(ropes), parts_.table,
                                                *parts_.team, &adapters_, &gather_);
}

Ready RankModel::ready() const {
  return {.isa = parts_.table.name,
          .kv_type = static_cast<std::int32_t>(parts_.groups.layout(0).type),
          .weight_bytes = weight_bytes_,
          .block_bytes = parts_.groups.block_bytes(),
          .workspace_bytes = space_.storage.size()};
}

Result<void> RankModel::take_adapter(std::span<const std::byte> image) {
  auto received = read_adapter(image, {matrices_, parts_.shape.embedding, parts_.table});
  if (!received) return received.error();
  copies_.add(received->number, std::move(received->adapter));
  return {};
}

Result<Magnitudes> RankModel::measure(std::uint64_t weights, std::span<const std::byte> image) const {
  const std::shared_ptr<const model::Decoder> decoder = copies_.decoder(weights);
  if (decoder == nullptr) return Error{ErrorCode::kInternal, "magnitudes are about weights that are not there", {}};
  const auto received = read_adapter(image, {matrices_, parts_.shape.embedding, parts_.table});
  if (!received) return received.error();
  Magnitudes own;
  for (const model::ModelMatrix& base : model::matrices_of(parts_.shape, *decoder->weights)) {
    const model::AdaptedMatrix* lengths = received->adapter->find(base.packed->number);
    if (base.packed->data == nullptr || lengths == nullptr || lengths->magnitude.empty()) continue;
    const std::int64_t outputs = base.packed->outputs;
    if (std::ssize(lengths->magnitude) != outputs || lengths->low_rank.inputs != base.packed->inputs ||
        lengths->low_rank.up_columns < outputs)
      return Error{ErrorCode::kInternal, "an adapter does not fit the matrix that it names", {}};
    const kernels::PanelRange panels = parts_.packing.share.panels(base.packed->panels());
    const std::int64_t begin = std::min(outputs, panels.begin * kernels::kPanel), end = std::min(outputs, panels.end * kernels::kPanel);
    model::AdaptedMatrix matrix = *lengths;
    model::divide_by_norms(*base.packed, parts_.table, begin, end, matrix);
    own.parts.push_back({.matrix = static_cast<std::uint32_t>(received->adapter->place[base.packed->number]),
                         .begin = static_cast<std::uint32_t>(begin),
                         .count = static_cast<std::uint32_t>(end - begin)});
    own.magnitudes.insert(own.magnitudes.end(), matrix.magnitude.begin() + begin, matrix.magnitude.begin() + end);
  }
  return own;
}

Result<void> RankModel::take_weights(const NewerWeights& what, std::shared_ptr<const files::ByteSource> tensors) {
  const std::shared_ptr<const model::Decoder> older = copies_.decoder(what.older);
  if (older == nullptr) return Error{ErrorCode::kInternal, "newer weights are about some that are not there", {}};
  const Result<model::NewerTensors> newer = model::newer_tensors(parts_.tensors, std::move(tensors), what.is_partial != 0);
  if (!newer) return newer.error();
  kernels::ThreadTeam alone(1);  // the team computes passes
  auto weights = model::newer_weights(*older->weights, newer->file, parts_.shape, parts_.context, parts_.table, alone, parts_.packing);
  if (!weights) return weights.error();
  copies_.add(what.number, make_decoder(std::make_shared<const model::Weights>(std::move(*weights))));
  return {};
}

Result<void> RankModel::allocate(std::int32_t blocks, const files::Progress& progress) {
  if (blocks < 1) return Error{ErrorCode::kInvalidArgument, fmt::format("a pool of {} blocks was asked for", blocks), {}};
  auto arena = model::KvArena::create(parts_.groups, blocks);
  if (!arena) return arena.error();
  kv_.emplace(std::move(*arena));
  kv_->prefault(*parts_.team, progress);
  return {};
}

void RankModel::move(const Moves& moves) {
  require(kv_.has_value(), "there is no pool");
  const auto in_pool = [&](std::int32_t block) { return block >= 0 && block < kv_->blocks(); };
  for (const Moves::Fork& fork : moves.forks) require(in_pool(fork.from) && in_pool(fork.to), "a fork out of the pool");
  require(std::ranges::all_of(moves.given_back, in_pool), "a block out of the pool is given back");
  for (const Moves::Fork& fork : moves.forks) std::memcpy(kv_->block(fork.to).data(), kv_->block(fork.from).data(), kv_->block_bytes());
  if (!moves.given_back.empty()) kv_->give_back(moves.given_back);
}

// Bytes of them all.
std::size_t RankModel::check(std::span<const BlockPlace> places) const {
  require(kv_.has_value(), "there is no pool");
  std::size_t bytes = 0;
  for (const BlockPlace& place : places) {
    require(place.block >= 0 && place.block < kv_->blocks() && place.group >= 0 && place.group < parts_.groups.count(),
            "a block out of the pool");
    bytes += parts_.groups.layout(place.group).block_bytes();
  }
  return bytes;
}

void RankModel::save(std::span<const BlockPlace> places, Bytes& out) const {
  out.assign(check(places), std::byte{0});
  std::byte* to = out.data();
  for (const BlockPlace& place : places) {
    const model::KvLayout& layout = parts_.groups.layout(place.group);
    const std::byte* from = kv_->block(place.block).data();
    layout.for_written([&](std::size_t at, std::size_t bytes) { std::memcpy(to + at, from + at, bytes); });
    to += layout.block_bytes();
  }
}

void RankModel::restore(const BlockContents& contents) {
  require(check(contents.places) == contents.bytes.size(), "blocks came with other bytes than they have");
  const std::byte* from = contents.bytes.data();
  for (const BlockPlace& place : contents.places) {
    const model::KvLayout& layout = parts_.groups.layout(place.group);
    std::byte* to = kv_->block(place.block).data();
    layout.for_written([&](std::size_t at, std::size_t bytes) { std::memcpy(to + at, from + at, bytes); });
    from += layout.block_bytes();
  }
}

void RankModel::run(const step::Pass& pass, const Uses& uses) {
  const Stopwatch watch(seconds_);
  use(uses);
  check(pass);
  decoder_->transformer.forward(pass, *kv_, space_);
  picked_ = static_cast<std::int64_t>(pass.picked.size());
}

// The weights of the pass, and in the table what its tokens name.
void RankModel::use(const Uses& uses) {
  decoder_ = copies_.decoder(uses.weights);
  require(decoder_ != nullptr, "weights that are not there");
  std::span<const Uses::Part> left = uses.parts;
  for (const Uses::Set& set : uses.sets) {
    require(set.index >= 1 && set.index <= model::AdapterTable::kMost && set.count <= left.size(), "adapters beyond the table");
    const std::span<const Uses::Part> parts = left.first(set.count);
    left = left.subspan(set.count);
    const auto known = used_.find(set.index);
    if (known != used_.end() && std::ranges::equal(known->second, parts)) continue;
    std::vector<model::AdapterSet::Part> made;
    for (const Uses::Part& part : parts) {
      made.push_back({copies_.adapter(part.adapter), part.scale});
      require(made.back().adapter != nullptr, "an adapter that is not there");
    }
    adapters_.set(set.index, std::make_shared<const model::AdapterSet>(std::move(made)));
    used_[set.index].assign(parts.begin(), parts.end());
  }
  for (const std::uint64_t number : uses.forgotten) forget(number);
}

// With the entries of the table that have it, which no pass names any more.
void RankModel::forget(std::uint64_t number) {
  copies_.forget(number);
  std::erase_if(used_, [&](const auto& entry) {
    const bool has = std::ranges::any_of(entry.second, [number](const Uses::Part& part) { return part.adapter == number; });
    if (has) adapters_.set(entry.first, nullptr);
    return has;
  });
}

// The server has checked its plan; what came over the wire is checked again, as far as memory depends on it.
void RankModel::check(const step::Pass& pass) const {
  require(kv_.has_value(), "there is no pool");
  require(!pass.tokens.empty() && std::ssize(pass.tokens) <= space_.shape.rows, "too many tokens in a pass");
  const auto holds = [&](std::uint32_t begin, std::size_t count) {
    return begin <= pass.blocks.size() && count <= pass.blocks.size() - begin;
  };
  require(pass.given_parts == 1, "ranks add no vectors behind layers");
  const std::size_t vectors = pass.given.size() / static_cast<std::size_t>(parts_.shape.embedding);
  for (const step::PassToken& token : pass.tokens) {
    require(token.token >= 0 && token.token < parts_.shape.vocab, "a token beyond the vocabulary");
    require(token.position >= 0 && token.position < parts_.context, "a position beyond the context");
    require(std::int64_t{token.table_size} * parts_.groups.block_tokens() > token.position &&
                holds(token.tables, std::size_t{token.table_size} * parts_.groups.groups.size()),
            "block tables that do not cover a position");
    require(token.given == step::PassToken::kEmbedded || (token.given >= 0 && static_cast<std::size_t>(token.given) < vectors),
            "a vector that is not there");
    require(token.adapter == 0 || used_.contains(token.adapter), "adapters that are not there");
    require(token.ahead == 0, "ranks attend to nothing that comes later");
  }
  require(std::ranges::all_of(pass.blocks, [&](std::int32_t block) { return block >= -1 && block < kv_->blocks(); }),
          "a block out of the pool");
  require(std::ranges::is_sorted(pass.picked) &&
              std::ranges::all_of(pass.picked, [&](std::int32_t i) { return i >= 0 && i < std::ssize(pass.tokens); }),
          "a token is picked that is not there");
  const auto state_blocks = static_cast<std::size_t>(parts_.groups.states.blocks());
  for (const step::PassSequence& sequence : pass.sequences) {
    require(sequence.first >= 0 && sequence.count > 0 && sequence.first + sequence.count <= std::ssize(pass.tokens),
            "a sequence of no tokens");
    require(holds(sequence.state, state_blocks), "a state that is not there");
    require(sequence.snapshot_begin <= pass.snapshots.size() && sequence.snapshot_count <= pass.snapshots.size() - sequence.snapshot_begin,
            "a snapshot that is not there");
  }
  for (const step::PassSnapshot& snapshot : pass.snapshots) require(holds(snapshot.state, state_blocks), "a snapshot's state is not there");
}

model::Rows RankModel::logits(const Wanted& wanted) {
  require(wanted.begin >= 0 && wanted.count > 0 && wanted.count <= space_.shape.logit_rows && wanted.begin + wanted.count <= picked_,
          "logits of tokens that were not picked");
  const Stopwatch watch(seconds_);
  decoder_->transformer.logits(wanted.begin, wanted.count, space_);
  return space_.logits;
}

void RankModel::hidden(std::int64_t picked, std::span<float> out) {
  require(picked >= 0 && picked < picked_ && std::ssize(out) == parts_.shape.embedding, "a state of a token that was not picked");
  const Stopwatch watch(seconds_);
  decoder_->transformer.hidden(picked, space_, out.data());
}

Times RankModel::take_times() {
  const double exchange = gather_.take_seconds();
  return {.compute = std::exchange(seconds_, 0.0) - exchange, .exchange = exchange};
}

}  // namespace braid::ranks
