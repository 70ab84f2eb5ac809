#include "text/tokenizer/pipeline/post_processor.h"

#include <fmt/format.h>

namespace braid::text {
namespace {

// "sep": ["</s>", 2]
TokenId token_of(const ConfigNode& node, std::string_view name) {
  const auto items = node.items(name);
  if (items.size() == 2) return static_cast<TokenId>(items[1].as_count());
  node.fail(ErrorCode::kBadFile, fmt::format("'{}.{}' is not a text and its id", node.path(), name));
  return 0;
}

void append_special(const ConfigNode& node, const std::string& name, TokenFrame& frame) {
  const auto all = node.find("special_tokens");
  const auto special = all ? all->find(name) : std::nullopt;
  if (!special) return node.fail(ErrorCode::kBadFile, fmt::format("'{}.special_tokens' lacks '{}'", node.path(), name));
  for (const ConfigNode& id : special->items("ids")) frame.emplace_back(static_cast<TokenId>(id.as_count()));
}

TokenFrame read_template(const ConfigNode& node) {
  TokenFrame frame;
  for (const ConfigNode& piece : node.items("single")) {
    if (const auto special = piece.find("SpecialToken")) {
      append_special(node, special->text("id"), frame);
    } else if (const auto sequence = piece.find("Sequence"); sequence && sequence->text("id") == "A") {
      frame.emplace_back();
    } else {
      piece.fail(ErrorCode::kBadFile, fmt::format("'{}' is neither a SpecialToken nor the Sequence A", piece.path()));
    }
  }
  return frame;
}

// Each part takes what the one before it made for the text.
TokenFrame read_parts(const ConfigNode& node) {
  TokenFrame frame = {std::nullopt};
  for (const ConfigNode& part : node.items("processors")) {
    const TokenFrame outer = read_post_processor(part);
    TokenFrame joined;
    for (const auto& token : outer) {
      if (token) {
        joined.push_back(token);
      } else {
        joined.insert(joined.end(), frame.begin(), frame.end());
      }
    }
    frame = std::move(joined);
    if (frame.size() > 1024) node.fail(ErrorCode::kBadFile, fmt::format("'{}' adds more than 1000 tokens to every text", node.path()));
    if (node.failed()) break;
  }
  return frame;
}

}  // namespace

TokenFrame read_post_processor(const std::optional<ConfigNode>& node) {
  if (!node) return {std::nullopt};
  const std::string type = node->text("type");
  if (node->failed() || type == "ByteLevel") return {std::nullopt};  // sets offsets only
  if (type == "TemplateProcessing") return read_template(*node);
  if (type == "BertProcessing" || type == "RobertaProcessing") return {token_of(*node, "cls"), std::nullopt, token_of(*node, "sep")};
  if (type == "Sequence") return read_parts(*node);
  node->refuse_type(type, "'BertProcessing', 'ByteLevel', 'RobertaProcessing', 'Sequence', 'TemplateProcessing'");
  return {};
}

}  // namespace braid::text
