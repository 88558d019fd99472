// Gives readers so many inputs each and says how it went: the table of docs/hardening.md.
//   cmake --build --preset release --target count_inputs
//   build/release/count_inputs SEED INPUTS [READER...]
// Each reader has a process of its own. Where that ends, the input is kept in found-READER.

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "fuzz/mutate.h"
#include "source_tree.h"

namespace plait::fuzz {
namespace {

constexpr std::size_t kMost = 1 << 16;
constexpr unsigned kSecondsOfOne = 120;  // of the wall clock: longer is called a hang
constexpr std::size_t kKept = 256;

// What a reader's process tells; shared with it, so that it is there when that process is not.
struct Told {
  long inputs = 0;
  long accepted = 0;
  double slowest = 0;
  std::size_t size = 0;
  char input[kMost];
  char fault[1000];
};

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::vector<std::string> corpus_of(std::string_view reader) {
  const auto folder = std::filesystem::path(source_dir()) / "tests/fuzz/corpus" / reader;
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream in(entry.path(), std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    if (files.back().size() > kMost) files.pop_back();
  }
  std::ranges::sort(files);
  return files;
}

void set_fault(Told& told, const char* what) {
  std::strncpy(told.fault, what, sizeof told.fault - 1);
}

bool accepted(const Reader& reader, const std::string& bytes, Told& told) {
  told.size = bytes.size();
  std::ranges::copy(bytes, told.input);
  alarm(kSecondsOfOne);
  const double begin = cpu_seconds();
  const bool taken = accepts(reader, bytes);
  told.slowest = std::max(told.slowest, cpu_seconds() - begin);
  ++told.inputs;
  told.accepted += taken ? 1 : 0;
  return taken;
}

// Half of the inputs are changes of the corpus, half of what was accepted before, so that changes
// add up.
void try_inputs(const Reader& reader, unsigned seed, long inputs, Told& told) {
  std::seed_seq words{seed, static_cast<unsigned>(reader.name.size()),
                      static_cast<unsigned>(reader.name.front()),
                      static_cast<unsigned>(reader.name.back())};
  std::mt19937 random(words);
  const Draw draw = [&](std::size_t bound) { return random() % bound; };
  const std::vector<std::string> corpus = corpus_of(reader.name);
  std::vector<std::string> kept = corpus;
  while (told.inputs < inputs) {
    const auto& from = random() % 2 == 0 ? corpus : kept;
    std::string changed = mutated(from[draw(from.size())], reader.shape, kMost, draw);
    if (!accepted(reader, changed, told) || changed.size() > kMost / 16) continue;
    if (kept.size() < kKept)
      kept.push_back(std::move(changed));
    else
      kept[draw(kKept)] = std::move(changed);
  }
}

[[noreturn]] void run_reader(const Reader& reader, unsigned seed, long inputs, Told& told) {
  try {
    try_inputs(reader, seed, inputs, told);
  } catch (const std::exception& escaped) {
    set_fault(told, escaped.what());
    std::_Exit(1);
  }
  std::exit(0);  // takes the folder of its files away
}

// A row of the table; false where the reader's process ended before its inputs did.
bool report(const Reader& reader, const Told& told, int status, const rusage& used) {
  fmt::print("| {} | {} | {} | {:.1f} | {} | {:.0f} s |\n", reader.name, told.inputs, told.accepted,
             1000 * told.slowest, used.ru_maxrss / 1024,
             static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec));
  std::fflush(stdout);
  if (status == 0) return true;
  const std::string path = fmt::format("found-{}", reader.name);
  std::ofstream(path, std::ios::binary).write(told.input, static_cast<std::streamsize>(told.size));
  fmt::print("{}: status {}: {}; the input is in {}\n", reader.name, status,
             told.fault[0] != 0 ? told.fault : "ended by a signal or a sanitizer", path);
  std::fflush(stdout);
  return false;
}

bool count(const Reader& reader, unsigned seed, long inputs) {
  void* shared =
      mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  Told& told = *new (shared) Told;
  const pid_t child = fork();
  if (child == 0) run_reader(reader, seed, inputs, told);
  int status = 0;
  rusage used{};
  wait4(child, &status, 0, &used);
  const bool whole = report(reader, told, status, used);
  munmap(shared, sizeof(Told));
  return whole;
}

int count_all(const std::vector<std::string>& words) {
  const auto seed = static_cast<unsigned>(std::stoul(words[0]));
  const long inputs = std::stol(words[1]);
  int faults = 0;
  for (const Reader& reader : readers()) {
    const bool wanted =
        words.size() == 2 || std::find(words.begin() + 2, words.end(), reader.name) != words.end();
    if (wanted && !count(reader, seed, inputs)) ++faults;
  }
  return faults > 0 ? 1 : 0;
}

}  // namespace
}  // namespace plait::fuzz

int main(int count, char** words) {
  if (count < 3) {
    fmt::print(stderr, "usage: count_inputs SEED INPUTS [READER...]\n");
    return 2;
  }
  return plait::fuzz::count_all({words + 1, words + count});
}
