// braid-rank: one rank of a model's group. The server starts it by mpirun; it is of no use by itself.
#include "ranks/mpi/mpi_exchange.h"
#include "ranks/rank_loop.h"

#include <chrono>
#include <cstdlib>
#include <fmt/format.h>
#include <string>

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// How long the others may take for their part of a pass.
std::chrono::milliseconds answer_limit() {
  const long given = std::strtol(variable("BRAID_RANKS_LIMIT").c_str(), nullptr, 10);
  return given > 0 ? std::chrono::milliseconds(given) : std::chrono::seconds(30);
}

int run() {
  using namespace braid;
  model::Share share;
  MPI_Comm_rank(MPI_COMM_WORLD, &share.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &share.ranks);
  const std::string address = variable("BRAID_RANKS_SERVER");
  if (address.empty()) {
    fmt::print(stderr, "braid-rank: is started by braid serve --ranks; there is nothing to do by itself\n");
    return 2;
  }
  auto passes = ranks::Channel::connect(address);
  auto second = ranks::Channel::connect(address);
  if (!passes || !second) {
    fmt::print(stderr, "braid-rank {}: {}\n", share.rank, (passes ? second : passes).error().message);
    return 1;
  }
  ranks::MpiExchange exchange(answer_limit());
  const auto served = ranks::serve_passes({*passes, *second}, variable("BRAID_RANKS_KEY"), share, exchange);
  if (served) return 0;
  fmt::print(stderr, "braid-rank {}: {}\n", share.rank, served.error().message);
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
