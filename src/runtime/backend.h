#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/profiler/profile.h"
#include "runtime/profiler/profile_links.h"
#include "runtime/train.h"

namespace plait::runtime {

// What needs libtorch, behind a header that does not. Two programs are built from one command line:
// `plait` starts in milliseconds and has no backend; `plait-torch`, beside it where libtorch was
// found, has one. A verb that needs the backend runs on in `plait-torch` with the same words
// (docs/adr/0008-two-programs.md).
struct Backend {
  std::string (*torch_build)();  // "libtorch 1.13.1, CPU"
  std::unique_ptr<Meter> (*meter)(const MeterOptions& options);
  Machine (*machine)(const MeterOptions& options);
  // Called by all ranks alike; rank 0 gets the curves.
  LinkCurves (*links)(const LinkRequest& request);
  // Runs one rank to the end and gives its exit status.
  int (*train)(const TrainRequest& request);
};

// nullptr in `plait`.
const Backend* backend();

// The backend, or the same command line run on by plait-torch: returns only in a program that has
// one. Throws InputError where there is no plait-torch beside this program.
const Backend& need_backend(const std::string& verb);

// Throws InputError where there is no plait-torch beside this program.
void need_torch_program(const std::string& verb);

// The words of this program's command line, as the kernel keeps them.
std::vector<std::string> command_line();

// This program's own file, and the program that has libtorch beside it.
std::string program_file();
std::string torch_program_file();

}  // namespace plait::runtime
