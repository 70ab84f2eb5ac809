#include "ranks/remote_passes.h"

#include "model/adapters/adapter_table.h"
#include "model/decoder.h"
#include "model/require.h"
#include "ranks/adapter_image.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace braid::ranks {

// Before any row, in the order in which one process does it: what is loaded may be a block that was saved.
void RemotePasses::move(const step::StepPlan& plan) {
  model::require(plan.checks.empty(), "blocks of ranks are not compared");
  model::require(blocks_.has_value() || (plan.saves.empty() && plan.loads.empty()), "blocks of these ranks do not leave them");
  if (!plan.saves.empty()) save(plan.saves);
  moves_.forks.clear();
  moves_.given_back.clear();
  for (const step::BlockFork& fork : plan.forks) moves_.forks.push_back({fork.from, fork.to});
  if (!plan.loads.empty()) {
    tell_moves();
    load(plan.loads);
  }
  moves_.given_back.assign(plan.given_back.begin(), plan.given_back.end());
  tell_moves();
}

void RemotePasses::tell_moves() {
  if (moves_.empty()) return;
  write(moves_, bytes_);
  tell(Kind::kMoves);
  moves_.forks.clear();
}

// Of each rank its part, to where one process has it.
void RemotePasses::save(std::span<const step::BlockCopy> saves) {
  contents_.places.clear();
  contents_.bytes.clear();
  for (const step::BlockCopy& save : saves) {
    contents_.places.push_back({save.block, save.group});
    const std::size_t used = blocks_->whole_bytes(save.group);
    std::memset(save.bytes + used, 0, blocks_->record_bytes() - used);
  }
  write(contents_, bytes_);
  tell(Kind::kSave);
  for (std::int32_t rank = 0; rank < blocks_->ranks(); ++rank) {
    const auto answer = group_->values(static_cast<std::size_t>(rank));
    if (!answer) lose(answer.error().message);
    std::span<const std::byte> left = *answer;
    for (const step::BlockCopy& save : saves) {
      const std::size_t part = blocks_->part_bytes(save.group);
      if (left.size() < part) lose("a rank has sent less of a block than it has");
      blocks_->put(rank, save.group, left.data(), save.bytes);
      left = left.subspan(part);
    }
  }
}

void RemotePasses::load(std::span<const step::BlockCopy> loads) {
  require_ranks();
  for (std::int32_t rank = 0; rank < blocks_->ranks(); ++rank) {
    contents_.places.clear();
    std::size_t bytes = 0;
    for (const step::BlockCopy& load : loads) bytes += blocks_->part_bytes(load.group);
    contents_.bytes.resize(bytes);
    std::byte* to = contents_.bytes.data();
    for (const step::BlockCopy& load : loads) {
      contents_.places.push_back({load.block, load.group});
      blocks_->take(rank, load.group, load.bytes, to);
      to += blocks_->part_bytes(load.group);
    }
    write(contents_, bytes_);
    if (const Result<void> told = group_->tell(static_cast<std::size_t>(rank), Kind::kLoad, bytes_); !told) lose(told.error().message);
  }
}

// Says at its end that nobody needs the number any more.
class RemotePasses::RankCopy final : public model::Copies {
 public:
  RankCopy(std::uint64_t its_number, std::shared_ptr<Forgotten> forgotten) : Copies(its_number), forgotten_(std::move(forgotten)) {}
  ~RankCopy() override {
    const std::lock_guard lock(forgotten_->mutex);
    forgotten_->numbers.push_back(number);
    forgotten_->any = true;
  }

 private:
  const std::shared_ptr<Forgotten> forgotten_;
};

std::shared_ptr<const model::Copies> RemotePasses::loaded() { return std::make_shared<const RankCopy>(0, forgotten_); }

// Of one that is refused, whoever has taken it forgets it: no pass has named it.
Result<std::shared_ptr<const model::Copies>> RemotePasses::hand_out(const model::Adapter& adapter) {
  std::shared_ptr<const model::Copies> copies = std::make_shared<const RankCopy>(++handed_out_, forgotten_);
  Bytes bytes;
  write_adapter(copies->number, adapter, bytes);
  if (const Result<void> taken = group_->hand_out({{Kind::kAdapter, bytes}}); !taken) return taken.error();
  return copies;
}

// Each has the weights of some outputs. Of one that several have, all say the same.
Result<void> RemotePasses::measure(model::Adapter& adapter, const model::Copies& weights) {
  Bytes number, image;
  write(weights.number, number);
  write_adapter(0, adapter, image);
  std::vector<Bytes> answers;
  if (const Result<void> taken = group_->hand_out({{Kind::kLengths, number}, {Kind::kAdapter, image}}, &answers); !taken) return taken;
  std::vector<std::vector<bool>> known;
  for (const model::AdaptedMatrix& matrix : adapter.matrices) known.emplace_back(matrix.magnitude.size());
  const Error refused{ErrorCode::kInternal, "ranks have said other magnitudes than an adapter has", {}};
  for (const Bytes& answer : answers) {
    Magnitudes said;
    if (!read(answer, said)) return refused;
    std::span<const float> left = said.magnitudes;
    for (const auto& [index, begin, count] : said.parts) {
      if (index >= known.size() || begin > known[index].size() || count > known[index].size() - begin || count > left.size())
        return refused;
      std::ranges::copy(left.first(count), adapter.matrices[index].magnitude.begin() + begin);
      std::fill_n(known[index].begin() + begin, count, true);
      left = left.subspan(count);
    }
  }
  for (const std::vector<bool>& all : known)
    if (std::ranges::find(all, false) != all.end()) return refused;
  return {};
}

Result<std::shared_ptr<const model::Copies>> RemotePasses::hand_out(const files::ByteSource& tensors, bool partial,
                                                                    const model::Copies& older) {
  std::shared_ptr<const model::Copies> copies = std::make_shared<const RankCopy>(++handed_out_, forgotten_);
  Bytes bytes;
  write(NewerWeights{copies->number, older.number, partial ? 1U : 0U}, bytes);
  if (const Result<void> taken = group_->hand_out({{Kind::kWeights, bytes}, {Kind::kTensors, tensors.bytes()}}); !taken)
    return taken.error();
  return copies;
}

// What its tokens name, each once.
void RemotePasses::collect_uses(const step::Pass& pass, const model::Decoder& decoder, const model::AdapterTable& adapters) {
  uses_.weights = decoder.copies->number;
  uses_.sets.clear();
  uses_.parts.clear();
  uses_.forgotten.clear();
  for (const step::PassToken& token : pass.tokens) {
    if (token.adapter == 0 || std::ranges::find(uses_.sets, token.adapter, &Uses::Set::index) != uses_.sets.end()) continue;
    const model::AdapterSet* set = adapters.find(token.adapter);
    model::require(set != nullptr, "a token names adapters that are not there");
    uses_.sets.push_back({token.adapter, static_cast<std::uint32_t>(set->parts.size())});
    for (const model::AdapterSet::Part& part : set->parts) uses_.parts.push_back({.adapter = part.copies->number, .scale = part.scale});
  }
  if (!forgotten_->any.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(forgotten_->mutex);
  forgotten_->any = false;
  uses_.forgotten.swap(forgotten_->numbers);
}

void RemotePasses::run(const step::Pass& pass, const model::Decoder& decoder, const model::AdapterTable& adapters) {
  require_ranks();
  collect_uses(pass, decoder, adapters);
  write(pass, uses_, bytes_);
  const auto times = group_->run(bytes_);
  if (!times) lose(times.error().message);
  const auto add = [](std::atomic<double>& sum, double value) {
    sum.store(sum.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
  };
  for (std::size_t rank = 0; rank < times_.size(); ++rank) {
    add(times_[rank].compute, (*times)[rank].compute);
    add(times_[rank].exchange, (*times)[rank].exchange);
  }
}

model::Rows RemotePasses::logits(std::int64_t begin, std::int64_t count) {
  logits_.resize(static_cast<std::size_t>(count * vocab_));
  const std::span<const std::byte> values = ask(Kind::kLogits, {begin, count}, logits_.size());
  std::memcpy(logits_.data(), values.data(), values.size());
  return {.data = logits_.data(), .stride = vocab_};
}

void RemotePasses::hidden(std::int64_t picked, std::span<float> out) {
  const std::span<const std::byte> values = ask(Kind::kHidden, {picked, 1}, out.size());
  std::memcpy(out.data(), values.data(), values.size());
}

void RemotePasses::tell(Kind kind) {
  require_ranks();
  if (const Result<void> told = group_->tell(kind, bytes_); !told) lose(told.error().message);
}

void RemotePasses::require_ranks() const {
  if (!lost_.empty()) throw RanksLost(lost_);
}

// What they had of the pool is gone with them, so nothing that follows can be computed.
void RemotePasses::lose(const std::string& why) {
  lost_ = why;
  if (on_lost_ && !is_abandoned_) on_lost_(why);
  throw RanksLost(why);
}

void RemotePasses::abandon() {
  is_abandoned_ = true;
  group_->abandon();
}

std::vector<Times> RemotePasses::times() const {
  std::vector<Times> times;
  for (const SharedTimes& rank : times_)
    times.push_back({rank.compute.load(std::memory_order_relaxed), rank.exchange.load(std::memory_order_relaxed)});
  return times;
}

std::span<const std::byte> RemotePasses::ask(Kind kind, const Wanted& wanted, std::size_t values) {
  write(wanted, bytes_);
  tell(kind);
  const auto answer = group_->values(group_->speaker());
  if (!answer) lose(answer.error().message);
  if (answer->size() != values * sizeof(float)) lose("a rank has sent another number of values than was asked for");
  return *answer;
}

}  // namespace braid::ranks
