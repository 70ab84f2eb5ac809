#include "app/serving/model_weights.h"

#include "app/clock.h"
#include "app/serving/served_engine.h"
#include "app/serving/weight_files.h"
#include "cache/prefix_index.h"
#include "registry/digest.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>
#include <optional>
#include <span>
#include <spdlog/spdlog.h>
#include <utility>

namespace braid::app {

namespace asio = boost::asio;

namespace {

// What an update makes of a file, and the digests of the tensors that it has.
struct NewerModel {
  std::shared_ptr<const model::Decoder> decoder;
  std::map<std::string, std::string> digests;
  std::shared_ptr<const files::ByteSource> file;
};

class DigestSink final : public model::TensorSink {
 public:
  void begin(const std::string& name, std::vector<std::int64_t> shape) override {
    digests.push_back({name, std::move(shape), {}});
    hasher_.emplace();
  }
  void add(std::span<const float> values) override { hasher_->add({reinterpret_cast<const char*>(values.data()), values.size_bytes()}); }
  void end() override { digests.back().sha256 = hasher_->finish().digits(); }

  std::vector<TensorDigest> digests;

 private:
  std::optional<registry::Hasher> hasher_;
};

Result<NewerModel> read_newer_model(model::LanguageModel& model, const model::LoadedTensors& tensors, const model::Decoder& older,
                                    const WeightSource& source, std::shared_ptr<const files::ByteSource> known) {
  if (known == nullptr) {
    auto file = read_weights(source);
    if (!file) return file.error();
    known = std::move(*file);
  }
  const Result<model::NewerTensors> newer = model::newer_tensors(tensors, known, source.partial);
  if (!newer) return newer.error();
  auto weights = model.newer_weights(*older.weights, newer->file);
  if (!weights) return weights.error();
  std::shared_ptr<const model::Copies> copies;
  if (model.passes() != nullptr) {
    auto handed_out = model.passes()->hand_out(*known, source.partial, *older.copies);
    if (!handed_out) return handed_out.error();
    copies = std::move(*handed_out);
  }
  return NewerModel{model.make_decoder(std::move(*weights), std::move(copies)), newer->digests, std::move(known)};
}

}  // namespace

std::uint64_t KeptWeights::bytes() const {
  std::uint64_t sum = 0;
  for (const File& file : files) sum += file.bytes->bytes().size();
  return sum;
}

ModelWeights::ModelWeights(asio::thread_pool& workers, model::LanguageModel& model, std::shared_ptr<const model::LoadedTensors> tensors,
                           std::string revision, ModelRevisions& revisions, ModelAdapters& adapters, const RunningRequests& running)
    : workers_(workers), model_(model), tensors_(std::move(tensors)), first_(std::move(revision)), revisions_(revisions),
      adapters_(adapters), running_(running) {
  facts_.revision = first_;
  facts_.created = now_in_unix_seconds();
}

// Follows from the values alone once none is left of those that were loaded.
std::string ModelWeights::revision_of(const Digests& digests) const {
  std::string parts = digests.size() == tensors_->tensors.size() ? std::string() : first_;
  for (const auto& [name, digest] : digests) parts += fmt::format("\n{} {}", name, digest);
  const cache::PrefixKey key = cache::xxh3_key(std::as_bytes(std::span(parts)));
  return fmt::format("{:016x}{:016x}", key.high, key.low);
}

// A file of which nothing is left is of no use any more.
std::shared_ptr<const KeptWeights> ModelWeights::kept_with(Bytes bytes, bool is_partial, const Digests& its_digests) const {
  auto kept = std::make_shared<KeptWeights>();
  kept->base = first_;
  KeptWeights::File newest{std::move(bytes), is_partial, {}};
  for (const auto& [name, digest] : its_digests) newest.tensors.insert(name);
  if (is_partial && kept_ != nullptr) kept->files = kept_->files;
  for (KeptWeights::File& file : kept->files) std::erase_if(file.tensors, [&](const auto& name) { return newest.tensors.contains(name); });
  std::erase_if(kept->files, [](const KeptWeights::File& file) { return file.tensors.empty(); });
  kept->files.push_back(std::move(newest));
  return kept;
}

std::shared_ptr<const KeptWeights> ModelWeights::keep() const {
  if (kept_ == nullptr) return nullptr;
  auto kept = std::make_shared<KeptWeights>(*kept_);
  kept->facts = facts_;
  return kept;
}

asio::awaitable<Result<void>> ModelWeights::restore(std::shared_ptr<const KeptWeights> kept) {
  if (kept->base != first_) {
    spdlog::warn("the model's files have changed: it has their weights, and no more those of the revision {}", kept->facts.revision);
    co_return Result<void>();
  }
  for (const KeptWeights::File& file : kept->files) {
    WeightSource source;
    source.partial = file.is_partial;
    if (&file == &kept->files.back()) source.revision = kept->facts.revision;
    asio::awaitable<Result<WeightFacts>> replacing = replace(std::move(source), file.bytes, UpdateMode::kFinish);
    const Result<WeightFacts> replaced = co_await std::move(replacing);
    if (!replaced)
      co_return Error{
          replaced.error().code, fmt::format("its newer weights, revision {}: {}", kept->facts.revision, replaced.error().message), {}};
  }
  facts_ = kept->facts;
  kept_ = std::move(kept);
  co_return Result<void>();
}

asio::awaitable<Result<WeightFacts>> ModelWeights::update(WeightSource source, UpdateMode mode) {
  return replace(std::move(source), {}, mode);
}

asio::awaitable<Result<WeightFacts>> ModelWeights::replace(WeightSource source, Bytes bytes, UpdateMode mode) {
  const std::weak_ptr<char> alive = alive_;
  const Error gone{ErrorCode::kDraining, "the model is being unloaded", {}};
  // Named, because g++ 12 destroys some temporaries of such an expression twice.
  asio::awaitable<Turns::Turn> following = updates_.take();
  const Turns::Turn place = co_await std::move(following);
  if (alive.expired()) co_return gone;
  // Loads of adapters go on meanwhile: who uses older weights may wait for one. Nothing but an update makes others of them.
  asio::awaitable<void> leaving = revisions_.older_gone();
  co_await std::move(leaving);
  if (alive.expired()) co_return gone;
  asio::awaitable<Turns::Turn> taking = revisions_.turns.take();
  const Turns::Turn turn = co_await std::move(taking);
  if (alive.expired()) co_return gone;
  const std::string expected = source.revision;
  const bool is_partial = source.partial;
  auto making = [](model::LanguageModel& model, std::shared_ptr<const model::LoadedTensors> tensors,
                   std::shared_ptr<const model::Decoder> older, WeightSource from, Bytes known) -> asio::awaitable<Result<NewerModel>> {
    co_return read_newer_model(model, *tensors, *older, from, std::move(known));
  };
  asio::awaitable<Result<NewerModel>> made = making(model_, tensors_, revisions_.base().decoder, std::move(source), std::move(bytes));
  Result<NewerModel> newer = co_await asio::co_spawn(workers_, std::move(made), asio::use_awaitable);
  if (alive.expired()) co_return gone;
  if (!newer) co_return as_refusal(newer.error());
  Digests digests = digests_;
  for (const auto& [name, digest] : newer->digests) digests[name] = digest;
  if (const auto other = other_revision(expected, revision_of(digests))) co_return *other;
  asio::awaitable<Result<ModelAdapters::Remade>> remaking = adapters_.remake(newer->decoder);
  const Result<ModelAdapters::Remade> remade = co_await std::move(remaking);
  if (alive.expired()) co_return gone;
  if (!remade) co_return remade.error();
  const WeightFacts facts{revision_of(digests), facts_.version, now_in_unix_seconds(), facts_.updates + 1};
  WeightFacts current = facts;
  ModelRevisions::Base base{std::move(newer->decoder), facts.revision};
  for (const auto& [older, adapter] : *remade) base.remade.emplace(adapter->adapter->revision, adapter->adapter);
  std::shared_ptr<const KeptWeights> kept;
  if (model_.passes() != nullptr) kept = kept_with(std::move(newer->file), is_partial, newer->digests);
  // All that could fail is done.
  adapters_.replace(*remade);
  revisions_.replace_base(std::move(base));
  digests_.swap(digests);
  facts_ = std::move(current);
  kept_ = std::move(kept);
  if (mode != UpdateMode::kFinish) revisions_.retire_older();
  if (mode == UpdateMode::kKeep) running_.change([this](const AdapterUse& older) { return revisions_.newer(older); });
  if (mode == UpdateMode::kAbort)
    running_.end([](const AdapterUse&) { return true; }, {ErrorCode::kCancelled, "the weights of the model were replaced", {}});
  co_return facts;
}

asio::awaitable<Result<std::vector<TensorDigest>>> ModelWeights::digests() {
  if (model_.passes() != nullptr)
    co_return invalid_argument(
        "each rank of this model has parts of its tensors, and nobody a whole one to make a digest of: serve it without --ranks for that",
        "model");
  auto adding = [](model::LanguageModel& model,
                   std::shared_ptr<const model::Decoder> decoder) -> asio::awaitable<std::vector<TensorDigest>> {
    DigestSink sink;
    model.tell_values(*decoder->weights, sink);
    std::ranges::sort(sink.digests, {}, &TensorDigest::name);
    co_return std::move(sink.digests);
  };
  asio::awaitable<std::vector<TensorDigest>> added = adding(model_, revisions_.base().decoder);
  co_return co_await asio::co_spawn(workers_, std::move(added), asio::use_awaitable);
}

}  // namespace braid::app
