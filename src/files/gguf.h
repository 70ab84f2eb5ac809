// GGUF v2/v3 (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md): metadata and tensors of a model file, checked before use.
#pragma once

#include "braid/result.h"
#include "files/byte_source.h"
#include "files/coded_rows.h"
#include "kernels/weight_type.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace braid::files {

struct GgufArray;
using GgufValue = std::variant<std::uint64_t, std::int64_t, double, bool, std::string, GgufArray>;
// Elements of one type; numbers widened as in GgufValue.
struct GgufArray {
  std::variant<std::vector<std::uint64_t>, std::vector<std::int64_t>, std::vector<double>, std::vector<bool>, std::vector<std::string>>
      items;

  bool operator==(const GgufArray&) const = default;
};

struct GgufTensor {
  std::string name;
  std::uint32_t type = 0;            // ggml type id; kernels::weight_format tells whether it can be computed with
  std::vector<std::int64_t> shape;   // ggml order: shape[0] is the contiguous dimension (a matrix is [inputs, outputs])
  std::span<const std::byte> bytes;  // within the file's mapping
  // What a Hugging Face folder may hold differently, and a GGUF file does not:
  std::vector<std::int32_t> order = {};    // the stored row (of a vector: value) of each; empty: they lie in order, and are all there are
  std::vector<std::int32_t> columns = {};  // of a matrix: the stored value of each in a row; empty: they lie in order
  float plus = 0.0F;                       // to be added to every value of a vector
  std::vector<float> factors = {};         // what each row, or all of them, is to be multiplied by; empty: nothing
  std::shared_ptr<const CodedRows> coded = {};  // how a matrix is read that is no type of a file; `type` is then the nearest that is
};

// What a model is made of, however it is stored.
struct GgufContents {
  std::vector<std::shared_ptr<const ByteSource>> sources;  // that hold the tensors' bytes; the first one's name is the model's
  std::vector<std::pair<std::string, GgufValue>> metadata;
  std::vector<GgufTensor> tensors;
  std::vector<std::string> numbers = {};  // of a folder: tensors whose only value has become part of the metadata
  std::vector<std::string> notes = {};    // sentences that the user should see: what of it is not held exactly
};

// Metadata and tensors of a model: a GGUF file, or a folder of another kind that was read as the file that a converter would make of it.
// Owns the mapping of every part of a (possibly split) model. Immutable: any thread may read.
class GgufFile {
 public:
  // Opens `path`; given the first part of a split model ("-00001-of-0000N"), opens them all.
  static Result<GgufFile> open(const std::string& path);
  // Reads one that is in memory already; `name` is for messages.
  static Result<GgufFile> from_bytes(std::shared_ptr<const ByteSource> source);
  // Of what was read from elsewhere; there is at least one source.
  static GgufFile from_contents(GgufContents contents);
  // To be changed, and made a file of again.
  GgufContents contents() const;
  // The same tensors with other metadata.
  GgufFile with_metadata(std::vector<std::pair<std::string, GgufValue>> metadata) const;

  GgufFile(GgufFile&&) noexcept;
  GgufFile& operator=(GgufFile&&) noexcept;
  ~GgufFile();

  const std::string& name() const;
  std::uint32_t version() const;     // 0: it was no GGUF file
  std::uint64_t file_bytes() const;  // of all parts

  // Typed look-ups: null (or nullopt) when absent; kBadFile when present with another type.
  const GgufValue* find(std::string_view key) const;
  Result<std::uint64_t> unsigned_or(std::string_view key, std::uint64_t fallback) const;
  Result<double> number_or(std::string_view key, double fallback) const;
  Result<bool> bool_or(std::string_view key, bool fallback) const;
  Result<std::string> string_or(std::string_view key, std::string fallback) const;

  const std::vector<std::pair<std::string, GgufValue>>& metadata() const;
  const std::vector<GgufTensor>& tensors() const;
  const std::vector<std::string>& notes() const;  // GgufContents
  // Of each entry of metadata() its type and value as the file has them, for who writes them again; empty where it was no GGUF file.
  const std::vector<std::span<const std::byte>>& stored_values() const;
  const GgufTensor* tensor(std::string_view name) const;
  // Tells the system that a tensor's bytes, or some of them, will not be read again. A hint.
  void drop_pages(const GgufTensor& tensor) const;
  void drop_pages(std::span<const std::byte> bytes) const;

 private:
  struct Contents;
  explicit GgufFile(std::unique_ptr<Contents> contents);
  std::unique_ptr<Contents> contents_;
};

}  // namespace braid::files
