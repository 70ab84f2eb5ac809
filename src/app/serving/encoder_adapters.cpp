#include "app/serving/encoder_adapters.h"

#include "app/serving/background.h"
#include "app/serving/served_engine.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>
#include <utility>

namespace braid::app {

namespace asio = boost::asio;

namespace {

const char kReplaced[] = "the adapter's weights were replaced";

bool has_part(const AdapterUse& use, const model::EncoderAdapter* adapter) {
  const auto set = std::static_pointer_cast<const model::EncoderAdapterSet>(use.lease);
  return set != nullptr && std::ranges::any_of(set->parts, [&](const auto& part) { return part.adapter.get() == adapter; });
}

}  // namespace

EncoderAdapters::EncoderAdapters(asio::thread_pool& workers, model::AdaptedEncoder base, std::string digest, sched::EncodingEngine& engine)
    : workers_(workers), base_(std::move(base)), digest_(std::move(digest)), engine_(engine) {}

std::vector<AdapterFacts> EncoderAdapters::list() const {
  std::vector<AdapterFacts> all;
  for (const AdapterEntry& entry : entries_) all.push_back(entry.facts);
  return all;
}

bool EncoderAdapters::has(std::string_view name) const {
  return std::ranges::any_of(entries_, [&](const AdapterEntry& entry) { return entry.facts.name == name; });
}

// One for all requests that use the same, whose rows are computed side by side. The same files loaded twice are two adapters.
EncoderAdapters::Set EncoderAdapters::set_of(const std::string& revision, std::vector<model::EncoderAdapterSet::Part> parts) {
  std::erase_if(sets_, [](const auto& known) { return known.second.expired(); });
  std::string key = revision;
  for (const auto& part : parts) key += fmt::format("@{}", fmt::ptr(part.adapter.get()));
  std::weak_ptr<const model::EncoderAdapterSet>& known = sets_[key];
  if (Set set = known.lock()) return set;
  const Set set = std::make_shared<const model::EncoderAdapterSet>(model::EncoderAdapterSet{std::move(parts)});
  known = set;
  return set;
}

Result<std::shared_ptr<const ServedModel>> EncoderAdapters::apply(std::shared_ptr<const ServedModel> base,
                                                                  std::span<const AdapterChoice> choices) {
  if (const Result<void> fits = check_adapter_count(choices.size()); !fits) return fits.error();
  std::vector<model::EncoderAdapterSet::Part> parts;
  std::string names;
  std::string revision;
  std::int64_t classes = 0;
  for (const AdapterChoice& choice : choices) {
    const Result<AdapterEntry*> entry = chosen_adapter(entries_, choice);
    if (!entry) return entry.error();
    if (choice.scale == 0.0F) continue;
    const std::shared_ptr<const model::EncoderAdapter>& adapter = (*entry)->loaded->of_encoder;
    AdapterFacts& facts = (*entry)->facts;
    if ((choices.size() > 1 || choice.scale != 1.0F) && !adapter->is_linear()) return only_whole(facts.name);
    parts.push_back({adapter, choice.scale});
    if (adapter->head) classes = adapter->head->shape.out.outputs;
    names += (names.empty() ? "" : "+") + facts.name;
    revision += (revision.empty() ? "" : "+") + adapter->revision;
    if (choice.scale != 1.0F) revision += fmt::format("*{}", choice.scale);
    ++facts.requests;
  }
  if (parts.empty()) return base;
  AdapterUse use{.index = 0, .revision = revision, .lease = set_of(revision, std::move(parts))};
  const std::shared_ptr<AdaptedModel> adapted = adapted_model(std::move(base), std::move(use), names, classes);
  adapted->served.is_adapted = true;
  return std::shared_ptr<const ServedModel>(adapted, &adapted->served);
}

Result<AdapterUse> EncoderAdapters::current(const AdapterUse& applied) {
  for (const auto& ended : ended_)
    if (const auto adapter = ended.lock(); adapter != nullptr && has_part(applied, adapter.get()))
      return Error{ErrorCode::kCancelled, kReplaced, {}};
  return applied;
}

void EncoderAdapters::end_users_of(const model::EncoderAdapter& older) {
  engine_.end_users([&](const AdapterUse& use) { return has_part(use, &older); }, {ErrorCode::kCancelled, kReplaced, {}});
}

asio::awaitable<Result<AdapterFacts>> EncoderAdapters::load(std::string name, WeightSource source, std::optional<UpdateMode> replacing) {
  if (const Result<void> sound = check_adapter_name(name); !sound) co_return sound.error();
  if (replacing == UpdateMode::kKeep)
    co_return invalid_argument("'mode' is 'keep', and an encoder's texts have nothing to go on with: 'finish' or 'abort'", "mode");
  const std::weak_ptr<char> alive = alive_;
  const Error gone{ErrorCode::kDraining, "the model is being unloaded", ""};
  // Named, because g++ 12 destroys some temporaries of such an expression twice.
  asio::awaitable<Turns::Turn> taking = turns_.take();
  const Turns::Turn turn = co_await std::move(taking);
  if (alive.expired()) co_return gone;
  had_any_ = true;
  Result<NamedBefore> before = named_before(entries_, name, source, replacing.has_value());
  if (!before) co_return before.error();
  const std::string expected = source.revision;
  auto making = [](WeightSource from, std::shared_ptr<const LoadedAdapter> older,
                   model::AdaptedEncoder base) -> asio::awaitable<Result<LoadedAdapter>> {
    co_return load_adapter(from, older.get(), base);
  };
  asio::awaitable<Result<LoadedAdapter>> made = making(std::move(source), std::move(before->loaded), base_);
  Result<LoadedAdapter> loaded = co_await asio::co_spawn(workers_, std::move(made), asio::use_awaitable);
  if (alive.expired()) co_return gone;
  if (!loaded) co_return loaded.error();
  Result<AdapterFacts> facts = facts_of(*loaded, name, before->path, expected);
  if (!facts) co_return facts.error();
  auto older = give_name(entries_, numbers_, *facts, std::make_shared<const LoadedAdapter>(std::move(*loaded)));
  if (!older) co_return *facts;
  if (replacing == UpdateMode::kAbort) {
    std::erase_if(ended_, [](const auto& ended) { return ended.expired(); });
    ended_.push_back(older->loaded->of_encoder);
    end_users_of(*older->loaded->of_encoder);
  }
  discard_on(workers_, std::move(older->loaded));
  co_return *facts;
}

Result<void> EncoderAdapters::unload(std::string_view name) {
  if (std::optional<AdapterEntry> taken = take_entry(entries_, name)) {
    discard_on(workers_, std::move(taken->loaded));
    return {};
  }
  return Error{ErrorCode::kNotFound, fmt::format("the adapter '{}' is not loaded", name), "name"};
}

std::shared_ptr<const KeptAdapters> EncoderAdapters::keep() const {
  return had_any_ ? std::make_shared<const KeptAdapters>(KeptAdapters{digest_, entries_, numbers_}) : nullptr;
}

void EncoderAdapters::restore(const KeptAdapters& kept) {
  had_any_ = true;
  if (kept.base != digest_) return;
  entries_ = kept.entries;
  numbers_ = kept.numbers;
}

}  // namespace braid::app
