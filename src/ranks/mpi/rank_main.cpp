// braid-rank: one rank of a model's group. The server starts it by mpirun; it is of no use by itself.
#include "ranks/mpi/mpi_exchange.h"
#include "ranks/rank_loop.h"

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fmt/format.h>
#include <string>

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// `usual`, unless the server has said another number.
long number(const char* name, long usual) {
  const long given = std::strtol(variable(name).c_str(), nullptr, 10);
  return given > 0 ? given : usual;
}

int run() {
  using namespace braid;
  ranks::Seat seat;
  MPI_Comm_rank(MPI_COMM_WORLD, &seat.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &seat.ranks);
  const std::string address = variable("BRAID_RANKS_SERVER");
  if (address.empty()) {
    fmt::print(stderr, "braid-rank: is started by braid serve --ranks; there is nothing to do by itself\n");
    return 2;
  }
  seat.stages = static_cast<std::int32_t>(number("BRAID_RANKS_STAGES", 1));
  if (seat.ranks % seat.stages != 0) return 2;  // which the server refuses
  const std::chrono::milliseconds limit(number("BRAID_RANKS_LIMIT", 30'000));
  MPI_Comm stage = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, seat.stage().index, seat.rank, &stage);
  MPI_Comm_set_errhandler(stage, MPI_ERRORS_RETURN);
  ranks::MpiExchange exchange(stage, limit);
  ranks::MpiRelay relay(seat.rank - seat.in_stage(), seat.rank + seat.in_stage(), limit);
  seat.exchange = &exchange;
  seat.relay = &relay;
  auto passes = ranks::Channel::connect(address);
  auto second = ranks::Channel::connect(address);
  if (!passes || !second) {
    fmt::print(stderr, "braid-rank {}: {}\n", seat.rank, (passes ? second : passes).error().message);
    return 1;
  }
  const auto served = ranks::serve_passes({*passes, *second}, variable("BRAID_RANKS_KEY"), seat);
  if (served) return 0;
  fmt::print(stderr, "braid-rank {}: {}\n", seat.rank, served.error().message);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int code = run();
  // After a failure others may be in the middle of a gathering, which would wait for this one.
  if (code != 0) MPI_Abort(MPI_COMM_WORLD, code);
  MPI_Finalize();
  return code;
}
