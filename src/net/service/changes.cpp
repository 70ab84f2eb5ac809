#include "net/service/changes.h"

#include "braid/adapters.h"
#include "braid/weights.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <optional>
#include <random>
#include <utility>

namespace braid::net {
namespace {

constexpr std::size_t kMostParts = 64;  // of one subject, one upon the other

std::uint64_t milliseconds_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

std::string new_node() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

std::string revision_of(const LiveWeights* weights) { return weights != nullptr ? weights->facts().revision : std::string(); }

// Nothing: the model is not loaded. Empty: there is no such adapter.
std::optional<std::string> revision_now(const ChangeKey& key, const ModelDirectory& models) {
  if (const ServedNetwork* network = models.find_network(key.model); network != nullptr) return revision_of(network->weights);
  const auto all = models.all();
  const auto model = std::ranges::find(all, key.model, &ServedModel::id);
  if (model == all.end()) return std::nullopt;
  if (key.adapter.empty()) return revision_of((*model)->weights);
  if ((*model)->adapters == nullptr) return std::string();
  for (const AdapterFacts& facts : (*model)->adapters->list())
    if (facts.name == key.adapter) return facts.revision;
  return std::string();
}

}  // namespace

std::string ChangeKey::subject() const {
  return adapter.empty() ? fmt::format("the weights of '{}'", model) : fmt::format("the adapter '{}' of '{}'", adapter, model);
}

Changes::Changes() : node_(new_node()) {}

void Changes::note(Change change) {
  change.number = std::max(highest_ + 1, milliseconds_now());
  change.node = node_;
  insert(std::move(change));
  if (tell_) tell_();
}

void Changes::add(Change change) { insert(std::move(change)); }

void Changes::insert(Change change) {
  highest_ = std::max(highest_, change.number);
  std::erase_if(changes_, [&](const auto& older) { return older->is_undone_by(change) || older->is_same(change); });
  std::erase_if(missing_, [&](const Missing& one) { return one.key.is_undone_by(change) || one.key.is_same(change); });
  const auto made = std::make_shared<const Change>(std::move(change));
  const auto place = std::ranges::find_if(changes_, [&](const auto& other) { return made->is_before(*other); });
  changes_.insert(place, made);
  const auto is_part = [&](const auto& one) { return one->kind == ChangeKey::Kind::kPart && one->is_about(*made); };
  if (std::cmp_greater(std::ranges::count_if(changes_, is_part), kMostParts)) changes_.erase(std::ranges::find_if(changes_, is_part));
}

bool Changes::has(const ChangeKey& key) const {
  return std::ranges::any_of(changes_, [&](const auto& one) { return one->is_same(key); });
}

bool Changes::is_undone(const ChangeKey& key) const {
  return std::ranges::any_of(changes_, [&](const auto& one) { return key.is_undone_by(*one); });
}

void Changes::fail(const ChangeKey& key, std::string why) {
  const auto known = std::ranges::find_if(missing_, [&](const Missing& one) { return one.key.is_same(key); });
  if (known != missing_.end())
    known->why = std::move(why);
  else
    missing_.push_back({key, std::move(why)});
}

void Changes::succeed(const ChangeKey& key) {
  std::erase_if(missing_, [&](const Missing& one) { return one.key.is_same(key); });
}

void Changes::set_peers(std::vector<PeerState> peers) {
  has_asked_ = true;
  for (const PeerState& peer : peers) {
    for (const KnownChange& known : peer.changes) {
      highest_ = std::max(highest_, known.key.number);
      const bool is_known = std::ranges::any_of(missing_, [&](const Missing& one) { return one.key.is_same(known.key); });
      if (!is_known && !has(known.key) && !is_undone(known.key)) missing_.push_back({known.key, {}});
    }
  }
  peers_ = std::move(peers);
}

const Change& Changes::last_about(const ChangeKey& key) const {
  const auto last = std::find_if(changes_.rbegin(), changes_.rend(), [&](const auto& one) { return one->is_about(key); });
  return **last;
}

bool Changes::in_effect(const Change& change, const ServiceStatus& status) const {
  const std::optional<std::string> revision = revision_now(change, status.models);
  return !revision || *revision == last_about(change).revision;
}

bool Changes::is_loaded(const ChangeKey& key, const ServiceStatus& status) { return revision_now(key, status.models).has_value(); }

std::string Changes::lack(const ServiceStatus& status) const {
  if (!has_asked_) return "the other servers are being asked what has changed";
  if (!missing_.empty()) {
    const Missing& first = missing_.front();
    return first.why.empty() ? fmt::format("{} here are not yet those of {}", first.key.subject(), first.key.revision)
                             : fmt::format("{} could not be brought up to date: {}", first.key.subject(), first.why);
  }
  for (const auto& change : changes_)
    if (!in_effect(*change, status))
      return fmt::format("{} here are not those that it was given: it was loaded anew since", change->subject());
  return {};
}

}  // namespace braid::net
