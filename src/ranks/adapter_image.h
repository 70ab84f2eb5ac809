// An adapter as bytes, from the process that has read it to those that compute with it.
#pragma once

#include "braid/result.h"
#include "kernels/kernel_table.h"
#include "model/adapters/adapter.h"
#include "ranks/message.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace braid::ranks {

struct ReceivedAdapter {
  std::uint64_t number = 0;
  std::shared_ptr<const model::Adapter> adapter;
};

// All that passes need of it: not its head for classes, which whoever samples applies.
void write_adapter(std::uint64_t number, const model::Adapter& adapter, Bytes& out);

// What it is for: how many matrices the model has, how wide its embedding and its head are, and its kernels.
struct ImageBase {
  std::uint32_t matrices = 0;
  std::int64_t embedding = 0;
  const kernels::KernelTable& table;
};

// kInternal: these bytes are none, or point out of themselves.
Result<ReceivedAdapter> read_adapter(std::span<const std::byte> bytes, const ImageBase& base);

}  // namespace braid::ranks
