// Runs a fuzz target without libFuzzer: on every seed of a folder, and on mutations that are the same in every run.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);

namespace {

using Input = std::vector<std::uint8_t>;

constexpr int kMutations = 20000;  // of all seeds together

Input read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Written over a place as 1, 2, 4 or 8 bytes: where lengths and counts break.
constexpr std::uint64_t kEdges[] = {0, 1, 0x7f, 0x80, 0xff, 0x7fffffff, 0x80000000, 0xffffffff, 0x7fffffffffffffff, 0xffffffffffffffff};

void mutate(Input& input, const Input& other, std::mt19937& random) {
  const auto below = [&](std::size_t limit) { return limit == 0 ? 0 : random() % limit; };
  const auto at = static_cast<std::ptrdiff_t>(below(input.size() + 1));
  const std::size_t left = input.size() - static_cast<std::size_t>(at);
  switch (random() % 6) {
    case 0:
      input.resize(static_cast<std::size_t>(at));
      break;
    case 1:
      input.insert(input.begin() + at, static_cast<std::uint8_t>(random()));
      break;
    case 2:
      input.erase(input.begin() + at, input.begin() + at + static_cast<std::ptrdiff_t>(below(std::min<std::size_t>(left, 16) + 1)));
      break;
    case 3:
      if (left > 0) input[static_cast<std::size_t>(at)] ^= static_cast<std::uint8_t>(1U << (random() % 8));
      break;
    case 4: {
      std::uint64_t edge = kEdges[random() % std::size(kEdges)];
      for (std::size_t i = 0; i < std::min<std::size_t>(left, std::size_t{1} << (random() % 4)); ++i, edge >>= 8)
        input[static_cast<std::size_t>(at) + i] = static_cast<std::uint8_t>(edge);
      break;
    }
    default: {
      const auto from = static_cast<std::ptrdiff_t>(below(other.size()));
      const auto size = static_cast<std::ptrdiff_t>(below(std::min<std::size_t>(other.size() - static_cast<std::size_t>(from), 64) + 1));
      input.insert(input.begin() + at, other.begin() + from, other.begin() + from + size);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: %s CORPUS_FOLDER\n", argv[0]), 2;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<Input> seeds;
  for (const auto& path : paths) seeds.push_back(read(path));
  if (seeds.empty()) return std::fprintf(stderr, "%s has no seeds\n", argv[1]), 1;
  for (const Input& seed : seeds) LLVMFuzzerTestOneInput(seed.data(), seed.size());
  std::mt19937 random(1);
  for (int i = 0; i < kMutations; ++i) {
    Input input = seeds[static_cast<std::size_t>(i) % seeds.size()];
    for (auto n = random() % 4; n < 4; ++n) mutate(input, seeds[random() % seeds.size()], random);
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  std::printf("%zu seeds, %d mutations\n", seeds.size(), kMutations);
}
