// The adapters of one model that is served.
#pragma once

#include "app/serving/adapter_loading.h"
#include "braid/adapters.h"
#include "braid/served_model.h"
#include "model/adapters/adapter_table.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace braid::app {

// Loop only, but for the making of adapters. The model and the workers outlive it; what it has given out may not.
class ModelAdapters final : public Adapters {
 public:
  ModelAdapters(boost::asio::thread_pool& workers, model::AdapterTable& table, AdapterBase base);
  ~ModelAdapters() override;

  std::vector<AdapterFacts> list() const override;
  bool has(std::string_view name) const override { return find(name) != nullptr; }
  bool had_any() const override { return numbers_ > 0; }
  Result<std::shared_ptr<const ServedModel>> apply(std::shared_ptr<const ServedModel> base,
                                                   std::span<const AdapterChoice> choices) override;
  boost::asio::awaitable<Result<AdapterFacts>> load(std::string name, WeightSource source, bool replace) override;
  Result<void> unload(std::string_view name) override;

 private:
  struct Entry {
    AdapterFacts facts;
    std::shared_ptr<const LoadedAdapter> loaded;
  };
  // Which indices of the table are taken.
  struct Indices {
    model::AdapterTable* table = nullptr;  // null: the model is gone
    std::vector<std::uint32_t> free;
  };
  class Lease;

  const Entry* find(std::string_view name) const;
  Result<Entry*> chosen(const AdapterChoice& choice);
  Result<std::shared_ptr<const Lease>> lease(const std::string& revision, std::vector<model::AdapterSet::Part> parts);

  boost::asio::thread_pool& workers_;
  const AdapterBase base_;
  std::vector<Entry> entries_;  // in the order of their numbers
  std::uint32_t numbers_ = 0;   // given out
  const std::shared_ptr<Indices> indices_ = std::make_shared<Indices>();
  std::map<std::string, std::weak_ptr<const Lease>, std::less<>> leases_;  // by revision, of what is in use
  const std::shared_ptr<char> alive_ = std::make_shared<char>();           // asked after a wait
};

}  // namespace braid::app
