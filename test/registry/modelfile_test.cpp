// Modelfiles, right and wrong ones.
#include "registry/modelfile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

namespace braid::registry {
namespace {

using ::testing::ElementsAre;

TEST(Modelfile, HasAllInstructions) {
  const auto file = parse_modelfile(R"(# a comment
FROM ./weights.gguf
from ./mmproj.gguf
PARAMETER temperature 0.5
PARAMETER num_ctx 4096
PARAMETER stop "<end of it>"
PARAMETER stop b
PARAMETER top_k 3
PARAMETER top_k 4
TEMPLATE """{{ if .System }}{{ .System }}{{ end }}
{{ .Prompt }}"""
SYSTEM "You are kind."
LICENSE """
free
"""
MESSAGE user Is this "it"?
message assistant yes
ADAPTER ./a.gguf
)");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_THAT(file->from, ElementsAre("./weights.gguf", "./mmproj.gguf"));
  EXPECT_THAT(file->adapters, ElementsAre("./a.gguf"));
  EXPECT_TRUE(file->settings.parameters ==
              (ValueDict{{"temperature", 0.5}, {"num_ctx", 4096}, {"stop", ValueList{"<end of it>", "b"}}, {"top_k", 4}}));
  EXPECT_EQ(file->settings.template_text, "{{ if .System }}{{ .System }}{{ end }}\n{{ .Prompt }}");
  EXPECT_EQ(file->settings.system, "You are kind.");
  EXPECT_THAT(file->settings.licences, ElementsAre("\nfree\n"));
  ASSERT_EQ(file->settings.messages.size(), 2U);
  EXPECT_EQ(*file->settings.messages[0].find("content"), Value("Is this \"it\"?"));
}

TEST(Modelfile, SaysInWhichLineAMistakeIs) {
  const auto mistake = [](const std::string& text) {
    const auto file = parse_modelfile(text);
    return file ? "none" : file.error().message;
  };
  EXPECT_EQ(mistake("SYSTEM x\n"), "the Modelfile has no FROM");
  EXPECT_EQ(mistake("FROM x\n\nNONSENSE y\n"), "line 3 of the Modelfile: 'NONSENSE' is no instruction");
  EXPECT_EQ(mistake("FROM\n"), "line 1 of the Modelfile: a value is missing");
  EXPECT_EQ(mistake("FROM x\nPARAMETER stop\n"), "line 2 of the Modelfile: a value is missing");
  EXPECT_EQ(mistake("FROM x\nMESSAGE robot y\n"), "line 2 of the Modelfile: 'robot' is no role: system, user or assistant");
  EXPECT_EQ(mistake("FROM x\nSYSTEM \"\"\"a\nb\n"), "line 2 of the Modelfile: a text in \"\"\" does not end");
  EXPECT_EQ(mistake("FROM x\nSYSTEM \"\"\"a\"\"\" b\n"), "line 2 of the Modelfile: something follows a text in \"\"\"");
}

}  // namespace
}  // namespace braid::registry
