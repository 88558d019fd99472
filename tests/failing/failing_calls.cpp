// Preloaded into the program (LD_PRELOAD), makes calls to the system fail:
//   PLAIT_FAIL=write:3        the third write fails, and only that
//   PLAIT_FAIL=write:3+       it and all that follow, as on a full disk
//   PLAIT_FAIL=terminate:1    the program gets SIGTERM in the first fsync, which does not fail
// Calls: malloc, pthread_create, write, fsync, rename. Writes to stdout and stderr do not count.
// With PLAIT_FAIL_COUNT=FILE the number of calls is written there at the end.

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" void* __libc_malloc(std::size_t size);

namespace {

// Read without any call that may allocate.
struct Order {
  char call[32] = "";
  long from = 0;
  bool lasting = false;
  Order() {
    const char* text = std::getenv("PLAIT_FAIL");
    const char* colon = text == nullptr ? nullptr : std::strchr(text, ':');
    if (colon == nullptr || static_cast<std::size_t>(colon - text) >= sizeof call) return;
    std::memcpy(call, text, static_cast<std::size_t>(colon - text));
    from = std::strtol(colon + 1, nullptr, 10);
    lasting = std::strchr(colon, '+') != nullptr;
  }
};

std::atomic<long> calls{0};
std::atomic<bool> ready{false};
Order order;

bool fails(const char* call) {
  if (!ready || std::strcmp(order.call, call) != 0) return false;
  const long number = ++calls;
  return order.lasting ? number >= order.from : number == order.from;
}

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

__attribute__((constructor)) void begin() {
  order = Order();
  ready = true;
}

__attribute__((destructor)) void report() {
  ready = false;
  const char* path = std::getenv("PLAIT_FAIL_COUNT");
  if (path == nullptr) return;
  if (std::FILE* file = std::fopen(path, "w")) {
    std::fprintf(file, "%ld\n", calls.load());
    std::fclose(file);
  }
}

}  // namespace

extern "C" void* malloc(std::size_t size) {
  if (fails("malloc")) {
    errno = ENOMEM;
    return nullptr;
  }
  return __libc_malloc(size);
}

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*run)(void*), void* argument) {
  if (fails("pthread_create")) return EAGAIN;
  static auto* const real =
      next<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
  return real(thread, attributes, run, argument);
}

extern "C" ssize_t write(int file, const void* bytes, std::size_t count) {
  if (file > STDERR_FILENO && fails("write")) {
    errno = ENOSPC;
    return -1;
  }
  static auto* const real = next<ssize_t(int, const void*, std::size_t)>("write");
  return real(file, bytes, count);
}

extern "C" int fsync(int file) {
  if (fails("terminate")) kill(getpid(), SIGTERM);
  if (fails("fsync")) {
    errno = EIO;
    return -1;
  }
  static auto* const real = next<int(int)>("fsync");
  return real(file);
}

extern "C" int rename(const char* from, const char* to) noexcept {
  if (fails("rename")) {
    errno = EACCES;
    return -1;
  }
  static auto* const real = next<int(const char*, const char*)>("rename");
  return real(from, to);
}
