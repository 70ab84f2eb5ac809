// What cuts a text into the words that a model makes tokens of: the "pre_tokenizer" of tokenizer.json.
#pragma once

#include "text/tokenizer/pipeline/config_node.h"
#include "text/tokenizer/pipeline/piece_list.h"

#include <memory>

namespace braid::text {

// Immutable: any thread may use it.
class Splitter {
 public:
  virtual ~Splitter() = default;
  virtual void split(PieceList& list) const = 0;
};

// Null when `node` has none that is known: the fault is then in the node.
std::unique_ptr<const Splitter> read_splitter(const ConfigNode& node);

// Those of files of their own.
std::unique_ptr<const Splitter> make_script_splitter();
std::unique_ptr<const Splitter> read_byte_level_splitter(const ConfigNode& node);
std::unique_ptr<const Splitter> read_metaspace_splitter(const ConfigNode& node);

}  // namespace braid::text
