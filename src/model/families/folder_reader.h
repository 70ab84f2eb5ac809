// Turns a Hugging Face folder into the metadata and the tensors that a GGUF file of the same model has, names and layout as llama.cpp's
// converter writes them. So a family is described once, a folder is loaded as its file would be, and `braid convert` only writes.
#pragma once

#include "files/gguf.h"
#include "files/hf_folder.h"
#include "model/families/folder_config.h"
#include "model/families/module_rows.h"
#include "model/prequantized/coded_matrix.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::model {

// Where a row of a tensor that a file holds lies in the folder's.
using RowOrder = std::vector<std::int32_t>;

// Rows whose rotated halves lie apart, as neighbouring pairs. `rotated`: of a head's rows, the first ones; 0: all.
RowOrder paired_rows(std::int32_t heads, std::int32_t head_dim, std::int32_t rotated = 0);

// All queries, then all keys, then all values, of rows that lie [kv_heads, (heads / kv_heads queries, a key, a value), head_dim].
RowOrder ungrouped_rows(std::int32_t heads, std::int32_t kv_heads, std::int32_t head_dim);

RowOrder consecutive_rows(std::int32_t first, std::int32_t count);

// What is in the folder's layers and neither in Llama's nor in GPT's ("mlp.experts.*.w9"), each once. `wrapped`: text lies beside images.
std::vector<std::string> unknown_parts(const files::HfFolder& folder, bool wrapped);

class FolderReader {
 public:
  using Names = std::span<const std::pair<std::string_view, std::string_view>>;

  // Weights whose rows stand in the place of the folder's, by their names.
  struct Stand {
    std::shared_ptr<const ModuleRows> rows;
    std::int64_t columns = 0;  // 0: it is a vector
  };
  using Stands = std::map<std::string, Stand>;

  FolderReader(const files::HfFolder& folder, FolderConfig config, std::string_view architecture, const Stands& stands = {});

  FolderConfig config;
  const files::HfFolder& folder() const { return folder_; }

  // Metadata "<architecture>.<key>"; the last value counts.
  void set(std::string_view key, files::GgufValue value);
  void set_bare(std::string key, files::GgufValue value);  // without the architecture's name

  void unset(std::string_view key);

  bool has_key(std::string_view key) const;

  // Gives tensors their names in a file: those that belong to a layer by what follows its number, the others by their whole name, both
  // without ".weight" and ".bias". `own` goes before what all families have in common. What is not known keeps its name.
  void name_tensors(Names own);

  bool has(const std::string& name) const { return tensors_.contains(name); }
  // All that follow are about a part of every layer ("attn_q"), its weights and its biases.
  void reorder(std::string_view part, const RowOrder& order);
  void reorder_columns(std::string_view part, const RowOrder& order);
  // Multiplies each row of a part's weights and biases, or all of them.
  void multiply(std::string_view part, const std::vector<float>& factors);
  // Gives a part's rows to others.
  void split(std::string_view part, std::initializer_list<std::pair<std::string_view, RowOrder>> pieces);
  void transpose(std::string_view part);  // matrices [inputs, outputs]; quantised ones lie as all others do
  void squeeze(std::string_view part);    // drops the dimensions that have one place
  // Makes one weight "blk.<layer>.<part>" of the vectors "model.layers.<layer>.<from>.<head>".
  void join_heads(std::string_view from, std::string_view part, std::int32_t layers, std::int32_t heads);
  // To all weights whose names end so.
  void add_to_vectors(std::string_view ending, float plus);
  void remove(const std::string& name) { tensors_.erase(name); }
  template <class Predicate>
  void remove_if(Predicate of_name) {
    std::erase_if(tensors_, [&](const auto& named) { return of_name(named.first); });
  }
  // For families that put tensors together in their own way.
  std::optional<files::GgufTensor> extract(const std::string& name);
  void put(files::GgufTensor tensor);
  // Names of a part's tensors of all layers.
  std::vector<std::string> of_part(std::string_view part) const;
  // A matrix's rows; 0: there is none.
  std::int64_t rows(const std::string& name) const;
  // The only value of a tensor, for the metadata.
  std::optional<float> scalar(const std::string& name);
  // All values of a tensor of floats; none: it is not there, or coded.
  std::vector<float> values(const std::string& name) const;
  // A tensor of floats that was computed; of `rows` rows.
  void add_vector(const std::string& name, std::span<const double> values);
  void add_table(const std::string& name, std::span<const double> values, std::int64_t rows);
  void put_owned(files::GgufTensor tensor, std::vector<std::byte> bytes);
  // Matrices [inputs, outputs] of floats as their rows.
  void put_transposed(files::GgufTensor tensor);

  files::GgufContents take();

 private:
  void add_stored(const std::string& name, const files::SafeTensor& stored);
  void add_coded(const std::string& name, std::shared_ptr<const CodedMatrix> coded);
  void add_stand(const std::string& name, const Stand& stand);

  const files::HfFolder& folder_;
  std::string architecture_;
  std::map<std::string, files::GgufTensor> tensors_;
  std::vector<std::pair<std::string, files::GgufValue>> metadata_;
  std::vector<std::shared_ptr<const files::ByteSource>> computed_;
  std::vector<std::string> numbers_;
  std::vector<std::string> notes_;
};

}  // namespace braid::model
