// The activations of one pass: allocated once, reused by every pass. Strand only.
#pragma once

#include "files/mapping.h"
#include "kernels/kernel_table.h"
#include "model/hyper_parameters.h"
#include "model/weights.h"

#include <cstddef>
#include <cstdint>

namespace braid::model {

struct WorkspaceShape {
  std::int32_t rows = 512;       // tokens in one pass
  std::int32_t logit_rows = 64;  // rows whose logits exist at once
  std::int32_t members = 1;      // of the thread team
  std::int32_t parts = 64;       // (row, chunk) pairs that attention may spread over the team
};

// One row's work on one chunk of its context.
struct ContextPart {
  std::int32_t row = 0;
  std::int32_t chunk = 0;  // its first position
};

// Rows of floats. They lie an odd number of cache lines apart, so that a column of them falls into different sets of a cache: products
// write 16 rows at a time (perf/README.md).
struct Rows {
  float* data = nullptr;
  std::int64_t stride = 0;  // floats from a row to the next

  float* operator[](std::int64_t row) const { return data + row * stride; }
};

struct Workspace {
  static Result<Workspace> create(const HyperParameters& model, const Weights& weights, const kernels::KernelTable& table,
                                  const WorkspaceShape& shape, files::HugePages pages = files::HugePages::kTransparent);
  // What create() would take; the weights need no data.
  static std::size_t bytes(const HyperParameters& model, const Weights& weights, const kernels::KernelTable& table,
                           const WorkspaceShape& shape);

  WorkspaceShape shape;
  Rows residual;                                    // [rows, embedding]
  Rows query;                                       // [rows, heads * head_dim]
  Rows key;                                         // [rows, kv_heads * head_dim]
  Rows value;                                       // [rows, kv_heads * head_dim]
  Rows attended;                                    // [rows, heads * head_dim]
  Rows gate;                                        // [rows, feed_forward]
  Rows up;                                          // [rows, feed_forward]
  float* cos = nullptr;                             // [rows, rotated / 2]
  float* sin = nullptr;                             // [rows, rotated / 2]
  Rows logits;                                      // [logit_rows, vocab]
  std::byte* prepared = nullptr;                    // rows of the largest kind
  kernels::AttentionRow* attention_rows = nullptr;  // [rows]
  std::int32_t* tile_begin = nullptr;               // [rows + 1], rows of attention that are claimed together
  ContextPart* part_list = nullptr;                 // [parts]
  std::int32_t* part_begin = nullptr;               // [parts + 1], of a row in part_list
  float* parts = nullptr;                           // [parts, heads, part_floats]
  std::byte* scratch = nullptr;                     // [members, scratch_stride]: a row to be prepared, or the attention kernel's
  std::size_t scratch_stride = 0;
  files::Mapping storage;
};

}  // namespace braid::model
