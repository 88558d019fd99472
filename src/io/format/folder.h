#pragma once

#include <string>

namespace plait {

// InputError when files cannot be written into a folder of this path: it is a file, its parent is
// missing, or it has something in it and `replace` does not say that this is fine. Called before
// long work.
void check_folder(const std::string& path, bool replace);

// The folder, which is made where it is missing.
void make_folder(const std::string& path);

// write_text_file(), and whether people may execute the file.
void write_folder_file(const std::string& folder, const std::string& name, const std::string& text,
                       bool executable);

}  // namespace plait
