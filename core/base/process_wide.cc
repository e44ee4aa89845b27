#include "ott/core/base/process_wide.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "ott/core/base/check.h"

namespace ott::internal {
namespace {

// Layouts of the C++ library that std::string and what holds it depend on. Instances are made of them, so
// that copies may share one only where these are equal.
constexpr uint32_t kLibraryAbi = _GLIBCXX_USE_CXX11_ABI;

// All that copies know of one helper. Plain data, as all of the registry: it is read before its reader knows
// how the maker's C++ library lays out anything else.
struct Instance {
  // The name lies in a copy, which stays loaded.
  const char* name;
  void* object;
  size_t size;
  bool enabled;
  ProcessWideBase* copies;
  Instance* next;
  char first_file[PATH_MAX];
};

// The part of the registry that never changes, whatever the version.
struct RegistryHeader {
  uint32_t abi_version;
  // File of the copy that made it.
  char file[PATH_MAX];
};

struct Registry {
  RegistryHeader header;
  uint32_t library_abi;
  pthread_mutex_t mutex;
  Instance* instances;
};

// In all copies the C library's.
class RegistryLock {
 public:
  explicit RegistryLock(Registry& registry) : registry_(registry) { pthread_mutex_lock(&registry.mutex); }
  RegistryLock(const RegistryLock&) = delete;
  RegistryLock& operator=(const RegistryLock&) = delete;
  ~RegistryLock() { pthread_mutex_unlock(&registry_.mutex); }

 private:
  Registry& registry_;
};

// Made at the first call for a name. REQUIRES: the registry is locked
Instance& FindInstance(Registry& registry, const char* name) {
  for (Instance* instance = registry.instances; instance != nullptr; instance = instance->next) {
    if (std::strcmp(instance->name, name) == 0) return *instance;
  }
  auto* const made = static_cast<Instance*>(std::calloc(1, sizeof(Instance)));
  OTT_CHECK(made != nullptr) << "no memory for " << name;
  made->name = name;
  made->next = registry.instances;
  registry.instances = made;
  return *made;
}

}  // namespace

extern "C" {
// This copy's word. The registry is in the word of the copy that was loaded first; the others stay null.
__attribute__((visibility("hidden"), used)) std::atomic<RegistryHeader*> ott_process_wide_meeting_place{
    nullptr};
}

// Name "OTT", type 1, descriptor: distance from the descriptor to the word. Fixed for all versions. It lies
// among what is written to, as the word does: patchelf, which auditwheel and others change library paths by,
// moves notes that lie at the front.
asm(R"(
  .pushsection .note.ott, "aw", %note
  .balign 4
  .long 4, 4, 1
  .asciz "OTT"
  .long ott_process_wide_meeting_place - .
  .popsection
)");

namespace {

using MeetingPlace = std::atomic<RegistryHeader*>;

MeetingPlace* MeetingPlaceInNotes(const char* note, const char* end, size_t alignment) {
  const auto aligned = [alignment](size_t size) { return (size + alignment - 1) & ~(alignment - 1); };
  while (static_cast<size_t>(end - note) >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) header;
    std::memcpy(&header, note, sizeof(header));
    const char* name = note + sizeof(header);
    const char* descriptor = note + aligned(sizeof(header) + header.n_namesz);
    const char* next = descriptor + aligned(header.n_descsz);
    if (next > end) return nullptr;
    if (header.n_type == 1 && header.n_namesz == 4 && header.n_descsz == 4 &&
        std::memcmp(name, "OTT", 4) == 0) {
      int32_t distance;
      std::memcpy(&distance, descriptor, sizeof(distance));
      return reinterpret_cast<MeetingPlace*>(reinterpret_cast<uintptr_t>(descriptor) + distance);
    }
    note = next;
  }
  return nullptr;
}

// Stops at the first loaded object that has the note.
int FindMeetingPlace(dl_phdr_info* object, size_t, void* result) {
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const char* begin = reinterpret_cast<const char*>(object->dlpi_addr + segment.p_vaddr);
    MeetingPlace* found = MeetingPlaceInNotes(begin, begin + segment.p_memsz, segment.p_align == 8 ? 8 : 4);
    if (found == nullptr) continue;
    *static_cast<MeetingPlace**>(result) = found;
    return 1;
  }
  return 0;
}

// The executable or shared object that holds `address`.
std::string FileOf(const void* address) {
  Dl_info info;
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr || info.dli_fname[0] == '\0')
    return "the executable";
  return info.dli_fname;
}

std::string ThisFile() { return FileOf(&ott_process_wide_meeting_place); }

void KeepLoaded(const void* address) {
  // Fails for an executable, which is never unloaded anyway; the message is not for the next caller of
  // dlerror().
  if (dlopen(FileOf(address).c_str(), RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) == nullptr) dlerror();
}

RegistryHeader* MeetRegistry() {
  MeetingPlace* place = nullptr;
  dl_iterate_phdr(FindMeetingPlace, &place);
  if (place == nullptr) {
    // strip -R '.note*' leaves a program whose only copy needs no meeting.
    std::fprintf(stderr,
                 "optim_test_tools: %s has lost the section .note.ott; stopwatches and dumpers of other "
                 "shared objects in this "
                 "process are not the same as its own\n",
                 ThisFile().c_str());
    place = &ott_process_wide_meeting_place;
  }
  RegistryHeader* found = place->load(std::memory_order_acquire);
  if (found != nullptr) return found;
  auto* const registry = static_cast<Registry*>(std::calloc(1, sizeof(Registry)));
  OTT_CHECK(registry != nullptr) << "no memory for the registry";
  registry->header.abi_version = kAbiVersion;
  registry->library_abi = kLibraryAbi;
  pthread_mutex_init(&registry->mutex, nullptr);
  std::snprintf(registry->header.file, sizeof(registry->header.file), "%s", ThisFile().c_str());
  if (place->compare_exchange_strong(found, &registry->header, std::memory_order_acq_rel)) {
    return &registry->header;
  }
  std::free(registry);
  return found;
}

RegistryHeader& Header() {
  static RegistryHeader* const header = MeetRegistry();
  return *header;
}

// REQUIRES: Refusal() is empty
Registry& FindRegistry() { return reinterpret_cast<Registry&>(Header()); }

// Says why this copy cannot use the registry; empty if it can.
std::string Refusal() {
  const RegistryHeader& header = Header();
  if (header.abi_version != kAbiVersion) {
    return absl::StrCat("optim_test_tools: ", ThisFile(), " has ABI version ", kAbiVersion, ", but ",
                        header.file, " in the same process uses version ", header.abi_version,
                        "; build both with one version of the library");
  }
  if (const uint32_t other = FindRegistry().library_abi; other != kLibraryAbi) {
    return absl::StrCat("optim_test_tools: ", ThisFile(),
                        " was built with _GLIBCXX_USE_CXX11_ABI=", kLibraryAbi, ", but ", header.file,
                        " in the same process with ", other, "; build both with the same");
  }
  return "";
}

}  // namespace

bool ProcessWideBase::Join() {
  if (name_ == nullptr) return true;
  const auto refuse = [this](const std::string& why) {
    refusal_.store(strdup(why.c_str()), std::memory_order_release);
    return false;
  };
  if (refusal() != nullptr) return false;
  static const std::string& refused = *new std::string(Refusal());
  if (!refused.empty()) return refuse(refused);
  // Before the lock: the loader's own lock is held by who joins while being loaded.
  KeepLoaded(this);
  KeepLoaded(&ott_process_wide_meeting_place);
  const std::string file = FileOf(this);
  Registry& registry = FindRegistry();
  const RegistryLock lock(registry);
  if (joined_) return true;
  Instance& instance = FindInstance(registry, name_);
  if (instance.size == 0) {
    instance.size = size_;
    std::snprintf(instance.first_file, sizeof(instance.first_file), "%s", file.c_str());
  }
  if (instance.size != size_) {
    return refuse(absl::StrCat("optim_test_tools: ", name_, " has ", size_, " bytes in ", file, ", but ",
                               instance.size, " in ", instance.first_file,
                               "; build both with the same compiler flags"));
  }
  joined_ = true;
  next_ = instance.copies;
  instance.copies = this;
  instance_.store(instance.object, std::memory_order_release);
  if (instance.enabled) enabled_.store(instance.object, std::memory_order_release);
  return true;
}

void* ProcessWideBase::Find() {
  if (void* known = instance(); known != nullptr) return known;
  if (!Join()) return nullptr;
  Registry& registry = FindRegistry();
  const RegistryLock lock(registry);
  Instance& instance = FindInstance(registry, name_);
  if (instance.object == nullptr) instance.object = create_();
  instance_.store(instance.object, std::memory_order_release);
  return instance.object;
}

void* ProcessWideBase::FindOrDie() {
  void* const found = Find();
  OTT_CHECK(found != nullptr) << refusal();
  return found;
}

void ProcessWideBase::SetEnabled(bool enabled) {
  void* const object = Find();
  if (object == nullptr) return;
  void* const value = enabled ? object : nullptr;
  if (name_ == nullptr) {
    enabled_.store(value, std::memory_order_release);
    return;
  }
  Registry& registry = FindRegistry();
  const RegistryLock lock(registry);
  Instance& instance = FindInstance(registry, name_);
  instance.enabled = enabled;
  for (ProcessWideBase* copy = instance.copies; copy != nullptr; copy = copy->next_) {
    copy->enabled_.store(value, std::memory_order_release);
  }
}

void JoinAtLoad(ProcessWideBase& process_wide) {
  if (!process_wide.Join()) std::fprintf(stderr, "%s; its calls are ignored\n", process_wide.refusal());
}

}  // namespace ott::internal
