#include "app/serving/model_revisions.h"

#include "app/serving/background.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace braid::app {

namespace asio = boost::asio;

namespace {

// False: they do not have an adapter by that name, or the newer one could not be used with the others, or in that share.
bool put_in_place(std::vector<model::AdapterSet::Part>& parts, const void* name, const model::AdapterSet::Part& newer) {
  const auto part = std::ranges::find_if(parts, [&](const auto& each) { return each.name.get() == name; });
  if (part == parts.end()) return false;
  if ((parts.size() > 1 || part->scale != 1.0F) && !newer.adapter->is_linear()) return false;
  part->adapter = newer.adapter;
  part->copies = newer.copies;
  part->name = newer.name;
  return true;
}

}  // namespace

// Shared with leases, which may outlive the model.
struct ModelRevisions::State {
  asio::thread_pool* workers = nullptr;
  model::LanguageModel* model = nullptr;  // null: it is gone
  Base base;
  std::vector<std::uint32_t> free;                           // indices
  std::map<std::string, std::uint32_t, std::less<>> in_use;  // leases, by the base's revision
  Signal gone;                                               // one of them

  // Weights are unmapped elsewhere than on the loop, unless there is no memory to ask for that.
  void discard(std::shared_ptr<const void> unused) const noexcept { discard_on(*workers, std::move(unused)); }
  void forget_first() const {
    if (!base.revision.empty() && !in_use.contains("")) discard(model->forget_first());
  }
  bool has_older() const {
    return std::ranges::any_of(in_use, [this](const auto& known) { return known.first != base.revision; });
  }
};

// Keeps an index of the table for as long as rows may name it; 0 is no entry of it, but the weights that were loaded.
class ModelRevisions::Entry {
 public:
  Entry(std::shared_ptr<State> state, std::uint32_t its_index, std::vector<model::AdapterSet::Part> parts)
      : index(its_index), base(state->base.revision), state_(std::move(state)),
        set_(std::make_shared<const model::AdapterSet>(std::move(parts), state_->base.decoder)) {
    ++state_->in_use[base];
    if (index > 0) state_->model->adapters().set(index, set_);
  }
  ~Entry() {
    if (const auto known = state_->in_use.find(base); --known->second == 0) state_->in_use.erase(known);
    if (index > 0) state_->free.push_back(index);
    if (state_->model == nullptr) return;
    if (index > 0) state_->model->adapters().set(index, nullptr);
    state_->discard(std::move(set_));
    if (index == 0) state_->forget_first();
    state_->gone.notify();
  }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  const std::vector<model::AdapterSet::Part>& parts() const { return set_->parts; }
  const std::shared_ptr<const model::Decoder>& decoder() const { return set_->decoder; }

  const std::uint32_t index;
  const std::string base;

 private:
  const std::shared_ptr<State> state_;
  std::shared_ptr<const model::AdapterSet> set_;
};

// What a request has of an entry before it submits anything.
struct ModelRevisions::Lease {
  std::string revision;
  std::shared_ptr<const Entry> entry;               // null: it is retired
  std::vector<model::AdapterSet::Part> parts = {};  // of a retired one
};

ModelRevisions::ModelRevisions(asio::thread_pool& workers, model::LanguageModel& model) : state_(std::make_shared<State>()) {
  state_->workers = &workers;
  state_->model = &model;
  state_->base.decoder = model.first();
  for (std::uint32_t index = model::AdapterTable::kMost; index >= 1; --index) state_->free.push_back(index);
}

ModelRevisions::~ModelRevisions() {
  state_->model = nullptr;
  state_->base.decoder.reset();
}

const ModelRevisions::Base& ModelRevisions::base() const { return state_->base; }

void ModelRevisions::replace_base(Base base) {
  std::swap(state_->base, base);
  state_->discard(std::move(base.decoder));
  state_->forget_first();
}

asio::awaitable<void> ModelRevisions::older_gone() const {
  const std::shared_ptr<State> state = state_;
  while (state->model != nullptr && state->has_older()) co_await state->gone.wait();
}

void ModelRevisions::retire_older() {
  for (const auto& [revision, known] : leases_) {
    const std::shared_ptr<Lease> lease = known.lock();
    if (lease == nullptr || lease->entry == nullptr || lease->entry->base == state_->base.revision) continue;
    lease->parts = lease->entry->parts();
    lease->entry.reset();
  }
}

void ModelRevisions::retire(const void* name, const model::AdapterSet::Part& newer) {
  for (const auto& [revision, known] : leases_) {
    const std::shared_ptr<Lease> lease = known.lock();
    if (lease == nullptr) continue;
    std::vector<model::AdapterSet::Part> parts = lease->entry != nullptr ? lease->entry->parts() : lease->parts;
    if (!put_in_place(parts, name, newer)) continue;
    lease->parts = std::move(parts);
    lease->entry.reset();
  }
}

void ModelRevisions::add_made(const std::shared_ptr<const model::Adapter>& adapter) {
  if (adapter->follows_weights()) state_->base.remade[adapter->revision] = adapter;
}

Result<std::shared_ptr<const ModelRevisions::Entry>> ModelRevisions::entry_of(const std::string& key,
                                                                              std::vector<model::AdapterSet::Part> parts) {
  std::erase_if(entries_, [](const auto& known) { return known.second.expired(); });
  if (const auto known = entries_.find(key); known != entries_.end()) return known->second.lock();
  std::uint32_t index = 0;
  if (!key.empty()) {
    if (state_->free.empty())
      return Error{ErrorCode::kOverloaded,
                   fmt::format("{} adapters and revisions are in use at once: try again later", model::AdapterTable::kMost), ""};
    index = state_->free.back();
    state_->free.pop_back();
  }
  auto entry = std::make_shared<const Entry>(state_, index, std::move(parts));
  entries_[key] = entry;
  return std::shared_ptr<const Entry>(std::move(entry));
}

Result<AdapterUse> ModelRevisions::use(std::vector<model::AdapterSet::Part> parts) {
  std::string revision = state_->base.revision;
  for (const model::AdapterSet::Part& part : parts) {
    revision += (revision.empty() ? "" : "+") + part.adapter->revision;
    if (part.scale != 1.0F) revision += fmt::format("*{}", part.scale);
  }
  std::string key = revision;
  for (const model::AdapterSet::Part& part : parts) key += fmt::format("@{}", part.name.get());
  std::erase_if(leases_, [](const auto& known) { return known.second.expired(); });
  if (const auto known = leases_.find(key); known != leases_.end()) {
    const std::shared_ptr<Lease> lease = known->second.lock();
    if (lease->entry != nullptr) return AdapterUse{lease->entry->index, std::move(revision), lease};
  }
  Result<std::shared_ptr<const Entry>> entry = entry_of(key, std::move(parts));
  if (!entry) return entry.error();
  const std::uint32_t index = (*entry)->index;
  auto lease = std::make_shared<Lease>(Lease{revision, std::move(*entry), {}});
  leases_[key] = lease;
  return AdapterUse{index, std::move(revision), std::move(lease)};
}

Result<AdapterUse> ModelRevisions::current(const AdapterUse& used) {
  const auto lease = std::static_pointer_cast<const Lease>(used.lease);
  if (lease == nullptr) return used;
  if (lease->entry != nullptr) return AdapterUse{used.index, used.revision, lease->entry};
  const Result<AdapterUse> newer = use_newer(lease->parts);
  if (!newer) return newer.error();
  return current(*newer);
}

// Of parts that were made for an older base.
Result<AdapterUse> ModelRevisions::use_newer(std::vector<model::AdapterSet::Part> parts) {
  for (model::AdapterSet::Part& part : parts) {
    if (!part.adapter->follows_weights()) continue;
    const auto remade = state_->base.remade.find(part.adapter->revision);
    part.adapter = remade != state_->base.remade.end() ? remade->second.lock() : nullptr;
    if (part.adapter == nullptr)
      return Error{ErrorCode::kNotFound, "the adapter was unloaded, and the weights that its magnitudes follow from were replaced",
                   "model"};
  }
  return use(std::move(parts));
}

AdapterUse ModelRevisions::newer(const AdapterUse& submitted) {
  const auto entry = std::static_pointer_cast<const Entry>(submitted.lease);
  const Result<AdapterUse> newer = entry == nullptr ? use({}) : use_newer(entry->parts());
  return newer ? current(*newer).value() : submitted;
}

std::shared_ptr<const model::Decoder> ModelRevisions::decoder_of(const AdapterUse& submitted) const {
  const auto entry = std::static_pointer_cast<const Entry>(submitted.lease);
  return entry == nullptr ? state_->base.decoder : entry->decoder();
}

bool ModelRevisions::uses(const AdapterUse& submitted, const void* name) {
  const auto entry = std::static_pointer_cast<const Entry>(submitted.lease);
  return entry != nullptr && std::ranges::any_of(entry->parts(), [&](const auto& part) { return part.name.get() == name; });
}

std::optional<AdapterUse> ModelRevisions::with(const AdapterUse& submitted, const void* name, const model::AdapterSet::Part& newer) {
  const auto entry = std::static_pointer_cast<const Entry>(submitted.lease);
  if (entry == nullptr) return std::nullopt;
  std::vector<model::AdapterSet::Part> parts = entry->parts();
  if (!put_in_place(parts, name, newer)) return std::nullopt;
  const Result<AdapterUse> use = use_newer(std::move(parts));
  if (!use) return std::nullopt;
  return current(*use).value();
}

}  // namespace braid::app
