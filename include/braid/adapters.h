// Adapters of a served model, as the HTTP side sees them: immutable revisions under names. Everything here belongs to the loop's thread.
#pragma once

#include "braid/generation_request.h"
#include "braid/result.h"
#include "braid/tunable_layer.h"
#include "braid/weights.h"

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace braid {

struct ServedModel;

// The revision that a name stands for.
struct AdapterFacts {
  std::string name;
  std::string revision;  // of all that its answers depend on, besides the base
  std::string path;      // of its folder or file
  std::int64_t created = 0;
  std::int32_t rank = 0;  // the largest
  std::int64_t parameters = 0;
  std::uint64_t bytes = 0;     // that it has taken
  std::uint32_t number = 0;    // in llama-server's list
  std::uint64_t requests = 0;  // that have named this revision
};

// One of those that a request names, by name or number.
struct AdapterChoice {
  std::string name;
  std::optional<std::uint32_t> number = {};
  float scale = 1.0F;
};

class Adapters {
 public:
  virtual ~Adapters() = default;

  // In the order of their numbers.
  virtual std::vector<AdapterFacts> list() const = 0;
  virtual bool has(std::string_view name) const = 0;
  virtual bool had_any() const = 0;  // now or before
  // Whether a head alone, as training jobs make it, can be one of them.
  virtual bool take_heads() const { return true; }

  // The base as these adapters make it, with an id and a fingerprint of its own; without any, as its weights are now. It stays the same while
  // it lives, whatever becomes of the names. kNotFound: no such adapter; kInvalidArgument: no such number, or they cannot be used together, or
  // in that share; kOverloaded: too many are in use.
  virtual Result<std::shared_ptr<const ServedModel>> apply(std::shared_ptr<const ServedModel> base,
                                                           std::span<const AdapterChoice> choices) = 0;

  // What is submitted for one of these: that, or the same adapters with newer weights of the base, where nobody is to begin with the older
  // ones any more. kOverloaded; kNotFound: one that follows from the base's weights has been unloaded.
  virtual Result<AdapterUse> current(const AdapterUse& applied) = 0;

  // A folder of PEFT, a GGUF file, or tensors of the adapter that has the name, whose configuration holds further.
  // Reads and prepares it elsewhere than on the loop and the strand; then the name stands for it. `replacing`: what becomes of requests that
  // use the one of that name; nothing: there is to be none. Whatever fails changes nothing. kInvalidArgument: there is one; or who uses it
  // cannot be told from who uses another one; or something of the files, which the message names.
  virtual boost::asio::awaitable<Result<AdapterFacts>> load(std::string name, WeightSource source, std::optional<UpdateMode> replacing) = 0;

  // Who uses it goes on. kNotFound.
  virtual Result<void> unload(std::string_view name) = 0;

  // The last layer of the base as `use`, which is current(), has it, with LoRA beside it. Made elsewhere than on the loop. kInvalidArgument
  // ("lora_config"): this model has no such layer, nothing of that name in it, or it takes more than
  // `most_bytes`.
  virtual boost::asio::awaitable<Result<std::shared_ptr<TunableLayer>>> tunable_layer(AdapterUse /*use*/, LoraShape /*lora*/,
                                                                                      std::uint64_t /*most_bytes*/) {
    co_return invalid_argument("LoRA is not trained on this model: it reads whole texts", "lora_config");
  }
};

}  // namespace braid
