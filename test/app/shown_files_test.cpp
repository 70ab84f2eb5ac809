#include "app/chat/shown_files.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>
#include <vector>

namespace braid::app {
namespace {

class ShownFiles : public testing::Test {
 protected:
  ShownFiles() {
    std::filesystem::create_directories(folder_);
    for (const char* name : {"a.png", "with space.JPG", "note.txt"}) std::ofstream(folder_ / name) << "Man";
  }
  ~ShownFiles() override { std::filesystem::remove_all(folder_); }

  std::string path(const char* name) const { return (folder_ / name).string(); }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() /
      ("braid_shown_files_" + std::to_string(::getpid()) + "_" + testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(ShownFiles, AreFoundInATextAndTakenOutOfIt) {
  const TypedText plain = find_images("What is " + path("a.png") + " then?");
  EXPECT_EQ(plain.images, std::vector<std::string>{path("a.png")});
  EXPECT_EQ(plain.words, "What is then?");
  const TypedText quoted = find_images("'" + path("with space.JPG") + "' and " + path("a.png"));
  EXPECT_EQ(quoted.images, (std::vector<std::string>{path("with space.JPG"), path("a.png")}));
  EXPECT_EQ(quoted.words, "and");
  const TypedText escaped = find_images("see " + path("with") + "\\ space.JPG");
  EXPECT_EQ(escaped.images, std::vector<std::string>{path("with space.JPG")});
}

TEST_F(ShownFiles, AreOnlyThoseThatAreThereAndAreImages) {
  for (const std::string& text :
       {path("note.txt"), path("b.png"), "x" + path("a.png"), std::string("a.png is a name"), std::string("it's 'fine'")}) {
    const TypedText typed = find_images(text);
    EXPECT_TRUE(typed.images.empty()) << text;
    EXPECT_EQ(typed.words, text);
  }
}

TEST_F(ShownFiles, AtTheBeginningAreNoCommand) {
  EXPECT_TRUE(begins_with_image(path("a.png") + " what is this?"));
  EXPECT_FALSE(begins_with_image("/set system look at " + path("a.png")));
  EXPECT_FALSE(begins_with_image("/bye"));
  EXPECT_FALSE(begins_with_image(""));
}

TEST_F(ShownFiles, AreInTheMessageAsBase64) {
  const Result<Value> message = typed_message("look " + path("a.png"));
  ASSERT_TRUE(message);
  EXPECT_EQ(*message->find("content"), Value("look"));
  EXPECT_EQ(*message->find("images"), Value(ValueList{"TWFu"}));
  EXPECT_EQ(typed_message("hello")->find("images"), nullptr);
}

}  // namespace
}  // namespace braid::app
