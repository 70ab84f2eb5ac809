// What one streamed token costs the loop's thread: an engine without a model hands one token to each of N streams per step, and a
// process of its own reads them. Prints user and system time per token and resident memory per stream.
//   net_bench [streams=1000] [tokens=100] [step_ms=100]
#include "net/server/server.h"
#include "sched/token_stream.h"
#include "sched/wake_list.h"

#include <arpa/inet.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <memory>
#include <netinet/in.h>
#include <set>
#include <string>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace braid;
namespace asio = boost::asio;

constexpr std::int32_t kVocab = 32;

class WordDecoder final : public StreamDecoder {
 public:
  void append(TokenId, std::string& out) override { out += " word"; }
  void finish(std::string&) override {}
};

class WordCodec final : public TextCodec {
 public:
  std::int32_t vocab_size() const override { return kVocab; }
  Result<std::vector<TokenId>> encode(std::string_view, const EncodeOptions&) const override { return std::vector<TokenId>{1}; }
  Result<RenderedChat> render(const ChatPrompt&) const override { return RenderedChat{"chat", {}}; }
  std::optional<InfillTokens> infill_tokens() const override { return std::nullopt; }
  TextEnds text_ends() const override { return {}; }
  std::string_view template_source(const ChatPrompt&) const override { return {}; }
  std::unique_ptr<StreamDecoder> new_decoder() const override { return std::make_unique<WordDecoder>(); }
  bool is_silent(TokenId) const override { return false; }
  std::string token_bytes(TokenId) const override { return " word"; }
};

class StepEngine final : public Engine {
 public:
  class Source final : public TokenSource {
   public:
    explicit Source(StepEngine& engine) : engine_(engine) { engine_.live_.insert(this); }
    ~Source() override { engine_.live_.erase(this); }
    std::optional<TokenEvent> try_next() override { return stream.try_next(); }
    Signal& arrived() override { return stream.arrived(); }
    void cancel() override {
      engine_.live_.erase(this);
      stream.close();
    }
    void complete() override { cancel(); }
    std::int32_t cached_tokens() const override { return 0; }
    bool started() const override { return true; }

    sched::TokenStream stream{64};

   private:
    StepEngine& engine_;
  };

  explicit StepEngine(asio::io_context& loop) : wakes_(std::make_shared<sched::WakeList>(loop)) {}

  Result<Ticket> submit(GenerationRequest) override { return Ticket(std::make_unique<Source>(*this)); }
  EngineStats stats() const override { return {}; }
  bool cancel(std::string_view) override { return false; }
  std::vector<SequenceSnapshot> sequences(std::size_t) const override { return {}; }
  std::size_t live() const { return live_.size(); }

  void step(bool last) {
    for (Source* source : live_) {
      if (source->stream.size() < source->stream.capacity()) source->stream.push(Token{1, 0.0F});
      if (last) source->stream.finish(Finish{});
      source->stream.deliver(*wakes_);
    }
  }

 private:
  const std::shared_ptr<sched::WakeList> wakes_;
  std::set<Source*> live_;
};

int connect_client(std::uint16_t port) {
  const int client = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(client, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) std::exit(1);
  const std::string body = R"({"messages":[{"role":"user","content":"hello"}],"stream":true})";
  const std::string request =
      fmt::format("POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{}", body.size(), body);
  if (::send(client, request.data(), request.size(), 0) < 0) std::exit(1);
  return client;
}

// Opens the streams and reads them to their end.
void read_streams(std::uint16_t port, int streams) {
  const int poll = ::epoll_create1(0);
  for (int i = 0; i < streams; ++i) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = connect_client(port);
    ::epoll_ctl(poll, EPOLL_CTL_ADD, event.data.fd, &event);
  }
  epoll_event ready[256];
  char buffer[65536];
  for (int open = streams; open > 0;) {
    const int count = ::epoll_wait(poll, ready, 256, -1);
    for (int i = 0; i < count; ++i) {
      if (::recv(ready[i].data.fd, buffer, sizeof buffer, 0) > 0) continue;
      ::close(ready[i].data.fd);
      --open;
    }
  }
}

double resident_kib() {
  std::ifstream statm("/proc/self/statm");
  double total = 0.0;
  double resident = 0.0;
  statm >> total >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1024.0;
}

double microseconds(const timeval& time) { return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec); }

struct Bench {
  asio::io_context loop{1};
  StepEngine engine{loop};
  WordCodec codec;
  ServedModel model{"bench", 0, 100'000, "none", 0, &engine, &codec};
  ServiceStatus status{ServiceState::kReady, "", ModelDirectory({&model})};
  asio::steady_timer timer{loop};
  std::size_t streams = 0;
  int tokens = 0;
  std::chrono::milliseconds step{0};
  double idle_kib = 0.0;
  double full_kib = 0.0;
  rusage begin{};
  rusage end{};

  void run_step(int left) {
    if (engine.live() < streams) return schedule(left);  // not all are here yet
    if (left == tokens) {
      full_kib = resident_kib();
      ::getrusage(RUSAGE_THREAD, &begin);
    }
    engine.step(left == 1);
    if (left == 2) ::getrusage(RUSAGE_THREAD, &end);
    if (left > 1) schedule(left - 1);
  }

  void schedule(int left) {
    timer.expires_after(step);
    timer.async_wait([this, left](const boost::system::error_code&) { run_step(left); });
  }
};

}  // namespace

int main(int argc, char** argv) {
  Bench bench;
  bench.streams = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1000;
  bench.tokens = argc > 2 ? std::atoi(argv[2]) : 100;
  bench.step = std::chrono::milliseconds(argc > 3 ? std::atoi(argv[3]) : 100);
  net::ServerOptions options;
  options.listen = {{"127.0.0.1", 0}};
  net::Server server(bench.loop, options, bench.status);
  const std::uint16_t port = server.start().value();
  const pid_t reader = ::fork();
  if (reader == 0) {
    read_streams(port, static_cast<int>(bench.streams));
    std::_Exit(0);
  }
  bench.idle_kib = resident_kib();
  bench.schedule(bench.tokens);
  while (bench.end.ru_utime.tv_sec + bench.end.ru_utime.tv_usec == 0 || server.open_connections() > 0) bench.loop.run_one();
  ::waitpid(reader, nullptr, 0);
  const double written = static_cast<double>(bench.streams) * static_cast<double>(bench.tokens - 2);
  fmt::print("{} streams: {:.2f} us user, {:.2f} us system per token; {:.1f} KiB per stream\n", bench.streams,
             (microseconds(bench.end.ru_utime) - microseconds(bench.begin.ru_utime)) / written,
             (microseconds(bench.end.ru_stime) - microseconds(bench.begin.ru_stime)) / written,
             (bench.full_kib - bench.idle_kib) / static_cast<double>(bench.streams));
}
