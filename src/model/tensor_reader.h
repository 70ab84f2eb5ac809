// Looks tensors up by name and holds them against the expected shape; matrices are noted first and packed together later.
#pragma once

#include "files/gguf.h"
#include "files/mapping.h"
#include "files/progress.h"
#include "kernels/kernel_table.h"
#include "kernels/thread_team.h"
#include "model/model_shape.h"
#include "model/share.h"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

namespace braid::model {

// How a matrix is used. Of one in products, a rank has the outputs of its share; any row of the other may be looked up.
enum class ReadBy { kProducts, kRows };

// Whether stored feed-forward matrices of `type` are packed rotated where that is wanted (Packing::rotated): types with a scale for 32 inputs.
bool rotates(kernels::WeightType type);

// The first failure is kept in error(); later calls do no harm.
class TensorReader {
 public:
  // `float_type`: what matrices of F32, F16 and BF16 are packed as; their own type otherwise. `rotate`: whether those of Q8_0 that may be
  // packed rotated are. `share`: what is packed of matrices in products. `partial`: what is read is there already, and what the file does not
  // have of it stays what it is.
  TensorReader(const files::GgufFile& file, const kernels::KernelTable& table, std::optional<kernels::WeightType> float_type, bool rotate,
               const Share& share, bool partial = false)
      : file_(file), table_(table), float_type_(float_type), rotate_(rotate), share_(share), partial_(partial) {}

  const std::optional<Error>& error() const { return error_; }
  bool has(const std::string& name) const { return file_.tensor(name) != nullptr; }

  // Reads a vector of `size` values as floats; leaves `out` empty when it is absent and may be.
  void vector(const std::string& name, std::int64_t size, Presence presence, std::vector<float>& out);

  // The same of `size` values in any shape, which must be there.
  void values(const std::string& name, std::int64_t size, std::vector<float>& out);

  // The same for `rows` of them, one after the other.
  void table(const std::string& name, std::int64_t size, std::int64_t rows, std::vector<float>& out);

  // A kernel of `taps` for each channel, which a file has side by side: [taps, width].
  void kernel(const std::string& name, std::int64_t width, std::int32_t taps, std::vector<float>& out);

  // Whether matrices that are noted from now on are packed; those that are not have no data.
  void own(bool is_own) { is_own_ = is_own; }

  // Notes a matrix for pack(); `out` must stay where it is until then.
  void matrix(const LinearShape& shape, kernels::PackedMatrix& out, ReadBy use = ReadBy::kProducts);

  // The same of expert (or head) `index` of `count` that lie in one tensor, with its bias.
  void expert(const LinearShape& shape, std::int32_t index, std::int32_t count, kernels::PackedMatrix& out, std::vector<float>& bias);

  // Its bias, where there is one.
  void bias(const LinearShape& shape, std::vector<float>& out);

  // A tensor that is allowed and not used.
  void ignore(const std::string& name) { seen_.insert(name); }

  // Fails for a tensor of the file that nobody asked for: computing without it would give wrong answers.
  void refuse_others(std::string_view architecture);

  std::size_t packed_bytes() const { return packed_bytes_; }
  std::uint32_t matrices() const { return numbered_; }
  std::uint32_t norms() const { return norms_; }
  std::uint32_t number_norm() { return ++norms_; }

  // The data of matrices that stayed what they were, where it begins.
  const std::vector<const std::byte*>& kept() const { return kept_; }
  const std::byte* begin_of(const kernels::PackedMatrix& matrix, ReadBy use) const;

  // Packs what matrix() noted into one mapping and completes the matrices.
  Result<files::Mapping> pack(kernels::ThreadTeam& team, const files::Progress& progress, files::HugePages pages) const;

 private:
  // The matrix's rows come after `skipped` of others in the tensor.
  void note(const files::GgufTensor& tensor, const LinearShape& shape, std::int64_t skipped, ReadBy use, kernels::PackedMatrix& out);

  struct Noted {
    const files::GgufTensor* tensor;
    LinearShape shape;
    std::int64_t skipped;
    kernels::PackedMatrix* out;
    std::size_t offset;
    kernels::PanelRange panels;
  };

  kernels::PanelRange panels_of(const kernels::PackedMatrix& matrix, ReadBy use) const;
  std::size_t bytes_of(const kernels::PackedMatrix& matrix, const kernels::PanelRange& panels) const;
  kernels::WeightType packed_type(const files::GgufTensor& tensor, const LinearShape& shape) const;
  void pack_panels(const Noted& noted, std::int64_t begin, std::int64_t end, std::byte* packed) const;
  void drop_pages(const Noted& noted, bool is_last) const;
  const files::GgufTensor* find(const std::string& name, std::initializer_list<std::int64_t> shape, Presence presence);
  void fail(ErrorCode code, const std::string& tensor, const std::string& message);

  const files::GgufFile& file_;
  const kernels::KernelTable& table_;
  const std::optional<kernels::WeightType> float_type_;
  const bool rotate_;
  const Share share_;
  const bool partial_;
  std::optional<Error> error_;
  std::unordered_set<std::string> seen_;
  std::vector<Noted> matrices_;
  std::vector<const std::byte*> kept_;
  std::size_t packed_bytes_ = 0;
  std::uint32_t numbered_ = 0;  // matrices
  std::uint32_t norms_ = 0;
  bool is_own_ = true;
};

}  // namespace braid::model
