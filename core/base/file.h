// Files that appear whole or not at all, and errors that say which file and what to do.

#ifndef OTT_CORE_BASE_FILE_H_
#define OTT_CORE_BASE_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ott {

// A file under construction. It lies beside its place under another name until Commit() renames it there;
// without Commit() the destructor removes it.
//
//   OTT_ASSIGN_OR_RETURN(std::unique_ptr<AtomicFile> file, AtomicFile::Create(path));
//   OTT_RETURN_IF_ERROR(file->Append(bytes));
//   return file->Commit();
class AtomicFile {
 public:
  static absl::StatusOr<std::unique_ptr<AtomicFile>> Create(std::string path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  absl::Status Append(std::string_view bytes);

  // sync: the contents, and the name in its directory, survive a crash of the machine.
  // REQUIRES: called once, and nothing is appended after it.
  absl::Status Commit(bool sync = false);

 private:
  AtomicFile(std::string path, std::string temporary_path, int fd);

  std::string path_;
  std::string temporary_path_;  // empty once committed
  int fd_;
};

absl::Status WriteFileAtomically(const std::string& path, std::string_view contents, bool sync = false);

// Reads a regular file. FAILED_PRECONDITION for anything else, at once: it does not wait for the other end of
// a FIFO. RESOURCE_EXHAUSTED for a file larger than max_bytes, holes included.
absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t max_bytes = int64_t{4} << 30);

// Returns true if something is at the path, even if it cannot be reached, as in a loop of links; reading it
// then says why. Unlike std::filesystem::exists(), it never throws.
bool PathExists(const std::string& path);
// False for what cannot be reached.
bool IsDirectory(const std::string& path);
bool IsRegularFile(const std::string& path);

// Returns the names in a directory, ascending. NOT_FOUND if it cannot be listed.
absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path);

// Returns a text that changes when a file at the path, or so many folders below it, is written or replaced.
// Hosts return the same text only if they see the same files. Empty if there is none.
std::string DescribeFiles(const std::string& path, int depth);

// Returns the host of a file that only another process of this command reads (far_files.h); "" for all
// others.
std::string FarHostOf(const std::string& path);

// FAILED_PRECONDITION naming the host if FarHostOf() knows one: for readers of whole files, which stay there.
absl::Status CheckIsHere(const std::string& path);

// Makes the directory and those above it. OK if it exists already; FAILED_PRECONDITION if something else has
// its name.
absl::Status MakeDirectories(const std::string& path);

// A regular file mapped into memory: pages are read when they are first used. If the file is truncated
// meanwhile, using it ends the program with SIGBUS, so map only files that nobody writes to any more.
class MappedFile {
 public:
  static absl::StatusOr<std::shared_ptr<const MappedFile>> Open(const std::string& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  // Aligned to a page.
  const char* data() const { return data_; }
  int64_t size() const { return size_; }

 private:
  MappedFile(const char* data, int64_t size) : data_(data), size_(size) {}

  const char* data_;
  int64_t size_;
};

}  // namespace ott

#endif  // OTT_CORE_BASE_FILE_H_
