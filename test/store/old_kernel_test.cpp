// Kernels that have io_uring, but not what is done with it.
#include "store/io.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <thread>

namespace braid::store::test {
namespace {

// For the calling thread and those that it begins, a kernel that cannot be asked which operations it knows, as before Linux 5.6.
bool forget_probing() {
  std::array<sock_filter, 4> filter{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_register, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(OldKernel, RingThatCannotReadAndWriteIsNotUsed) {
  if (make_uring_io() == nullptr) GTEST_SKIP() << "the kernel refuses io_uring";
  bool is_old = false;
  bool has_ring = false;
  std::thread([&] {
    is_old = forget_probing();
    if (is_old) has_ring = make_uring_io() != nullptr;
  }).join();
  if (!is_old) GTEST_SKIP() << "the kernel refuses seccomp";
  EXPECT_FALSE(has_ring);
}

}  // namespace
}  // namespace braid::store::test
