// Models that come, go and are found again, whatever has become of the database.
#include "registry/library.h"

#include "files/safetensors.h"
#include "registry/database.h"
#include "registry/folder_watch.h"
#include "registry/found_models.h"
#include "registry/small_models.h"
#include "registry/weights_facts.h"
#include "support/folder.h"

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mutex>
#include <sys/mount.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace braid::registry {
namespace {

namespace fs = std::filesystem;
using test::manifest_of;
using test::names_of;
using test::open_library;
using test::read_file;
using test::small_gguf;
using test::write_file;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

ModelRef ref_of(const std::string& name) { return *ModelRef::parse(name); }

TEST(Library, AModelIsThereWithAllThatItsWeightsSay) {
  const test::Folder folder;
  const auto library = open_library(folder / "data");
  ASSERT_TRUE(library->publish(ref_of("mine"), manifest_of(*library, small_gguf(64, "{% if tools %}<think>"), "Be kind.")));
  const auto entry = library->find("mine");
  ASSERT_TRUE(entry) << entry.error().message;
  EXPECT_EQ(entry->model.name, "mine:latest");
  EXPECT_EQ(entry->model.source, "pulled");
  EXPECT_EQ(entry->model.facts.architecture, "llama");
  EXPECT_EQ(entry->model.facts.parameters, 64);
  EXPECT_EQ(entry->model.facts.quantisation, "F32");
  EXPECT_EQ(entry->model.facts.context, 2048);
  EXPECT_THAT(entry->model.facts.able, ElementsAre("completion", "tools", "thinking"));
  EXPECT_EQ(read_file(entry->model.path), small_gguf(64, "{% if tools %}<think>"));
  EXPECT_EQ(entry->files.size(), 2U);
}

// Language models with eyes, in configurations that keep the text's part under one name or another, or beside the rest.
TEST(Library, FoldersOfModelsThatSeeAnswer) {
  const test::Folder folder;
  const std::vector<std::byte> weights = files::write_safetensors({});
  const auto facts_of = [&](const std::string& config) {
    write_file(folder / "config.json", config);
    write_file(folder / "model.safetensors", {reinterpret_cast<const char*>(weights.data()), weights.size()});
    return read_weights(folder.path()).value().facts;
  };
  const ModelFacts own = facts_of(R"({"model_type":"internvl_chat","architectures":["InternVLChatModel"],"vision_config":{},)"
                                  R"("llm_config":{"max_position_embeddings":32768,"hidden_size":896}})");
  EXPECT_EQ(own.context, 32768);
  EXPECT_EQ(own.embedding, 896);
  EXPECT_THAT(own.able, ElementsAre("completion", "vision"));
  EXPECT_THAT(facts_of(R"({"model_type":"minicpmv","architectures":["MiniCPMV"],"vision_config":{},"hidden_size":8})").able,
              ElementsAre("completion", "vision"));
  EXPECT_THAT(facts_of(R"({"model_type":"bert","architectures":["BertModel"]})").able, ElementsAre("embedding"));
  // Two towers side by side, and one without a head: nobody answers.
  for (const char* name : {"CLIPModel", "SiglipModel", "CLIPSegForImageSegmentation", "Gemma3Model"})
    EXPECT_THAT(facts_of(fmt::format(R"({{"architectures":["{}"],"text_config":{{}},"vision_config":{{}}}})", name)).able,
                ElementsAre("embedding"))
        << name;
}

TEST(Library, IsFilteredAndSaysWhatIsNear) {
  const test::Folder folder;
  const auto library = open_library(folder / "data");
  ASSERT_TRUE(library->publish(ref_of("plain"), manifest_of(*library, small_gguf(32))));
  ASSERT_TRUE(library->publish(ref_of("talker:1b"), manifest_of(*library, small_gguf(48, "tools"))));
  EXPECT_THAT(names_of(*library, {.capability = "tools"}), ElementsAre("talker:1b"));
  EXPECT_THAT(names_of(*library, {.name = "PLA"}), ElementsAre("plain:latest"));
  EXPECT_THAT(names_of(*library, {.architecture = "LLAMA"}), UnorderedElementsAre("plain:latest", "talker:1b"));
  EXPECT_THAT(names_of(*library, {.quantisation = "Q4_0"}), IsEmpty());
  EXPECT_EQ(library->find("talk")->model.name, "talker:1b");
  const auto none = library->find("tolker");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(none.error().message, "model 'tolker' not found; there is talker:1b");
}

TEST(Library, WhatNobodyElseHasGoesWithAModel) {
  const test::Folder folder;
  const auto library = open_library(folder / "data");
  const std::string manifest = manifest_of(*library, small_gguf(), "Be kind.");
  ASSERT_TRUE(library->publish(ref_of("one"), manifest));
  ASSERT_TRUE(library->publish(ref_of("two"), manifest_of(*library, small_gguf())));
  const auto count = [&] { return std::distance(fs::directory_iterator(folder / "data/blobs"), fs::directory_iterator()); };
  EXPECT_EQ(count(), 3);  // weights, system, configuration
  ASSERT_TRUE(library->remove(*library->find("one")));
  EXPECT_THAT(names_of(*library), ElementsAre("two:latest"));
  EXPECT_EQ(count(), 2);
  ASSERT_TRUE(library->remove(*library->find("two")));
  EXPECT_EQ(count(), 0);
  EXPECT_THAT(names_of(*library), IsEmpty());
  EXPECT_TRUE(fs::is_empty(folder / "data/manifests"));
}

TEST(Library, AModelWhoseFileIsMissingOrShortIsNotPublished) {
  const test::Folder folder;
  const auto library = open_library(folder / "data");
  const std::string manifest = manifest_of(*library, small_gguf());
  const std::string blob = library->blobs().path_of(digest_of(small_gguf()));
  fs::resize_file(blob, 100);
  const auto cut = library->publish(ref_of("cut"), manifest);
  ASSERT_FALSE(cut);
  EXPECT_THAT(cut.error().message, HasSubstr("is not here"));
  fs::remove(blob);
  EXPECT_FALSE(library->publish(ref_of("cut"), manifest));
  EXPECT_THAT(names_of(*library), IsEmpty());
  EXPECT_TRUE(fs::is_empty(folder / "data/manifests"));
}

TEST(Library, ADatabaseThatIsMissingIsMadeAgain) {
  const test::Folder folder;
  open_library(folder / "data")->publish(ref_of("kept"), manifest_of(*open_library(folder / "data"), small_gguf())).value();
  fs::remove(folder / "data/registry.db");
  fs::remove(folder / "data/registry.db-wal");
  fs::remove(folder / "data/registry.db-shm");
  EXPECT_THAT(names_of(*open_library(folder / "data")), ElementsAre("kept:latest"));
}

TEST(Library, ADamagedDatabaseIsPutAsideAndMadeAgain) {
  for (const bool garbage : {true, false}) {
    const test::Folder folder;
    {
      const auto library = open_library(folder / "data");
      ASSERT_TRUE(library->publish(ref_of("kept"), manifest_of(*library, small_gguf())));
    }
    const std::string path = folder / "data/registry.db";
    std::string bytes = read_file(path);
    for (std::size_t i = garbage ? 0 : 4096; i < bytes.size(); i += 3) bytes[i] = '\x5A';  // all of it, or all behind the first page
    write_file(path, bytes);
    std::vector<std::string> warnings;
    const auto library = open_library(folder / "data", {}, &warnings);
    EXPECT_THAT(names_of(*library), ElementsAre("kept:latest"));
    ASSERT_FALSE(warnings.empty());
    EXPECT_THAT(warnings.front(), HasSubstr("a new one is made from the models"));
  }
}

TEST(Library, ANewerDatabaseIsRefused) {
  const test::Folder folder;
  open_library(folder / "data");
  {
    auto database = Database::open(folder / "data/registry.db", 1);
    ASSERT_TRUE(database);
    ASSERT_TRUE(database->set_version(99));
  }
  const auto library = Library::open({folder / "data"});
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(library.error().message, HasSubstr("newer version of braid (schema 99, this one knows 1)"));
}

TEST(Library, AManifestThatCannotBeReadHidesNoOther) {
  const test::Folder folder;
  {
    const auto library = open_library(folder / "data");
    ASSERT_TRUE(library->publish(ref_of("good"), manifest_of(*library, small_gguf())));
  }
  fs::create_directories(folder / "data/manifests/registry.ollama.ai/library/bad");
  write_file(folder / "data/manifests/registry.ollama.ai/library/bad/latest", "{");
  write_file(folder / "data/manifests/registry.ollama.ai/library/bad/.new-1-2", "half");
  std::vector<std::string> warnings;
  const auto library = open_library(folder / "data", {}, &warnings);
  EXPECT_THAT(names_of(*library), ElementsAre("good:latest"));
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_THAT(warnings.front(), HasSubstr("the manifest of bad:latest"));
}

TEST(Library, FoldersAreFoundAndHalfWrittenFilesWait) {
  const test::Folder folder;
  const test::Folder models;
  const std::string bytes = small_gguf();
  write_file(models / "Qwen3 0.6B.gguf", bytes);
  write_file(models / "half.gguf", bytes.substr(0, bytes.size() - 40));
  fs::create_directories(models / "deep/er");
  write_file(models / "deep/er/half.gguf", bytes);
  write_file(models / "notes.txt", "none");
  std::vector<std::string> warnings;
  const auto library = open_library(folder / "data", {models.path()}, &warnings);
  EXPECT_THAT(names_of(*library), UnorderedElementsAre("Qwen3-0.6B:latest", "er/half:latest"));
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("waits until it is whole")));
  write_file(models / "half.gguf", bytes);
  ASSERT_TRUE(library->refresh());
  EXPECT_THAT(names_of(*library), UnorderedElementsAre("Qwen3-0.6B:latest", "half:latest", "er/half:latest"));
  fs::remove(models / "Qwen3 0.6B.gguf");
  ASSERT_TRUE(library->refresh());
  EXPECT_THAT(names_of(*library), UnorderedElementsAre("half:latest", "er/half:latest"));
  const auto found = library->find("half");
  EXPECT_EQ(found->model.source, "folder");
  const auto removed = library->remove(*found);
  ASSERT_FALSE(removed);
  EXPECT_THAT(removed.error().message, HasSubstr("watched folder"));
}

TEST(Library, AFileThatChangesIsReadAgain) {
  const test::Folder folder;
  const test::Folder models;
  write_file(models / "one.gguf", small_gguf(32));
  const auto library = open_library(folder / "data", {models.path()});
  EXPECT_EQ(library->find("one")->model.facts.parameters, 32);
  write_file(models / "one.gguf", small_gguf(96));
  ASSERT_TRUE(library->refresh());
  EXPECT_EQ(library->find("one")->model.facts.parameters, 96);
}

TEST(FoundModels, OfASplitFileAreItsOwnPartsAlone) {
  const test::Folder folder;
  for (const char* name : {"m-00001-of-00002.gguf", "m-00002-of-00002.gguf", "m-large-00002-of-00002.gguf", "m-1.gguf"})
    write_file(folder / name, "x");
  const auto found = find_models(folder.path());
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].name, "m:latest");
  EXPECT_THAT(found[0].identity, ::testing::AllOf(HasSubstr("m-00001-of-00002.gguf|"), HasSubstr("m-00002-of-00002.gguf|")));
  EXPECT_THAT(found[0].identity, ::testing::Not(HasSubstr("m-large-")));
  EXPECT_EQ(found[1].name, "m-1:latest");
}

TEST(Library, AFolderThatIsNoLongerWatchedIsForgotten) {
  const test::Folder folder;
  const test::Folder models;
  write_file(models / "one.gguf", small_gguf());
  EXPECT_THAT(names_of(*open_library(folder / "data", {models.path()})), ElementsAre("one:latest"));
  EXPECT_THAT(names_of(*open_library(folder / "data")), IsEmpty());
}

TEST(Library, ManyWritersAtOnceLoseNothing) {
  const test::Folder folder;
  constexpr int kWriters = 4;
  constexpr int kModels = 8;
  std::vector<std::thread> writers;
  std::atomic<int> failures{0};
  for (int writer = 0; writer < kWriters; ++writer)
    writers.emplace_back([&, writer] {
      const auto own = Library::open({folder / "data"});  // as another process would have it
      if (!own) {
        ++failures;
        return;
      }
      for (int i = 0; i < kModels; ++i) {
        const std::string manifest = manifest_of(**own, small_gguf(32), std::to_string(i));
        if (!(*own)->publish(ref_of("m" + std::to_string(writer) + ":" + std::to_string(i)), manifest)) ++failures;
      }
    });
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(names_of(*open_library(folder / "data")).size(), std::size_t{kWriters * kModels});
}

// In a process with a small file system of its own: 0 where all held, 1 where not, 77 where this system does not let us.
int on_a_full_disk(const std::string& place) {
  const std::string map = "0 " + std::to_string(::getuid()) + " 1";
  if (::unshare(CLONE_NEWNS) != 0) {  // who is not root
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return 77;
    write_file("/proc/self/uid_map", map);
  }
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 77;
  if (::mount("none", place.c_str(), "tmpfs", 0, "size=1m") != 0) return 77;
  const auto library = Library::open({place + "/data"});
  if (!library) {
    std::fputs((library.error().message + "\n").c_str(), stderr);
    return 2;
  }
  const std::string manifest = manifest_of(**library, small_gguf(), "one");
  if (!(*library)->publish(ref_of("before"), manifest)) return 3;
  std::string ballast(std::size_t{2} << 20, 'x');
  const auto big = (*library)->blobs().put(ballast);
  if (big || big.error().message.find("the disk is full") == std::string::npos) return 4;
  write_file(place + "/ballast", ballast);  // what fits
  const auto refused = (*library)->publish(ref_of("while/full"), manifest);
  if (refused || refused.error().message.find("the disk is full") == std::string::npos) return 5;
  if ((*library)->find("before").has_error()) return 6;
  fs::remove(place + "/ballast");
  if (!(*library)->publish(ref_of("after"), manifest)) return 7;
  const auto again = Library::open({place + "/data"});
  return again && (*again)->list({})->size() == 2 ? 0 : 8;
}

TEST(Library, AFullDiskIsAnErrorThatPasses) {
  const test::Folder folder;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) std::_Exit(on_a_full_disk(folder.path()));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "this system allows no file system of a test's own";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(FolderWatch, TellsOfFilesInNewFolders) {
  const test::Folder folder;
  std::mutex mutex;
  std::condition_variable changed;
  bool found = false;
  const auto watch = FolderWatch::start({folder.path()}, [&] {
    const std::lock_guard guard(mutex);
    found = read_file(folder / "new/file") == "whole";
    changed.notify_one();
  });
  ASSERT_TRUE(watch) << watch.error().message;
  fs::create_directory(folder / "new");
  write_file(folder / "new/file", "whole");
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return found; });
  SUCCEED();
}

}  // namespace
}  // namespace braid::registry
