// The adapters of one encoder that is served.
#pragma once

#include "app/serving/adapter_names.h"
#include "app/serving/turns.h"
#include "braid/adapters.h"
#include "braid/served_model.h"
#include "model/encoders/encoder_adapter.h"
#include "model/encoders/encoder_adapter_builder.h"
#include "sched/encoding_engine.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace braid::app {

// Loop only, but for the making of adapters. All arguments outlive it; what it has given out may not. A lease is the set of adapters itself,
// so what is submitted goes on with them whatever becomes of their names.
class EncoderAdapters final : public Adapters {
 public:
  // `digest`: of the weights that were loaded.
  EncoderAdapters(boost::asio::thread_pool& workers, model::AdaptedEncoder base, std::string digest, sched::EncodingEngine& engine);

  std::vector<AdapterFacts> list() const override;
  bool has(std::string_view name) const override;
  bool had_any() const override { return had_any_; }
  bool take_heads() const override { return false; }
  Result<std::shared_ptr<const ServedModel>> apply(std::shared_ptr<const ServedModel> base,
                                                   std::span<const AdapterChoice> choices) override;
  Result<AdapterUse> current(const AdapterUse& applied) override;
  // Also kInvalidArgument: kKeep, since a text is read at once and has nothing to go on with.
  boost::asio::awaitable<Result<AdapterFacts>> load(std::string name, WeightSource source, std::optional<UpdateMode> replacing) override;
  Result<void> unload(std::string_view name) override;

  // All that another engine of the same encoder can have.
  std::shared_ptr<const KeptAdapters> keep() const;
  void restore(const KeptAdapters& kept);

 private:
  using Set = std::shared_ptr<const model::EncoderAdapterSet>;

  Set set_of(const std::string& revision, std::vector<model::EncoderAdapterSet::Part> parts);
  void end_users_of(const model::EncoderAdapter& older);

  boost::asio::thread_pool& workers_;
  const model::AdaptedEncoder base_;
  const std::string digest_;
  sched::EncodingEngine& engine_;
  std::vector<AdapterEntry> entries_;                                                       // in the order of their numbers
  std::map<std::string, std::weak_ptr<const model::EncoderAdapterSet>, std::less<>> sets_;  // of what is in use
  std::vector<std::weak_ptr<const model::EncoderAdapter>> ended_;                           // nobody is to begin with these
  std::uint32_t numbers_ = 0;                                                               // given out
  bool had_any_ = false;
  Turns turns_;                                                   // of loads
  const std::shared_ptr<char> alive_ = std::make_shared<char>();  // asked after a wait
};

}  // namespace braid::app
