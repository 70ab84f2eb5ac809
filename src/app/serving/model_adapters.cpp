#include "app/serving/model_adapters.h"

#include "app/serving/background.h"
#include "model/training/tuned_layer.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <utility>

namespace braid::app {

namespace asio = boost::asio;

ModelAdapters::ModelAdapters(asio::thread_pool& workers, ModelRevisions& revisions, AdapterBase base, const RunningRequests& running)
    : workers_(workers), revisions_(revisions), base_(std::move(base)), running_(running) {}

std::vector<AdapterFacts> ModelAdapters::list() const {
  std::vector<AdapterFacts> all;
  for (const Entry& entry : entries_) all.push_back(entry.facts);
  return all;
}

const ModelAdapters::Entry* ModelAdapters::find(std::string_view name) const {
  const auto found = std::ranges::find_if(entries_, [&](const Entry& entry) { return entry.facts.name == name; });
  return found == entries_.end() ? nullptr : &*found;
}

// Of the same adapter under another name there is one: all are made for the current weights.
void ModelAdapters::share(LoadedAdapter& loaded) const {
  const auto same = std::ranges::find(entries_, loaded.adapter->revision, [](const Entry& entry) { return entry.facts.revision; });
  if (same == entries_.end()) return;
  discard_on(workers_, std::exchange(loaded.adapter, same->loaded->adapter));
  loaded.copies = same->loaded->copies;
}

// The name stands for the newer one already.
void ModelAdapters::tell_running(UpdateMode mode, const Entry& older, const Entry& newer) {
  if (mode == UpdateMode::kFinish || older.name == newer.name) return;
  const model::AdapterSet::Part part{newer.loaded->adapter, 1.0F, newer.loaded->copies, newer.name};
  const void* const name = older.name.get();
  revisions_.retire(name, part);
  if (mode == UpdateMode::kKeep) {
    running_.change([&](const AdapterUse& use) { return revisions_.with(use, name, part); });
  } else {
    running_.end([&](const AdapterUse& use) { return ModelRevisions::uses(use, name); },
                 {ErrorCode::kCancelled, "the adapter's weights were replaced", {}});
  }
}

Result<std::shared_ptr<const ServedModel>> ModelAdapters::apply(std::shared_ptr<const ServedModel> base,
                                                                std::span<const AdapterChoice> asked) {
  std::vector<AdapterChoice> choices = own_;
  choices.insert(choices.end(), asked.begin(), asked.end());
  if (const Result<void> fits = check_adapter_count(choices.size()); !fits) return fits.error();
  std::vector<model::AdapterSet::Part> parts;
  const model::ClassHead* head = nullptr;  // that one of them brings
  std::string names;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const AdapterChoice& choice = choices[i];
    const Result<Entry*> entry = chosen_adapter(entries_, choice);
    if (!entry) return entry.error();
    if (choice.scale == 0.0F) continue;
    const AdapterFacts& facts = (*entry)->facts;
    const bool whole = choices.size() == 1 && choice.scale == 1.0F;
    if (!whole && !(*entry)->loaded->adapter->is_linear()) return only_whole(facts.name);
    parts.push_back({(*entry)->loaded->adapter, choice.scale, (*entry)->loaded->copies, (*entry)->name});
    if (parts.back().adapter->head.classes() > 0) head = &parts.back().adapter->head;
    if (i >= own_.size()) names += (names.empty() ? "" : "+") + facts.name;
    ++(*entry)->facts.requests;
  }
  const bool is_plain = parts.empty();
  Result<AdapterUse> use = revisions_.use(std::move(parts));
  if (!use) return use.error();
  if (const auto known = is_plain ? plain_.lock() : nullptr; known && known->base == base && known->served.adapter.lease == use->lease)
    return std::shared_ptr<const ServedModel>(known, &known->served);
  const std::shared_ptr<AdaptedModel> adapted = adapted_model(base, std::move(*use), names, head != nullptr ? head->classes() : 0);
  adapted->served.is_adapted = !is_plain;
  if (is_plain) plain_ = adapted;
  return std::shared_ptr<const ServedModel>(adapted, &adapted->served);
}

asio::awaitable<Result<std::shared_ptr<TunableLayer>>> ModelAdapters::tunable_layer(AdapterUse use, LoraShape lora,
                                                                                    std::uint64_t most_bytes) {
  using Layer = Result<std::shared_ptr<TunableLayer>>;
  if (base_.model.passes() != nullptr)
    co_return invalid_argument("LoRA is not trained on this model: several processes compute it", "lora_config");
  auto making = [](AdapterBase base, std::shared_ptr<const model::Decoder> decoder, LoraShape shape,
                   std::uint64_t most) -> asio::awaitable<Layer> {
    co_return model::tune_last_layer({base.model.shape(), base.folder}, *decoder, base.table, shape, most);
  };
  asio::awaitable<Layer> made = making(base_, revisions_.decoder_of(use), std::move(lora), most_bytes);
  Layer layer = co_await asio::co_spawn(workers_, std::move(made), asio::use_awaitable);
  if (!layer) co_return invalid_argument(layer.error().message, "lora_config");
  co_return layer;
}

asio::awaitable<Result<void>> ModelAdapters::use_always(std::vector<std::string> paths) {
  std::vector<AdapterChoice> own;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const std::string& path = paths[i];
    const std::string name = own.empty() ? "own" : fmt::format("own-{}", own.size() + 1);
    // It was kept when the model was unloaded, unless the model has been made anew since, of other files.
    const bool is_kept = has(name) && i < own_paths_.size() && own_paths_[i] == path;
    if (!is_kept) {
      WeightSource source;
      source.path = path;
      asio::awaitable<Result<AdapterFacts>> loading = load(name, std::move(source), UpdateMode::kFinish);
      const Result<AdapterFacts> loaded = co_await std::move(loading);
      if (!loaded) co_return Error{loaded.error().code, fmt::format("its adapter {}: {}", path, loaded.error().message), {}};
    }
    own.push_back(AdapterChoice{name});
  }
  own_ = std::move(own);
  own_paths_ = std::move(paths);
  co_return Result<void>();
}

asio::awaitable<Result<AdapterFacts>> ModelAdapters::load(std::string name, WeightSource source, std::optional<UpdateMode> replacing) {
  if (const Result<void> sound = check_adapter_name(name); !sound) co_return sound.error();
  const std::weak_ptr<char> alive = alive_;
  const Error gone{ErrorCode::kDraining, "the model is being unloaded", ""};
  // Named, because g++ 12 destroys some temporaries of such an expression twice.
  asio::awaitable<Turns::Turn> taking = revisions_.turns.take();
  const Turns::Turn turn = co_await std::move(taking);
  if (alive.expired()) co_return gone;
  had_any_ = true;
  Result<NamedBefore> before = named_before(entries_, name, source, replacing.has_value());
  if (!before) co_return before.error();
  const std::string expected = source.revision;
  auto making = [](WeightSource from, std::shared_ptr<const LoadedAdapter> older, AdapterBase base,
                   std::shared_ptr<const model::Decoder> decoder) -> asio::awaitable<Result<LoadedAdapter>> {
    co_return load_adapter(from, older.get(), base, *decoder);
  };
  asio::awaitable<Result<LoadedAdapter>> made = making(std::move(source), std::move(before->loaded), base_, revisions_.base().decoder);
  Result<LoadedAdapter> loaded = co_await asio::co_spawn(workers_, std::move(made), asio::use_awaitable);
  if (alive.expired()) co_return gone;
  if (!loaded) co_return loaded.error();
  Result<AdapterFacts> facts = facts_of(*loaded, name, before->path, expected);
  if (!facts) co_return facts.error();
  share(*loaded);
  revisions_.add_made(loaded->adapter);
  auto older = give_name(entries_, numbers_, *facts, std::make_shared<const LoadedAdapter>(std::move(*loaded)));
  if (!older) co_return *facts;
  Entry& newer = *std::ranges::find_if(entries_, [&](const Entry& entry) { return entry.facts.name == name; });
  if (older->facts.revision == newer.facts.revision) newer.name = older->name;
  tell_running(replacing.value_or(UpdateMode::kFinish), *older, newer);
  let_go(std::move(*older));
  co_return *facts;
}

void ModelAdapters::let_go(Entry unused) const {
  discard_on(workers_, std::move(unused.loaded));
  discard_on(workers_, std::move(unused.of_first));
}

Result<void> ModelAdapters::unload(std::string_view name) {
  if (std::ranges::find(own_, name, &AdapterChoice::name) != own_.end())
    return invalid_argument(fmt::format("the adapter '{}' is a part of the model", name), "name");
  if (std::optional<Entry> taken = take_entry(entries_, name)) {
    let_go(std::move(*taken));
    return {};
  }
  return Error{ErrorCode::kNotFound, fmt::format("the adapter '{}' is not loaded", name), "name"};
}

std::shared_ptr<const KeptAdapters> ModelAdapters::keep() const {
  if (!had_any_) return nullptr;
  return std::make_shared<KeptAdapters>(KeptAdapters{base_.digest, entries_, numbers_, own_paths_, revisions_.base().revision});
}

asio::awaitable<void> ModelAdapters::restore(std::shared_ptr<const KeptAdapters> kept) {
  had_any_ = true;
  if (kept->base != base_.digest) co_return;
  const std::weak_ptr<char> alive = alive_;
  std::vector<Entry> entries = kept->entries;
  if (kept->revision != revisions_.base().revision) {
    std::erase_if(entries, is_of_newer_weights_alone);
    for (Entry& entry : entries)
      if (entry.of_first != nullptr) entry.loaded = std::exchange(entry.of_first, nullptr);
  }
  if (base_.model.passes() != nullptr) {
    auto handing = [](std::vector<Entry> all, AdapterBase base) -> asio::awaitable<std::vector<Entry>> { co_return handed_out(all, base); };
    asio::awaitable<std::vector<Entry>> made = handing(std::move(entries), base_);
    entries = co_await asio::co_spawn(workers_, std::move(made), asio::use_awaitable);
    if (alive.expired()) co_return;
  }
  entries_ = std::move(entries);
  numbers_ = kept->numbers;
  own_paths_ = kept->own_paths;
}

// Those that were made for a group of processes that is gone, for the one that is in its place; what that does not take is left out.
std::vector<ModelAdapters::Entry> ModelAdapters::handed_out(const std::vector<Entry>& entries, const AdapterBase& base) {
  std::vector<Entry> taken;
  for (const Entry& entry : entries) {
    LoadedAdapter loaded = *entry.loaded;
    if (const Result<void> handed = hand_out(loaded, base); !handed) {
      spdlog::error("adapter {}: {}", entry.facts.name, handed.error().message);
      continue;
    }
    taken.push_back({entry.facts, std::make_shared<const LoadedAdapter>(std::move(loaded)), entry.of_first, entry.name});
  }
  return taken;
}

asio::awaitable<Result<ModelAdapters::Remade>> ModelAdapters::remake(std::shared_ptr<const model::Decoder> newer) const {
  std::vector<std::shared_ptr<const LoadedAdapter>> all;
  for (const Entry& entry : entries_)
    if (entry.loaded->adapter->follows_weights()) all.push_back(entry.loaded);
  if (all.empty()) co_return Remade();
  auto making = [](std::vector<std::shared_ptr<const LoadedAdapter>> older, AdapterBase base,
                   std::shared_ptr<const model::Decoder> decoder) -> asio::awaitable<Result<Remade>> {
    Remade remade;
    for (auto& each : older) {
      // Once for all names that it has.
      const auto same = std::ranges::find_if(remade, [&](const auto& known) { return known.first->adapter == each->adapter; });
      Result<LoadedAdapter> made = same == remade.end() ? remake_adapter(*each, base, *decoder) : Result<LoadedAdapter>(*same->second);
      if (!made) co_return made.error();
      remade.emplace_back(std::move(each), std::make_shared<const LoadedAdapter>(std::move(*made)));
    }
    co_return remade;
  };
  asio::awaitable<Result<Remade>> made = making(std::move(all), base_, std::move(newer));
  co_return co_await asio::co_spawn(workers_, std::move(made), asio::use_awaitable);
}

void ModelAdapters::replace(const Remade& remade) {
  const bool is_first = revisions_.base().revision.empty();
  for (const auto& [older, newer] : remade)
    for (Entry& entry : entries_) {
      if (entry.loaded != older) continue;
      if (is_first) entry.of_first = older;
      entry.loaded = newer;
    }
}

}  // namespace braid::app
