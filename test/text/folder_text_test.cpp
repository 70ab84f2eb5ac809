// The text side of Hugging Face folders.
#include "text/folder_text.h"

#include "support/folder.h"
#include "support/test_data.h"
#include "text/codec.h"
#include "text/ggml_tokenizer.h"
#include "text/tokenizer/tokenizer.h"

#include <cstdlib>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iterator>

namespace braid::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class FolderText : public testing::Test {
 protected:
  FolderText() {
    write("config.json", R"({"model_type": "llama", "eos_token_id": 1})");
    const std::vector<std::byte> bytes = files::write_safetensors({});
    write("model.safetensors", std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    write("tokenizer.json",
          R"({"added_tokens": [{"id": 0, "content": "<s>", "special": true}, {"id": 1, "content": "</s>", "special": true}],
      "model": {"type": "BPE", "vocab": {"<s>": 0, "</s>": 1, "a": 2, "b": 3, "ab": 4}, "merges": ["a b"]}})");
  }

  void write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name, std::ios::binary) << text; }

  // Nothing, or what is wrong.
  std::string error() {
    files::GgufContents contents;
    const auto added = add_folder_text(files::HfFolder::open(folder_.path()).value(), contents.metadata);
    return added ? "none" : added.error().message;
  }

  std::unique_ptr<const ModelCodec> codec() {
    const files::HfFolder folder = files::HfFolder::open(folder_.path()).value();
    files::GgufContents contents;
    add_folder_text(folder, contents.metadata).value();
    contents.sources = folder.sources();
    file_.emplace(files::GgufFile::from_contents(std::move(contents)));
    return ModelCodec::from_gguf(*file_).value();
  }

  braid::test::Folder folder_;
  std::optional<files::GgufFile> file_;
};

TEST_F(FolderText, HasTheTokenizerAndTheEndTokensOfConfigJson) {
  const auto own = codec();
  EXPECT_THAT(own->encode("abba", {}).value(), ElementsAre(4, 3, 2));
  EXPECT_THAT(own->end_of_generation(), ElementsAre(1));
  EXPECT_FALSE(own->has_chat_template());
}

TEST_F(FolderText, GenerationConfigGoesBeforeConfigJson) {
  write("generation_config.json", R"({"eos_token_id": [1, 3], "do_sample": true, "temperature": 0.5, "top_k": 7})");
  EXPECT_THAT(codec()->end_of_generation(), ElementsAre(1, 3));
  EXPECT_EQ(file_->number_or("general.sampling.temp", 1.0).value(), 0.5);
  EXPECT_EQ(file_->number_or("general.sampling.top_k", 0.0).value(), 7.0);
}

TEST_F(FolderText, TheTemplateIsAFileOrInTheTokenizersConfiguration) {
  const auto rendered = [&] {
    ChatPrompt prompt;
    prompt.messages = ValueList{ValueDict{{"role", "user"}, {"content", "x"}}};
    return codec()->render(prompt).value().text;
  };
  write("tokenizer_config.json", R"({"bos_token": "<s>", "chat_template": "{{ bos_token }}one"})");
  EXPECT_EQ(rendered(), "<s>one");
  write("tokenizer_config.json",
        R"({"chat_template": [{"name": "tool_use", "template": "tools"}, {"name": "default", "template": "two"}]})");
  EXPECT_EQ(rendered(), "two");
  write("chat_template.jinja", "three");
  EXPECT_EQ(rendered(), "three");
}

// What transformers writes for "no limit" has more digits than simdjson reads.
TEST_F(FolderText, TheTokenizersConfigurationMayHaveNoLimit) {
  write("tokenizer_config.json",
        R"({"model_max_length": 1000000000000000019884624838656, "chat_template": "\"123456789012345678901", "note": -Infinity})");
  EXPECT_EQ(codec()->render({.messages = ValueList{ValueDict{{"role", "user"}, {"content", "x"}}}}).value().text,
            "\"123456789012345678901");
}

TEST_F(FolderText, TellsWhatIsWrong) {
  EXPECT_EQ(error(), "none");
  write("generation_config.json", "[");
  EXPECT_THAT(error(), HasSubstr("generation_config.json: is not JSON"));
  write("generation_config.json", "{}");
  write("tokenizer_config.json", R"({"chat_template": [{"name": "default"}]})");
  EXPECT_THAT(error(), HasSubstr("tokenizer_config.json: an item of 'chat_template' lacks"));
  std::filesystem::remove(folder_ / "tokenizer.json");
  EXPECT_THAT(error(), HasSubstr("has neither tokenizer.json nor tokenizer.model"));
}

TEST_F(FolderText, WithoutTokenizerJsonAnotherFileOfTheTokenizerCounts) {
  std::filesystem::remove(folder_ / "tokenizer.json");
  write("config.json", R"({"model_type": "llama"})");
  write("tiktoken.model", "YQ== 0\nYg== 1\nYWI= 2\n");
  write("tokenizer_config.json", R"({"eos_token": "</s>", "added_tokens_decoder": {"3": {"content": "</s>", "special": true}}})");
  const auto own = codec();
  EXPECT_THAT(own->encode("abba</s>", {.add_special = true, .parse_special = true}).value(), ElementsAre(2, 1, 0, 3));
  EXPECT_THAT(own->end_of_generation(), ElementsAre(3));
  write("tokenizer.model", "no message");
  const files::HfFolder folder = files::HfFolder::open(folder_.path()).value();
  files::GgufContents contents;
  add_folder_text(folder, contents.metadata).value();
  contents.sources = folder.sources();
  const auto tokenizer = Tokenizer::from_gguf(files::GgufFile::from_contents(std::move(contents)));
  ASSERT_FALSE(tokenizer);
  EXPECT_THAT(tokenizer.error().message, HasSubstr("tokenizer.model is no file of SentencePiece"));
}

// What older code saves of GPT-2's and Qwen 2's tokenizers, as InternVL's folders have it.
TEST_F(FolderText, AVocabularyAndItsMergesAreATokenizer) {
  std::filesystem::remove(folder_ / "tokenizer.json");
  write("config.json", R"({"model_type": "llama"})");
  write("vocab.json", R"({"a": 0, "b": 1, "ab": 2, "\u0120": 3, "\"": 4, "1": 5, "11": 6, "\"\"": 7})");
  write("merges.txt", "#version: 0.2\na b\r\n1 1\n\" \"\n");
  write("added_tokens.json", R"({"</s>": 8, "<img>": 9})");
  const std::string added =
      R"("added_tokens_decoder": {"10": {"content": "<tool>", "special": false}, "8": {"content": "</s>", "special": true},
      "9": {"content": "<img>", "special": true}}, "eos_token": "</s>")";
  write("tokenizer_config.json", R"({"tokenizer_class": "Qwen2Tokenizer", )" + added + "}");
  const EncodeOptions special{.add_special = true, .parse_special = true};
  EXPECT_THAT(codec()->encode("ab<img>b\"\" 11<tool></s>", special).value(), ElementsAre(2, 9, 1, 7, 3, 5, 5, 10, 8));
  EXPECT_THAT(codec()->end_of_generation(), ElementsAre(8));
  write("tokenizer_config.json", R"({"tokenizer_class": "GPT2TokenizerFast", )" + added + "}");
  EXPECT_THAT(codec()->encode("11", special).value(), ElementsAre(6));
  std::filesystem::remove(folder_ / "added_tokens.json");
  write("tokenizer_config.json", R"({"tokenizer_class": "GPT2Tokenizer", "eos_token": {"content": "ab"}})");
  EXPECT_THAT(codec()->end_of_generation(), ElementsAre(2));
  EXPECT_THAT(codec()->encode("bab", special).value(), ElementsAre(1, 2));
  EXPECT_THAT(codec()->encode("bab", {.add_special = false, .parse_special = false}).value(), ElementsAre(1, 0, 1));
  write("tokenizer_config.json", R"({"tokenizer_class": "GPT2Tokenizer", "added_tokens_decoder": {"8": {}}})");
  EXPECT_THAT(error(), HasSubstr("'added_tokens_decoder' has nothing of 8"));
  write("tokenizer_config.json", R"({"tokenizer_class": "CodeGenTokenizer"})");
  EXPECT_THAT(error(), HasSubstr("of the class \"CodeGenTokenizer\" vocab.json and merges.txt are not read"));
  write("tokenizer_config.json", R"({"tokenizer_class": "GPT2Tokenizer", "added_tokens_decoder": {"x": {}}})");
  EXPECT_THAT(error(), HasSubstr("'added_tokens_decoder' has the entry 'x'"));
  write("tokenizer_config.json", R"({"tokenizer_class": "GPT2Tokenizer"})");
  write("vocab.json", "[]");
  EXPECT_THAT(error(), HasSubstr("vocab.json: is not a JSON object"));
  write("vocab.json", "{}");
  write("added_tokens.json", R"({"<x>": "y"})");
  EXPECT_THAT(error(), HasSubstr("added_tokens.json: has an id that is no number"));
}

// The texts of a vocabulary that llama.cpp publishes, through the files that transformers' older code writes.
TEST_F(FolderText, AKnownVocabularyAndItsMergesEncodeAsItsGgufFileDoes) {
  const auto path = braid::test::test_data("models/vocab/ggml-vocab-qwen2.gguf");
  if (!path) GTEST_SKIP() << "BRAID_TEST_DATA is not set";
  const files::GgufFile file = files::GgufFile::open(*path).value();
  const auto list = [&](const char* key) { return std::get<std::vector<std::string>>(std::get<files::GgufArray>(*file.find(key)).items); };
  const std::vector<std::string> tokens = list("tokenizer.ggml.tokens");
  constexpr std::size_t kRanks = 151643;
  std::string vocabulary, added, merges = "#version: 0.2\n";
  const auto quoted = [](const std::string& text) {
    std::string out = "\"";
    for (const char c : text) out += (c == '"' || c == '\\' ? "\\" : "") + std::string(1, c);
    return out + '"';
  };
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    std::string& into = id < kRanks ? vocabulary : added;
    into += (into.empty() ? "" : ",") + quoted(tokens[id]) + ":" + std::to_string(id);
  }
  for (const std::string& merge : list("tokenizer.ggml.merges")) merges += merge + "\n";
  std::filesystem::remove(folder_ / "tokenizer.json");
  write("vocab.json", "{" + vocabulary + "}");
  write("merges.txt", merges);
  write("added_tokens.json", "{" + added + "}");
  write("tokenizer_config.json", R"({"tokenizer_class": "Qwen2Tokenizer"})");
  const auto own = codec();
  const auto other = Tokenizer::from_gguf(file).value();
  std::ifstream in(*path + ".inp", std::ios::binary);
  const std::string texts{std::istreambuf_iterator<char>(in), {}};
  constexpr std::string_view kBetween = "\n__ggml_vocab_test__\n";
  for (std::size_t at = 0; at < texts.size();) {
    const std::size_t end = std::min(texts.find(kBetween, at), texts.size());
    const std::string text = texts.substr(at, end - at);
    EXPECT_EQ(own->encode(text, {}).value(), other.encode(text, {})) << text;
    at = end + kBetween.size();
  }
}

TEST_F(FolderText, ADamagedTokenizerIsTold) {
  write("tokenizer.json", R"({"model": {"type": "Neural"}})");
  const files::HfFolder folder = files::HfFolder::open(folder_.path()).value();
  files::GgufContents contents;
  add_folder_text(folder, contents.metadata).value();
  contents.sources = folder.sources();
  const auto tokenizer = Tokenizer::from_gguf(files::GgufFile::from_contents(std::move(contents)));
  ASSERT_FALSE(tokenizer);
  EXPECT_THAT(tokenizer.error().message, AllOf(HasSubstr("tokenizer.json"), HasSubstr("Neural")));
}

// The name of the rules that GGUF's keys get for a byte-level BPE with these pre-tokenizers.
std::string named_rules(const std::string& pre_tokenizers, bool ignore_merges = false) {
  std::vector<std::pair<std::string, files::GgufValue>> metadata;
  metadata.emplace_back(kTokenizerJsonKey, R"({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [)" + pre_tokenizers +
                                               R"(]}, "model": {"type": "BPE", "ignore_merges": )" + (ignore_merges ? "true" : "false") +
                                               R"(, "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})");
  const std::vector<std::string> warnings = add_ggml_tokenizer(metadata);
  for (const auto& [key, value] : metadata)
    if (key == "tokenizer.ggml.pre") return std::get<std::string>(value) + (warnings.empty() ? "" : ", with a warning");
  return "none";
}

std::string split_by(const std::string& regex) {
  return R"({"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex": ")" + regex + R"("}}, )";
}

// Expressions as tokenizer.json of the hub have them, the backslashes doubled and some line ends as such.
TEST(GgmlTokenizer, NamesTheRulesThatCutAlike) {
  const std::string bytes = R"({"type": "ByteLevel", "use_regex": false})";
  const std::string gpt2 = R"({"type": "ByteLevel"})";
  const std::string contractions = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?)";
  const std::string rest = R"( ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+)";
  const std::string llama3 = split_by(contractions + R"(\\p{L}+|\\p{N}{1,3}|)" + rest) + bytes;
  EXPECT_EQ(named_rules(gpt2), "gpt-2");
  EXPECT_EQ(named_rules(R"({"type": "Digits", "individual_digits": true}, )" + gpt2), "smollm");
  EXPECT_EQ(named_rules(llama3, true), "llama-bpe");
  EXPECT_EQ(named_rules(llama3, false), "dbrx");
  EXPECT_EQ(named_rules(split_by(contractions + R"(\\p{L}+|\\p{N}|)" + rest) + bytes), "qwen2");
  EXPECT_EQ(
      named_rules(
          split_by(R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]+)"
                   R"(|\\s+(?!\\S)|\\s+)") +
          bytes),
      "qwen2");
  EXPECT_EQ(named_rules(split_by(R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+)"
                                 R"([\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+)") +
                        bytes),
            "qwen35");
  const std::string words = R"([^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+)";
  const std::string titles = R"([^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*)";
  const std::string tail = R"( ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+)";
  const std::string short_forms = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)";
  EXPECT_EQ(named_rules(split_by(words + "|" + titles + R"(|\\p{N}|)" + tail) + bytes), "tekken");
  EXPECT_EQ(named_rules(split_by(words + short_forms + titles + short_forms + R"(\\p{N}{1,3}|)" + tail) + bytes), "gpt-4o");
  EXPECT_EQ(named_rules(split_by(R"(\\p{N}{1,3})") + split_by("[一-龥\u3040-ゟ゠-ヿ]+") +
                        split_by(R"([!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+)"
                                 R"(| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+)") +
                        bytes),
            "deepseek-v3");
  EXPECT_EQ(named_rules(split_by(" ?[^(\\\\s|[.,!?…。，、।۔،])]+") + bytes), "bloom");
  EXPECT_EQ(named_rules(R"({"type": "Punctuation", "behavior": "Contiguous"}, )" + gpt2 +
                        R"(, {"type": "Digits", "individual_digits": false}, )" +
                        R"({"type": "Split", "behavior": "Isolated", "pattern": {"Regex": "[0-9][0-9][0-9]"}})"),
            "falcon");
}

// Without the key SentencePiece's rules add one, as Llama 2 has it and Gemma not.
TEST(GgmlTokenizer, SaysWhetherATextGetsASpace) {
  const auto adds = [](const std::string& parts) {
    std::vector<std::pair<std::string, files::GgufValue>> metadata;
    metadata.emplace_back(
        kTokenizerJsonKey,
        "{" + parts + R"(, "model": {"type": "BPE", "byte_fallback": true, "vocab": {"a": 0, "<0x00>": 1}, "merges": []}})");
    add_ggml_tokenizer(metadata);
    for (const auto& [key, value] : metadata)
      if (key == "tokenizer.ggml.add_space_prefix") return std::get<bool>(value) ? "yes" : "no";
    return "none";
  };
  const std::string replace = R"({"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"})";
  EXPECT_STREQ(adds(R"("normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"}, )" + replace + "]}"),
               "yes");
  EXPECT_STREQ(adds(R"("normalizer": )" + replace), "no");
  EXPECT_STREQ(adds(R"("pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first"})"), "yes");
  EXPECT_STREQ(adds(R"("pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "never"})"), "no");
}

TEST(GgmlTokenizer, WarnsOfRulesWithoutAName) {
  const std::string bytes = R"({"type": "ByteLevel", "use_regex": false})";
  EXPECT_EQ(named_rules(split_by(R"(\\p{L}+|\\s+)") + bytes), "default, with a warning");
  EXPECT_EQ(named_rules(R"({"type": "Digits"}, {"type": "ByteLevel"})"), "default, with a warning");
  EXPECT_EQ(named_rules(R"({"type": "UnicodeScripts"}, {"type": "ByteLevel"})"), "default, with a warning");
  // What lies between is kept, not what is found.
  EXPECT_EQ(named_rules(R"({"type": "Split", "behavior": "Removed", "pattern": {"Regex": "\\p{N}"}}, {"type": "ByteLevel"})"),
            "default, with a warning");
}

}  // namespace
}  // namespace braid::text
