// Memory nodes of a machine (NUMA): which processors are near to the same memory.
#pragma once

#include <string>
#include <vector>

namespace braid::kernels {

// The processors of each node that the calling thread may use, ascending, in the order of the nodes; nodes without any are left out. One node
// of all of them where the machine does not say. `root` stands for "/" in tests.
std::vector<std::vector<int>> memory_nodes(const std::string& root = "/");

// The calling thread, and those that it starts from then on, compute on these processors, and so memory that they are the first to write lies
// near them. Where the system refuses, they stay where they may be.
void stay_on(const std::vector<int>& cpus);

}  // namespace braid::kernels
