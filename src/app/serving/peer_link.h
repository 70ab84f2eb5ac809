// The servers beside this one (--peers), which are to have the same adapters and weights: a thread that asks them what they have, and sends
// them what they lack.
#pragma once

#include "app/options.h"
#include "app/peer_name.h"
#include "app/serving/change_record.h"
#include "net/service/changes.h"
#include "registry/http_client.h"
#include "store/bell.h"
#include "store/redis/name_lookup.h"

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace braid::app {

// A round takes place when something was changed here, and every two seconds: names are looked up, all that they stand for are asked at
// once, and each gets what it lacks, in the order in which it was made.
class PeerLink {
 public:
  struct Parts {
    std::string key;  // of an administrator there; empty: none
    std::string ca_file;
    std::shared_ptr<net::Changes> changes;
    std::optional<ChangeRecord> record;  // none: what is changed lasts as long as one of the servers
    std::function<void()> catch_up;      // repeats what this server has lost; called on the loop
    store::Resolver resolve = store::ask_system;
  };
  // The loop, to which the changes belong, has ended before this does. kIo: this process may have no more files open.
  static Result<std::unique_ptr<PeerLink>> begin(boost::asio::io_context& loop, PeerOptions options, Parts parts);
  ~PeerLink();  // waits for the round that runs, which end() ends; for no resolver

  // What is being sent is ended, and nothing is sent any more. Does not wait.
  void end();

 private:
  struct Address {
    std::string origin;      // http://name:port
    std::string connect_to;  // an address of that name, and the port
    bool operator<(const Address& other) const { return connect_to < other.connect_to; }
  };
  using Own = std::vector<std::shared_ptr<const net::Change>>;

  PeerLink(boost::asio::io_context& loop, PeerOptions options, Parts parts, store::Bell stop);
  void run();
  void remember();
  bool on_loop(std::function<void()> work);
  void round();
  std::optional<Own> own_changes();
  std::vector<Address> addresses();
  std::future<net::PeerState> begin_talk(const Address& address, const Own& own);
  net::PeerState talk(const Address& address, const Own& own);
  std::string bring(const Address& address, const net::PeerState& peer, const Own& own, net::Patience& patience) const;
  Result<registry::HttpAnswer> ask(const Address& address, std::string method, const std::string& path, std::string body) const;

  boost::asio::io_context& loop_;
  const PeerOptions options_;
  const registry::HttpOptions asking_;
  const registry::HttpOptions bringing_;
  const std::vector<std::string> headers_;
  const std::shared_ptr<net::Changes> changes_;
  const std::string node_;
  const std::function<void()> catch_up_;

  std::mutex mutex_;  // for the time of a flag or a list
  std::condition_variable woken_;
  bool is_wanted_ = true;
  Own own_;  // that the loop has brought
  std::atomic<bool> is_ended_{false};
  std::atomic<bool> is_remembered_{false};  // the loop has got what was kept; before, what it has replaces nothing
  store::Bell stop_;                        // rings when this ends
  // The thread's, from here on.
  std::optional<ChangeRecord> record_;
  std::map<Address, net::Patience> patience_;  // while a round runs each of its tasks has one of them
  struct Name {
    NamedPeer peer;
    store::NameLookup lookup;
    std::vector<std::string> numbers;  // that it stood for last
  };
  std::vector<Name> names_;
  std::thread thread_;  // the last one: it uses all the others
};

// kInvalidArgument. Empty without a file.
Result<std::string> read_peer_key(const std::string& file);

}  // namespace braid::app
