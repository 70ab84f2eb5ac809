// How long it takes until each rank has a pass of 256 rows: from the server's pass, over its connections, to a pass that the rank could
// compute. Two processes of this machine over TCP, as ranks have it; each answers when it has read the pass, and the way back counts, too.
//   broadcast_bench [ROUNDS]
#include "ranks/channel.h"
#include "ranks/message.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fmt/format.h>
#include <numeric>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {

namespace ranks = braid::ranks;
namespace step = braid::step;
using Clock = std::chrono::steady_clock;

constexpr int kRanks = 2;
constexpr std::int32_t kRows = 256;
constexpr std::int32_t kBlockTokens = 16;

// A row of each of 256 sequences, or a slice of one, with `positions` before it.
step::Pass pass_of(bool is_slice, std::int32_t positions) {
  step::Pass pass;
  const std::int32_t blocks = (positions + kRows) / kBlockTokens;
  for (std::int32_t row = 0; row < kRows; ++row) {
    step::PassToken token;
    token.token = row;
    token.position = is_slice ? positions + row : positions;
    token.table_size = static_cast<std::uint32_t>(blocks);
    token.tables = is_slice ? 0 : static_cast<std::uint32_t>(row * blocks);
    pass.tokens.push_back(token);
    if (!is_slice || row + 1 == kRows) pass.picked.push_back(row);
  }
  pass.blocks.resize(static_cast<std::size_t>(is_slice ? blocks : kRows * blocks));
  std::iota(pass.blocks.begin(), pass.blocks.end(), 0);
  return pass;
}

// Until the connection ends.
int be_rank(const std::string& address) {
  braid::Result<ranks::Channel> server = ranks::Channel::connect(address);
  if (!server) return EXIT_FAILURE;
  step::Pass pass;
  ranks::Uses uses;
  while (const auto message = server->receive()) {
    if (!ranks::read((*message)->bytes, pass, uses) || pass.tokens.size() != kRows) return EXIT_FAILURE;
    if (!server->send(ranks::Kind::kDone, {})) return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}

bool broadcast(std::vector<ranks::Channel>& channels, const step::Pass& pass, ranks::Bytes& bytes) {
  ranks::write(pass, ranks::Uses(), bytes);
  for (ranks::Channel& channel : channels)
    if (!channel.send(ranks::Kind::kPass, bytes)) return false;
  return std::ranges::all_of(channels, [](ranks::Channel& channel) { return channel.receive().has_value(); });
}

int measure(std::vector<ranks::Channel>& channels, int rounds) {
  for (const auto& [name, pass] : {std::pair("256 sequences, 1,000 positions each", pass_of(false, 1000)),
                                   std::pair("a slice of 256 tokens behind 1,000", pass_of(true, 1000))}) {
    ranks::Bytes bytes;
    std::vector<double> microseconds;
    for (int round = 0; round < rounds; ++round) {
      const Clock::time_point begin = Clock::now();
      if (!broadcast(channels, pass, bytes)) return EXIT_FAILURE;
      microseconds.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    }
    std::ranges::sort(microseconds);
    const auto at = [&](double share) { return microseconds[static_cast<std::size_t>(share * static_cast<double>(rounds - 1))]; };
    fmt::print("{}: {} bytes, median {:.1f} us, p95 {:.1f} us, least {:.1f} us\n", name, bytes.size(), at(0.5), at(0.95), at(0.0));
  }
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 2000;
  braid::Result<ranks::Listener> listener = ranks::Listener::open("127.0.0.1:0");
  if (!listener) return EXIT_FAILURE;
  for (int rank = 0; rank < kRanks; ++rank)
    if (::fork() == 0) std::_Exit(be_rank(listener->address()));
  int code = EXIT_FAILURE;
  {
    std::vector<ranks::Channel> channels;
    for (int rank = 0; rank < kRanks; ++rank) {
      braid::Result<ranks::Channel> channel = listener->accept();
      if (channel) channels.push_back(std::move(*channel));
    }
    if (channels.size() == kRanks) code = measure(channels, rounds);
  }
  for (int rank = 0; rank < kRanks; ++rank) ::wait(nullptr);
  return code;
}
