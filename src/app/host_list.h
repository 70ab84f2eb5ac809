// Machines of a hostfile, for mpirun.
#pragma once

#include "braid/result.h"

#include <string>

namespace braid::app {

// What of a hostfile mpirun is given.
struct HostList {
  std::string file;   // as mpirun reads it; empty: there are `hosts`
  std::string hosts;  // "a:1,b:1", a place on each for each time that it is named
};

// A file in mpirun's own form, or in that of mlx.launch: a JSON list of {"ssh": "NAME", …}, one for each rank. kInvalidArgument.
Result<HostList> read_hostfile(const std::string& path);

}  // namespace braid::app
