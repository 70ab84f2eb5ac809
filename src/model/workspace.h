// The activations of one pass: allocated once, reused by every pass. Strand only.
#pragma once

#include "files/mapping.h"
#include "kernels/kernel_table.h"
#include "model/adapters/adapted_rows.h"
#include "model/kept_inputs.h"
#include "model/model_shape.h"
#include "model/routes.h"
#include "model/rows.h"
#include "model/weights.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace braid::model {

struct WorkspaceShape {
  std::int32_t rows = 512;       // tokens in one pass
  std::int32_t logit_rows = 64;  // rows whose logits exist at once
  std::int32_t members = 1;      // of the thread team
  std::int32_t drafts = 0;       // guessed tokens of one pass whose inputs to recurrent layers are kept
  std::int32_t parts = 64;       // (row, chunk) pairs that attention may spread over the team
};

// One row's work on one chunk of its context.
struct ContextPart {
  std::int32_t row = 0;
  std::int32_t chunk = 0;  // its first position
};

// cos and sin of one rotary table for the rows of a pass.
struct Angles {
  std::int64_t pairs = 0;
  float* cos = nullptr;  // [rows, pairs]
  float* sin = nullptr;  // [rows, pairs]

  float* cos_of(std::int64_t row) const { return cos + row * pairs; }
  float* sin_of(std::int64_t row) const { return sin + row * pairs; }
};

// Bytes from one prepared matrix's rows to the next, where several are prepared at once.
inline std::size_t prepared_stride(const kernels::KernelTable& table, const kernels::PackedMatrix& matrix, std::int64_t rows) {
  return (table.prepared_bytes(matrix.type, matrix.inputs, rows) + 63) / 64 * 64;
}

struct Workspace {
  static Result<Workspace> create(const ModelShape& model, const Weights& weights, const kernels::KernelTable& table,
                                  const WorkspaceShape& shape, files::HugePages pages = files::HugePages::kTransparent);
  // What create() would take; the weights need no data.
  static std::size_t bytes(const ModelShape& model, const Weights& weights, const kernels::KernelTable& table, const WorkspaceShape& shape);

  WorkspaceShape shape;
  std::int64_t embedding = 0;    // width of the residual stream
  Rows residual;                 // [rows, embedding]
  Rows beside;                   // [rows, 2 embedding]: what attention reads in the place of the stream (LayerShape::reads_beside), or none
  Rows branch;                   // [rows, embedding]: what a branch gives before its post-norm or scale, or none
  Rows query;                    // [rows, widest query]
  Rows key;                      // [rows, widest key]
  Rows value;                    // [rows, widest key]
  Rows attended;                 // [rows, widest query, or what a recurrent layer gives]
  Rows mixed;                    // [rows, widest input of a recurrent layer]; or none
  Rows convolved;                // [rows, widest convolution of one with heads]; or none
  Rows state_gate;               // [rows, widest gate of one with the delta rule], or none
  Rows betas, decays;            // [rows, its heads]
  std::vector<KeptInputs> kept;  // by layer, with `drafts` those with a state
  Rows attention_gate;           // [rows, widest query of attention with a gate], or none
  Rows layer_inputs;             // [rows, layers, width of a layer's input], or none
  Rows streams;                  // [rows, streams, embedding], or none
  Rows learned_residual;         // [rows, embedding], or none
  Rows narrow;                   // [rows, what a layer's input or a learned residual is narrowed to], or none
  Rows gate;                     // [rows, feed_forward]
  Rows up;                       // [rows, feed_forward]
  // Of layers with experts, or none:
  Rows normed;       // [rows, embedding]: what the branch reads
  Rows shared;       // [rows, embedding]: what the network of all rows gives where it is a branch of its own; or none
  Rows scores;       // [rows, experts]
  Rows expert_gate;  // [places, width of an expert]
  Rows expert_up;    // [places, width of an expert]
  Rows expert_out;   // [places, embedding or latent]
  Rows latent_rows;  // [rows, latent]: what experts read where that is narrower; or none
  Rows latent_sums;  // [rows, latent]: and what they give
  Routes routes;
  // Of attention to latents, or none:
  Rows narrow_query;                                // [rows, what queries are made of]
  Rows head_queries;                                // [rows, heads, plain + rotated]
  Rows latent_values;                               // [rows, heads, value_dim]
  PreparedProduct* head_products = nullptr;         // [heads]
  std::vector<Angles> angles;                       // for each rotary table
  Rows logits;                                      // [logit_rows, vocab]
  std::byte* prepared = nullptr;                    // rows of the largest kind
  kernels::AttentionRow* attention_rows = nullptr;  // [rows], at the last positions that they see
  std::int32_t* attention_ahead = nullptr;          // [rows]: how far these are behind their own
  std::int32_t* tile_begin = nullptr;               // [rows + 1], rows of attention that are claimed together
  ContextPart* part_list = nullptr;                 // [parts]
  std::int32_t* part_begin = nullptr;               // [parts + 1], of a row in part_list
  float* parts = nullptr;                           // [parts, heads, part_floats]
  std::byte* scratch = nullptr;                     // [members, scratch_stride]: a row to be prepared, or the attention kernel's
  std::size_t scratch_stride = 0;
  AdaptedRows adapted;
  files::Mapping storage;

  std::byte* scratch_of(int member) const { return scratch + static_cast<std::size_t>(member) * scratch_stride; }
};

}  // namespace braid::model
