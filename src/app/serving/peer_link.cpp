#include "app/serving/peer_link.h"

#include "app/whole_file.h"
#include "net/peers/change_text.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <fmt/format.h>
#include <future>
#include <optional>
#include <spdlog/spdlog.h>
#include <system_error>
#include <utility>

namespace braid::app {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kRound{2};
constexpr std::chrono::seconds kMostLookup{5};     // of all names
constexpr std::chrono::seconds kMostSilence{5};    // of one that is asked what it has: a hung one holds the others up for no longer
constexpr std::chrono::seconds kMostWorking{120};  // of one that gets newer weights, which take their time
constexpr std::size_t kMostKey = 4096;             // bytes
constexpr std::size_t kMostPeers = 64;             // asked at once, each by a thread
constexpr std::size_t kMostPeerAnswer = std::size_t{4} << 20;  // bytes

registry::HttpOptions peer_http(std::string ca_file, std::chrono::seconds silence) {
  registry::HttpOptions http;
  http.direct = true;
  http.ca_file = std::move(ca_file);
  http.connect_timeout = std::chrono::seconds(2);
  http.stall_timeout = silence;
  return http;
}

std::vector<std::string> peer_headers(const std::string& key) {
  std::vector<std::string> headers = {"Content-Type: application/octet-stream", "Expect:"};
  if (!key.empty()) headers.push_back("Authorization: Bearer " + key);
  return headers;
}

std::string bracketed(const std::string& host) { return host.find(':') != std::string::npos ? "[" + host + "]" : host; }

enum class Held { kNot, kInRecord, kInEffect };

// Whether another server has a change, or needs it no more.
Held held_by(const net::PeerState& peer, const net::ChangeKey& own) {
  for (const net::KnownChange& known : peer.changes) {
    if (known.key.is_same(own)) return known.in_effect ? Held::kInEffect : Held::kInRecord;
    if (own.is_undone_by(known.key)) return Held::kInEffect;
  }
  return Held::kNot;
}

}  // namespace

Result<std::string> read_peer_key(const std::string& file) {
  if (file.empty()) return std::string();
  std::optional<std::string> text = read_whole_file(file, kMostKey);
  if (!text) return invalid_argument(fmt::format("--peer-key-file {}: it cannot be read", file));
  while (!text->empty() && (text->back() == '\n' || text->back() == '\r' || text->back() == ' ')) text->pop_back();
  const bool is_key = !text->empty() && text->size() <= kMostKey && std::ranges::all_of(*text, [](char c) { return c > ' ' && c < 0x7F; });
  if (!is_key) return invalid_argument(fmt::format("--peer-key-file {}: it holds a key and nothing else", file));
  return std::move(*text);
}

Result<std::unique_ptr<PeerLink>> PeerLink::begin(boost::asio::io_context& loop, PeerOptions options, Parts parts) {
  Result<store::Bell> stop = store::Bell::make();
  if (!stop) return stop.error();
  return std::unique_ptr<PeerLink>(new PeerLink(loop, std::move(options), std::move(parts), std::move(*stop)));
}

PeerLink::PeerLink(boost::asio::io_context& loop, PeerOptions options, Parts parts, store::Bell stop)
    : loop_(loop), options_(std::move(options)), asking_(peer_http(parts.ca_file, kMostSilence)),
      bringing_(peer_http(std::move(parts.ca_file), kMostWorking)), headers_(peer_headers(parts.key)), changes_(std::move(parts.changes)),
      node_(changes_->node()), catch_up_(std::move(parts.catch_up)), stop_(std::move(stop)), record_(std::move(parts.record)) {
  for (const std::string& text : options_.nodes) {
    NamedPeer peer = named_peer(text);
    store::NameLookup lookup(peer.host, parts.resolve);
    names_.push_back({std::move(peer), std::move(lookup), {}});
  }
  changes_->on_change([this] {
    {
      const std::lock_guard lock(mutex_);
      is_wanted_ = true;
    }
    woken_.notify_one();
  });
  thread_ = std::thread([this]() noexcept { run(); });
}

PeerLink::~PeerLink() {
  changes_->on_change({});
  end();
  thread_.join();
  if (record_ && is_remembered_) record_->keep(changes_->all());
}

void PeerLink::end() {
  {
    const std::lock_guard lock(mutex_);
    is_ended_ = true;
  }
  woken_.notify_one();
  stop_.ring();
}

void PeerLink::run() {
  remember();
  std::unique_lock lock(mutex_);
  while (!is_ended_) {
    is_wanted_ = false;
    lock.unlock();
    round();
    lock.lock();
    woken_.wait_for(lock, kRound, [this] { return is_ended_ || is_wanted_; });
  }
}

// Of before the last end. They are changes of this server again before others are asked about theirs. The loop has each before the next one
// is read.
void PeerLink::remember() {
  if (!record_) return;
  record_->read([this](net::Change change) {
    const auto known = std::make_shared<net::Change>(std::move(change));
    return on_loop([this, known] {
      if (!changes_->is_undone(*known)) changes_->add(std::move(*known));
    });
  });
  if (!is_ended_) on_loop([this] { is_remembered_ = true; });
}

// Returns when it is done there. False: this ends, and perhaps the loop has.
bool PeerLink::on_loop(std::function<void()> work) {
  const auto is_done = std::make_shared<bool>(false);
  boost::asio::post(loop_, [this, is_done, work = std::move(work)] {
    work();
    {
      const std::lock_guard lock(mutex_);
      *is_done = true;
    }
    woken_.notify_one();
  });
  std::unique_lock lock(mutex_);
  woken_.wait(lock, [&] { return is_ended_ || *is_done; });
  return !is_ended_;
}

// Names are looked up all at once. One whose resolver is late stands for what it stood for.
std::vector<PeerLink::Address> PeerLink::addresses() {
  for (Name& name : names_) name.lookup.begin();
  const Clock::time_point deadline = Clock::now() + kMostLookup;
  std::vector<Address> all;
  for (Name& name : names_) {
    if (Result<std::vector<std::string>> found = name.lookup.numbers(stop_.descriptor(), deadline)) name.numbers = std::move(*found);
    const NamedPeer& peer = name.peer;
    for (const std::string& number : name.numbers)
      if (number.find('%') == std::string::npos)  // one of a single link
        all.push_back(
            {fmt::format("{}://{}:{}", peer.scheme, bracketed(peer.host), peer.port), fmt::format("{}:{}", bracketed(number), peer.port)});
  }
  std::ranges::sort(all, {}, &Address::connect_to);
  const auto is_same = [](const Address& one, const Address& other) { return one.connect_to == other.connect_to; };
  all.erase(std::unique(all.begin(), all.end(), is_same), all.end());
  all.resize(std::min(all.size(), kMostPeers));
  return all;
}

// What the loop has. None: this ends, and perhaps the loop has.
std::optional<PeerLink::Own> PeerLink::own_changes() {
  const bool has_come = on_loop([this] {
    own_ = changes_->all();
    if (catch_up_) catch_up_();
  });
  return has_come ? std::optional(std::move(own_)) : std::nullopt;
}

// Beside the others; where no thread can be had, by this one once it is waited for.
std::future<net::PeerState> PeerLink::begin_talk(const Address& address, const Own& own) {
  const auto talking = [this, &address, &own] { return talk(address, own); };
  try {
    return std::async(std::launch::async, talking);
  } catch (const std::system_error&) {
    return std::async(std::launch::deferred, talking);
  }
}

void PeerLink::round() {
  const std::optional<Own> known = own_changes();
  if (!known) return;
  const Own& own = *known;
  if (record_) record_->keep(own);
  std::vector<std::future<net::PeerState>> talks;
  const std::vector<Address> all = addresses();
  std::erase_if(patience_,
                [&all](const auto& one) { return std::ranges::find(all, one.first.connect_to, &Address::connect_to) == all.end(); });
  for (const Address& address : all) patience_.try_emplace(address);
  for (const Address& address : all) talks.push_back(begin_talk(address, own));
  std::vector<net::PeerState> peers;
  for (auto& one : talks) peers.push_back(one.get());
  std::erase_if(peers, [this](const net::PeerState& peer) { return peer.node == node_; });
  if (is_ended_) return;
  boost::asio::post(loop_, [changes = changes_, peers = std::move(peers)]() mutable { changes->set_peers(std::move(peers)); });
}

Result<registry::HttpAnswer> PeerLink::ask(const Address& address, std::string method, const std::string& path, std::string body) const {
  registry::HttpRequest request;
  request.method = std::move(method);
  request.url = address.origin + path;
  request.headers = headers_;
  request.body = std::move(body);
  request.connect_to = address.connect_to;
  request.goes_on = [this] { return !is_ended_.load(); };
  return registry::ask(request.method == "GET" ? asking_ : bringing_, request, kMostPeerAnswer);
}

net::PeerState PeerLink::talk(const Address& address, const Own& own) {
  net::PeerState peer{.address = address.connect_to};
  Result<registry::HttpAnswer> answer = ask(address, "GET", "/v1/peers", {});
  if (!answer || answer->status != 200) {
    peer.fault = answer ? fmt::format("it answers with status {}", answer->status) : answer.error().message;
    return peer;
  }
  Result<net::peers::State> state = net::peers::read_state(answer->body);
  if (!state) {
    peer.fault = state.error().message;
    return peer;
  }
  peer.node = std::move(state->node);
  peer.changes = std::move(state->changes);
  if (peer.node != node_) peer.fault = bring(address, peer, own, patience_.at(address));
  return peer;
}

// What it lacks, one after the other. Why it does not have all; empty: it has.
std::string PeerLink::bring(const Address& address, const net::PeerState& peer, const Own& own, net::Patience& patience) const {
  for (const auto& change : own) {
    const Held held = held_by(peer, *change);
    if (held == Held::kInEffect) continue;
    if (held == Held::kInRecord) return fmt::format("{}: it has not yet repeated what it was given", change->subject());
    if (patience.holds()) return fmt::format("{}: it did not take them", change->subject());
    const Result<registry::HttpAnswer> answer = ask(address, "POST", "/v1/peers/changes", net::peers::text_of(*change));
    if (answer && answer->status == 200) continue;
    const std::string why = answer ? fmt::format("status {}: {}", answer->status, answer->body) : answer.error().message;
    spdlog::warn("{} could not be brought to {}: {}", change->subject(), address.connect_to, why);
    patience.fails();
    return fmt::format("{}: {}", change->subject(), why);
  }
  patience = {};
  return {};
}

}  // namespace braid::app
