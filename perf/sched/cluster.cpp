// A set of servers behind nginx, simulated: virtual time, the real scheduler and prefix cache in each of them, nginx's choice of a server.
//   cluster [--nodes 1000] [--route prefix|random|least] [--lose 0] …     one line of JSON; kDefaults has all options
//   cluster --routes HOST:PORT… < keys                                    which server each key's requests go to (routes.mjs)
#include "perf/sched/hash_ring.h"
#include "perf/sched/virtual_node.h"

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

namespace {

using namespace braid;        // NOLINT: a program, not a header
using namespace braid::perf;  // NOLINT

namespace asio = boost::asio;

const std::map<std::string, double> kDefaults = {
    {"nodes", 1000},   {"clients", 16},                       // of each server; each holds one conversation after the other
    {"turns", 6},      {"think", 4},                          // seconds between an answer and the next turn, exponential
    {"styles", 64},    {"system", 400},                       // system prompts, and tokens of each
    {"user", 40},      {"answer", 100},                       // tokens of a turn
    {"seconds", 60},   {"warm", 20},                          // of virtual time, and how many of these are not counted
    {"blocks", 4096},  {"batch", 64},                         // a server's pool, and --max-batch
    {"max-conns", 64}, {"lose", 0},                           // servers that are killed halfway between `warm` and `seconds`
    {"read-ms", 34},   {"row-ms", 0.7}, {"prompt-ms", 0.73},  // a step: TinyLlama-1.1B Q8_0 on two CPUs with AMX (perf/README.md)
    {"seed", 1}};

struct Options {
  std::map<std::string, double> numbers = kDefaults;
  std::string route = "prefix";

  double operator[](const char* name) const { return numbers.at(name); }
  std::int32_t count(const char* name) const { return static_cast<std::int32_t>(numbers.at(name)); }
};

class Simulation {
 public:
  explicit Simulation(const Options& options)
      : options_(options), random_(static_cast<std::uint64_t>(options["seed"])), ring_(names(options.count("nodes"))) {
    const StepCost cost{options["read-ms"] / 1e3, options["row-ms"] / 1e3, options["prompt-ms"] / 1e3};
    sched::SchedulerOptions scheduling;
    scheduling.max_batch = options.count("batch");
    scheduling.context_length = 8192;
    scheduling.blocks = options.count("blocks");
    for (std::int32_t i = 0; i < options.count("nodes"); ++i) nodes_.push_back({std::make_unique<VirtualNode>(cost, scheduling)});
    clients_.resize(nodes_.size() * static_cast<std::size_t>(options["clients"]));
  }

  void run() {
    std::uniform_real_distribution<double> begin(0.0, options_["warm"] / 2);
    for (std::size_t i = 0; i < clients_.size(); ++i) {
      begin_conversation(clients_[i]);
      at(begin(random_), [this, i] { ask(i); });
    }
    at((options_["warm"] + options_["seconds"]) / 2, [this] { lose(); });
    while (!events_.empty() && events_.top().time < options_["seconds"]) {
      const auto happens = std::move(const_cast<Event&>(events_.top()).happens);
      now_ = events_.top().time;
      events_.pop();
      happens();
    }
    is_over_ = true;
  }

  void print() {
    std::vector<double> tokens;
    double busy = 0.0;
    for (const Node& node : nodes_) {
      tokens.push_back(static_cast<double>(node.tokens));
      busy += node.busy;
    }
    const double window = options_["seconds"] - options_["warm"];
    const double sum = static_cast<double>(tokens_);
    const double mean = sum / static_cast<double>(tokens.size());
    std::ranges::sort(first_);
    const auto share = [&](double part) {
      return first_.empty() ? 0.0 : first_[static_cast<std::size_t>(part * static_cast<double>(first_.size() - 1))];
    };
    fmt::print(
        R"({{"nodes":{},"route":"{}","requests":{},"tokens_per_second":{:.0f},"of_a_node":{:.1f},"busy":{:.3f},"most_of_mean":{:.2f},)"
        R"("hit_rate":{:.3f},"of_one_server":{:.3f},"first_token_p50":{:.3f},"p99":{:.3f},"elsewhere":{},"lost":{}}})"
        "\n",
        nodes_.size(), options_.route, first_.size(), sum / window, sum / window / static_cast<double>(nodes_.size()),
        busy / window / static_cast<double>(nodes_.size()), *std::ranges::max_element(tokens) / mean,
        static_cast<double>(cached_) / static_cast<double>(prompt_), static_cast<double>(cached_) / static_cast<double>(cacheable_),
        share(0.5), share(0.99), elsewhere_, lost_);
  }

  static std::vector<std::string> names(std::int32_t count) {
    std::vector<std::string> names;
    for (std::int32_t i = 0; i < count; ++i) names.push_back(fmt::format("10.{}.{}.{}:8000", i / 62500, i / 250 % 250, i % 250 + 1));
    return names;
  }

 private:
  struct Node {
    std::unique_ptr<VirtualNode> server;
    bool is_lost = false;
    std::int32_t active = 0;  // requests
    std::uint64_t tokens = 0;
    double busy = 0.0;  // seconds
  };
  struct Client {
    std::uint64_t conversation = 0;
    std::vector<TokenId> prompt;
    std::int32_t turn = 0;
    std::int32_t known = 0;  // tokens of which one server that serves all would have keys and values
  };
  struct Event {
    double time;
    std::uint64_t number;
    std::function<void()> happens;
    bool operator<(const Event& other) const { return time != other.time ? time > other.time : number > other.number; }
  };

  bool is_counted() const { return now_ >= options_["warm"]; }
  void at(double time, std::function<void()> happens) { events_.push({time, events_made_++, std::move(happens)}); }

  void add_tokens(Client& client, std::uint64_t text, std::int32_t count) {
    std::mt19937 words(static_cast<std::uint32_t>(text * 2654435761U + 1));
    for (std::int32_t i = 0; i < count; ++i) client.prompt.push_back(static_cast<TokenId>(2 + words() % 30000));
  }

  void begin_conversation(Client& client) {
    client = {.conversation = ++conversations_, .prompt = {}};
    const std::uint64_t style = client.conversation % static_cast<std::uint64_t>(options_["styles"]);
    add_tokens(client, style, options_.count("system"));
    client.known = styles_.insert(style).second ? 0 : options_.count("system");
    add_tokens(client, 1'000'000 + client.conversation, options_.count("user"));
  }

  bool takes(std::size_t node) const { return !nodes_[node].is_lost && nodes_[node].active < options_.count("max-conns"); }
  std::size_t least() const {
    const auto order = [](const Node& node) { return std::pair(node.is_lost, node.active); };
    return static_cast<std::size_t>(std::ranges::min_element(nodes_, {}, order) - nodes_.begin());
  }
  std::size_t place_of(const Client& client) {
    if (options_.route == "least") return least();
    const std::string key = fmt::format("conversation {}", options_.route == "prefix" ? client.conversation : random_());
    bool is_first = true;
    const int found = ring_.find(key, [&](std::size_t node) { return takes(node) || (is_first = false); });
    if (!is_first && is_counted()) ++elsewhere_;
    return found >= 0 ? static_cast<std::size_t>(found) : least();
  }

  void ask(std::size_t number) {
    const Client& client = clients_[number];
    const std::size_t place = place_of(client);
    Node& node = nodes_[place];
    GenerationRequest request;
    request.prompt = client.prompt;
    request.stop.max_tokens = options_.count("answer");
    Result<Ticket> ticket = node.server->scheduler().submit(std::move(request));
    if (!ticket) return at(now_ + 1.0, [this, number] { ask(number); });  // as its Retry-After says
    ++node.active;
    asio::co_spawn(node.server->loop(), read(number, node, std::move(*ticket)), asio::detached);
    settle(node);
  }

  asio::awaitable<void> read(std::size_t number, Node& node, Ticket ticket) {
    const double asked = now_;
    bool is_first = true;
    for (;;) {
      const std::optional<TokenEvent> event = co_await ticket->next();
      if (is_over_) co_return;
      if (!event) continue;
      if (const Finish* finish = std::get_if<Finish>(&*event)) {
        --node.active;
        co_return finish->reason == FinishReason::kLength ? take(number, finish->usage) : retry(number);
      }
      if (!is_counted()) continue;
      if (std::exchange(is_first, false)) first_.push_back(now_ - asked);
      ++node.tokens;
      ++tokens_;
    }
  }

  void retry(std::size_t number) {
    ++lost_;
    at(now_, [this, number] { ask(number); });
  }

  void take(std::size_t number, const Usage& usage) {
    Client& client = clients_[number];
    if (is_counted()) {
      prompt_ += static_cast<std::uint64_t>(usage.prompt_tokens);
      cached_ += static_cast<std::uint64_t>(usage.cached_tokens);
      cacheable_ += static_cast<std::uint64_t>(client.known);
    }
    client.prompt.insert(client.prompt.end(), static_cast<std::size_t>(usage.completion_tokens), VirtualModel::kAnswer);
    client.known = static_cast<std::int32_t>(client.prompt.size()) - 1;  // the last token of an answer has none
    if (++client.turn == options_.count("turns"))
      begin_conversation(client);
    else
      add_tokens(client, 1'000'000'000 + client.conversation * 64 + static_cast<std::uint64_t>(client.turn), options_.count("user"));
    at(now_ + std::exponential_distribution<double>(1.0 / options_["think"])(random_), [this, number] { ask(number); });
  }

  void settle(Node& node) {
    const std::optional<double> seconds = node.server->settle();
    if (!seconds) return;
    if (is_counted()) node.busy += *seconds;
    at(now_ + *seconds, [this, &node] {
      node.server->end_step();
      settle(node);
    });
  }

  void lose() {
    for (std::int32_t i = 0; i < options_.count("lose"); ++i) {
      Node& node = nodes_[static_cast<std::size_t>(i) * nodes_.size() / static_cast<std::size_t>(options_.count("lose"))];
      node.is_lost = true;
      node.server->scheduler().begin_drain();
      node.server->scheduler().abort_remaining({ErrorCode::kDraining, "it is lost", {}});
      settle(node);
    }
  }

  const Options options_;
  std::mt19937_64 random_;
  const HashRing ring_;
  std::vector<Client> clients_;
  std::priority_queue<Event> events_;
  std::uint64_t events_made_ = 0;
  double now_ = 0.0;
  bool is_over_ = false;
  std::uint64_t conversations_ = 0;
  std::unordered_set<std::uint64_t> styles_;  // that were asked for
  std::uint64_t tokens_ = 0;
  std::uint64_t prompt_ = 0;
  std::uint64_t cached_ = 0;
  std::uint64_t cacheable_ = 0;
  std::uint64_t elsewhere_ = 0;  // requests that the first one in the order of the hash did not take
  std::uint64_t lost_ = 0;       // answers that ended with their server
  std::vector<double> first_;    // seconds
  std::vector<Node> nodes_;      // last: their readers use all the others
};

int print_routes(std::span<const std::string> servers) {
  const HashRing ring(servers);
  for (std::string key; std::getline(std::cin, key);) fmt::print("{}\n", ring.find(key, [](std::size_t) { return true; }));
  return 0;
}

bool read(Options& options, std::span<const std::string> args) {
  if (args.size() % 2 != 0) return false;
  for (std::size_t i = 0; i < args.size(); i += 2) {
    if (args[i] == "--route") {
      options.route = args[i + 1];
      continue;
    }
    const auto known = args[i].starts_with("--") ? options.numbers.find(args[i].substr(2)) : options.numbers.end();
    if (known == options.numbers.end()) return false;
    known->second = std::atof(args[i + 1].c_str());
  }
  return options.route == "prefix" || options.route == "random" || options.route == "least";
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  if (args.size() > 1 && args[0] == "--routes") return print_routes(std::span(args).subspan(1));
  Options options;
  if (!read(options, args)) {
    fmt::print(stderr, "options, each with a number:");
    for (const auto& [name, value] : kDefaults) fmt::print(stderr, " --{} {}", name, value);
    fmt::print(stderr, "; and --route prefix, random or least\n");
    return 1;
  }
  Simulation simulation(options);
  simulation.run();
  simulation.print();
  return 0;
}
