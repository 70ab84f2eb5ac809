// What Linux says of this process, its control groups and the machine's pressure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace braid::net {

// A figure that the system does not give is absent: old kernels have no pressure, and groups without a limit no limit.
struct SystemFigures {
  // Pressure stall information: the share of time in which some or all of the machine's runnable tasks waited for a resource.
  struct Pressure {
    std::string resource;  // cpu, memory, io
    double some_seconds = 0.0;
    double full_seconds = 0.0;
    double some_share = 0.0;  // of the last 10 s
    double full_share = 0.0;
  };

  double resident_bytes = 0.0;
  double cpu_user_seconds = 0.0;
  double cpu_system_seconds = 0.0;
  double open_files = 0.0;
  double max_files = 0.0;
  std::vector<Pressure> pressure;
  std::optional<double> group_memory_bytes;        // of this process's group
  std::optional<double> group_memory_limit_bytes;  // the tightest from the group up to the root, as the next
  std::optional<double> group_cpu_limit;           // processors
  std::optional<double> group_cpu_seconds;
  std::optional<double> group_throttled_seconds;
};

// Control groups of version 1 and 2. `root` stands for / in tests.
SystemFigures read_system_figures(const char* root = "/");

// Read when somebody asks, at most once a second: an idle server does not wake up for it. Loop only; reading takes some tens of
// microseconds.
class SystemSample {
 public:
  const SystemFigures& take();

 private:
  SystemFigures figures_;
  std::chrono::steady_clock::time_point taken_ = std::chrono::steady_clock::time_point::min();
};

}  // namespace braid::net
