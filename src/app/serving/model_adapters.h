// The adapters of one model that is served.
#pragma once

#include "app/serving/adapter_loading.h"
#include "app/serving/adapter_names.h"
#include "app/serving/model_revisions.h"
#include "app/serving/running_requests.h"
#include "braid/adapters.h"
#include "braid/served_model.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::app {

// Loop only, but for the making of adapters. All arguments outlive it; what it has given out may not.
class ModelAdapters final : public Adapters {
 public:
  ModelAdapters(boost::asio::thread_pool& workers, ModelRevisions& revisions, AdapterBase base, const RunningRequests& running);

  std::vector<AdapterFacts> list() const override;
  bool has(std::string_view name) const override { return find(name) != nullptr; }
  bool had_any() const override { return had_any_; }
  Result<std::shared_ptr<const ServedModel>> apply(std::shared_ptr<const ServedModel> base,
                                                   std::span<const AdapterChoice> choices) override;
  Result<AdapterUse> current(const AdapterUse& applied) override { return revisions_.current(applied); }
  boost::asio::awaitable<Result<std::shared_ptr<TunableLayer>>> tunable_layer(AdapterUse use, LoraShape lora,
                                                                              std::uint64_t most_bytes) override;
  boost::asio::awaitable<Result<AdapterFacts>> load(std::string name, WeightSource source, std::optional<UpdateMode> replacing) override;
  Result<void> unload(std::string_view name) override;

  // Those at `paths`, files or folders of PEFT, are part of the model: all its requests use them, also those that name none.
  boost::asio::awaitable<Result<void>> use_always(std::vector<std::string> paths);

  // For another model of the same file, which has them all where it has the same weights. Without newer ones it has no adapters that were
  // made for those alone. Of other files, they are only known to have been there.
  std::shared_ptr<const KeptAdapters> keep() const;
  boost::asio::awaitable<void> restore(std::shared_ptr<const KeptAdapters> kept);

  // Those that follow from the weights, made for newer ones, while nothing else is loaded.
  using Remade = std::vector<std::pair<std::shared_ptr<const LoadedAdapter>, std::shared_ptr<const LoadedAdapter>>>;  // from what
  boost::asio::awaitable<Result<Remade>> remake(std::shared_ptr<const model::Decoder> newer) const;
  // What is still loaded of them takes its place. Before the base is replaced.
  void replace(const Remade& remade);

 private:
  using Entry = AdapterEntry;
  static std::vector<Entry> handed_out(const std::vector<Entry>& entries, const AdapterBase& base);
  const Entry* find(std::string_view name) const;
  void share(LoadedAdapter& loaded) const;
  void let_go(Entry unused) const;  // elsewhere than on the loop
  void tell_running(UpdateMode mode, const Entry& older, const Entry& newer);

  boost::asio::thread_pool& workers_;
  ModelRevisions& revisions_;
  const AdapterBase base_;
  const RunningRequests& running_;
  std::vector<Entry> entries_;               // in the order of their numbers
  std::uint32_t numbers_ = 0;                // given out
  std::weak_ptr<const AdaptedModel> plain_;  // the base as requests without adapters have it
  bool had_any_ = false;
  std::vector<AdapterChoice> own_;                                // that all requests use
  std::vector<std::string> own_paths_;                            // of these, or of those when the model was unloaded
  const std::shared_ptr<char> alive_ = std::make_shared<char>();  // asked after a wait
};

}  // namespace braid::app
