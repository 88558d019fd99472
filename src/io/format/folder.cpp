#include "io/format/folder.h"

#include <filesystem>

#include "base/error.h"
#include "io/format/text_file.h"

namespace plait {

namespace fs = std::filesystem;

void check_folder(const std::string& path, bool replace) {
  if (path.empty()) throw InputError("''", "is not the name of a folder");
  std::error_code fault;
  const fs::file_status status = fs::status(path, fault);
  if (fs::is_directory(status)) {
    const bool empty = fs::is_empty(path, fault);
    if (fault) throw InputError(path, "cannot be read: " + fault.message());
    if (!empty && !replace)
      throw InputError(path, "is a folder that is not empty; `force` replaces files in it");
    return;
  }
  if (fs::exists(status)) throw InputError(path, "is not a folder");
  fs::path above = fs::path(path).lexically_normal();
  if (above.filename().empty()) above = above.parent_path();  // "run/"
  above = above.parent_path();
  if (!above.empty() && !fs::is_directory(above, fault))
    throw InputError(path, "cannot be made: there is no folder " + above.string());
}

void make_folder(const std::string& path) {
  std::error_code fault;
  if (fs::is_directory(path, fault)) return;
  if (fs::exists(path, fault)) throw InputError(path, "is a file, a directory is needed");
  fs::create_directory(path, fault);
  std::error_code unseen;
  if (!fs::is_directory(path, unseen))
    throw InputError(path, "cannot be made" + (fault ? ": " + fault.message() : std::string()));
}

void write_folder_file(const std::string& folder, const std::string& name, const std::string& text,
                       bool executable) {
  const std::string path = (fs::path(folder) / name).string();
  write_text_file(path, text);
  if (!executable) return;
  std::error_code fault;
  fs::permissions(path, fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec,
                  fs::perm_options::add, fault);
  if (fault) throw InputError(path, "cannot be made executable: " + fault.message());
}

}  // namespace plait
