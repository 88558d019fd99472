#pragma once

// A folder of its own for a test that needs files; gone when the test is over.

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <string_view>

#include "io/format/json_reader.h"

namespace plait::samples {

class TestFolder {
 public:
  TestFolder() {
    static std::atomic<int> next{0};
    path_ = std::filesystem::temp_directory_path() /
            ("plait_test_" + std::to_string(getpid()) + "_" + std::to_string(next++));
    std::filesystem::create_directories(path_);
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  std::string path(const std::string& name = "") const {
    return name.empty() ? path_.string() : (path_ / name).string();
  }
  void write(const std::string& name, std::string_view text) const {
    write_text_file(path(name), text);
  }

 private:
  std::filesystem::path path_;
};

}  // namespace plait::samples
