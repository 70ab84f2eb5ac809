#include "app/serving/model_revisions.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <fmt/format.h>
#include <utility>

namespace braid::app {

namespace asio = boost::asio;

// Shared with leases, which may outlive the model.
struct ModelRevisions::State {
  asio::thread_pool* workers = nullptr;
  model::LanguageModel* model = nullptr;  // null: it is gone
  Base base;
  std::vector<std::uint32_t> free;                           // indices
  std::map<std::string, std::uint32_t, std::less<>> in_use;  // leases, by the base's revision
  Signal gone;                                               // one of them

  // Weights are unmapped elsewhere than on the loop.
  void discard(std::shared_ptr<const void> unused) const {
    asio::post(*workers, [unused = std::move(unused)] {});
  }
  void forget_first() const {
    if (!base.revision.empty() && !in_use.contains("")) discard(model->forget_first());
  }
  bool has_older() const {
    return std::ranges::any_of(in_use, [this](const auto& known) { return known.first != base.revision; });
  }
};

// Keeps an index of the table for as long as somebody may name it; 0 is no entry, but the weights that were loaded.
class ModelRevisions::Lease {
 public:
  Lease(std::shared_ptr<State> state, std::uint32_t its_index, std::shared_ptr<const model::AdapterSet> set)
      : index(its_index), state_(std::move(state)), base_(state_->base.revision), set_(std::move(set)) {
    ++state_->in_use[base_];
    if (index > 0) state_->model->adapters().set(index, set_);
  }
  ~Lease() {
    if (const auto known = state_->in_use.find(base_); --known->second == 0) state_->in_use.erase(known);
    if (index > 0) state_->free.push_back(index);
    if (state_->model == nullptr) return;
    if (index > 0) {
      state_->model->adapters().set(index, nullptr);
      state_->discard(std::move(set_));
    } else {
      state_->forget_first();
    }
    state_->gone.notify();
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  const std::uint32_t index;

 private:
  const std::shared_ptr<State> state_;
  const std::string base_;
  std::shared_ptr<const model::AdapterSet> set_;
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

Result<AdapterUse> ModelRevisions::use(std::string_view adapters, std::vector<model::AdapterSet::Part> parts) {
  const Base& base = state_->base;
  const std::string revision = fmt::format("{}{}{}", base.revision, base.revision.empty() || adapters.empty() ? "" : "+", adapters);
  std::erase_if(leases_, [](const auto& known) { return known.second.expired(); });
  if (const auto known = leases_.find(revision); known != leases_.end()) {
    const std::shared_ptr<const Lease> lease = known->second.lock();
    return AdapterUse{lease->index, revision, lease};
  }
  std::uint32_t index = 0;
  if (!revision.empty()) {
    if (state_->free.empty())
      return Error{ErrorCode::kOverloaded,
                   fmt::format("{} adapters and revisions are in use at once: try again later", model::AdapterTable::kMost), ""};
    index = state_->free.back();
    state_->free.pop_back();
  }
  auto lease = std::make_shared<const Lease>(state_, index, std::make_shared<const model::AdapterSet>(std::move(parts), base.decoder));
  leases_[revision] = lease;
  return AdapterUse{index, revision, std::move(lease)};
}

}  // namespace braid::app
