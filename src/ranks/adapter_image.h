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

// For a model of so many matrices whose kernels are the table's. kInternal: these bytes are none, or point out of themselves.
Result<ReceivedAdapter> read_adapter(std::span<const std::byte> bytes, std::uint32_t matrices, const kernels::KernelTable& table);

}  // namespace braid::ranks
