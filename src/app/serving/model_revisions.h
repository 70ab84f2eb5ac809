// What rows of a model's steps may name: revisions of its weights, each with the adapters of a request.
#pragma once

#include "app/serving/turns.h"
#include "braid/generation_request.h"
#include "braid/result.h"
#include "model/adapters/adapter.h"
#include "model/decoder.h"
#include "model/language_model.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace braid::app {

// Loop only. The model and the workers outlive it; what it has given out may not.
class ModelRevisions {
 public:
  // A revision of the weights.
  struct Base {
    std::shared_ptr<const model::Decoder> decoder;
    std::string revision;  // empty: that which was loaded
    // Adapters that follow from the weights, as they are for these, by their revisions; while they are loaded.
    std::map<std::string, std::weak_ptr<const model::Adapter>, std::less<>> remade = {};
  };

  ModelRevisions(boost::asio::thread_pool& workers, model::LanguageModel& model);
  ~ModelRevisions();
  ModelRevisions(const ModelRevisions&) = delete;
  ModelRevisions& operator=(const ModelRevisions&) = delete;

  // That new requests get.
  const Base& base() const;
  void replace_base(Base base);
  // Who has been given the use of an older one, and has not submitted anything yet, gets the current one then.
  void retire_older();
  // Likewise whoever uses an adapter by that name (AdapterSet::Part), in whose place there is another one.
  void retire(const void* name, const model::AdapterSet::Part& newer);
  // One that follows from the weights, made for the current ones since they are that.
  void add_made(const std::shared_ptr<const model::Adapter>& adapter);

  // Returns when nobody uses an older one any more. One caller at a time; it may be destroyed meanwhile.
  boost::asio::awaitable<void> older_gone() const;

  // The base with these adapters; none: the base alone. It stands for them while its lease lives, and is to be made current() when it is
  // submitted. kOverloaded: too many are in use; of current() also kNotFound: one that follows from the weights was unloaded before they were
  // replaced.
  Result<AdapterUse> use(std::vector<model::AdapterSet::Part> parts);
  Result<AdapterUse> current(const AdapterUse& used);
  // Of what is submitted: the same adapters on the base that is current now; as it is where that cannot be.
  AdapterUse newer(const AdapterUse& submitted);
  // The weights that what is submitted is computed with.
  std::shared_ptr<const model::Decoder> decoder_of(const AdapterUse& submitted) const;
  // Whether what is submitted uses an adapter by that name; and then, on the current base, with another one in its place. Nothing: it does
  // not, or that cannot be.
  static bool uses(const AdapterUse& submitted, const void* name);
  std::optional<AdapterUse> with(const AdapterUse& submitted, const void* name, const model::AdapterSet::Part& newer);

  // Of whatever changes what may be used: loads of adapters, updates of the weights. Who has it waits for nobody who uses any of it.
  Turns turns;

 private:
  struct State;
  class Entry;
  struct Lease;

  Result<AdapterUse> use_newer(std::vector<model::AdapterSet::Part> parts);
  Result<std::shared_ptr<const Entry>> entry_of(const std::string& key, std::vector<model::AdapterSet::Part> parts);

  const std::shared_ptr<State> state_;
  // By revision and names, of what is in use.
  std::map<std::string, std::weak_ptr<const Entry>, std::less<>> entries_;
  std::map<std::string, std::weak_ptr<Lease>, std::less<>> leases_;
};

}  // namespace braid::app
