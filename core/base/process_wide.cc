#include "ott/core/base/process_wide.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "absl/base/config.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/check.h"

namespace ott::internal {
namespace {

// Instances are made of types of the C++ library and of Abseil, whose layouts depend on these. Copies may
// share an instance only where these are equal.
#define OTT_TEXT_OF(macro) #macro
#define OTT_TEXT(macro) OTT_TEXT_OF(macro)
#ifdef ABSL_LTS_RELEASE_VERSION
#define OTT_ABSEIL OTT_TEXT(ABSL_LTS_RELEASE_VERSION)
#else
#define OTT_ABSEIL "of no release"
#endif
constexpr char kLibraries[] =
    "_GLIBCXX_USE_CXX11_ABI=" OTT_TEXT(_GLIBCXX_USE_CXX11_ABI) " and Abseil " OTT_ABSEIL;
#undef OTT_ABSEIL
#undef OTT_TEXT
#undef OTT_TEXT_OF

// All that copies know of one helper. Plain data, as all of the registry: it is read before its reader knows
// how the maker's C++ library lays out anything else.
struct Instance {
  // A copy of the text, since who named it first may have been unloaded.
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
  // The maker's kLibraries.
  char libraries[64];
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
  made->name = strdup(name);
  made->next = registry.instances;
  registry.instances = made;
  return *made;
}

// The registry's address follows this name of an empty mapped file, in hexadecimal. The form is fixed for
// all versions.
constexpr char kMemoryName[] = "ott_process_wide:";

// The executable or shared object that holds `address`.
std::string FileOf(const void* address) {
  Dl_info info;
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr || info.dli_fname[0] == '\0')
    return "the executable";
  return info.dli_fname;
}

std::string ThisFile() { return FileOf(reinterpret_cast<const void*>(&FileOf)); }

// Keeps what holds `address` loaded to the end of the process.
void KeepLoaded(const void* address) {
  // Fails for an executable, which is never unloaded anyway; the message is not for the next caller of
  // dlerror().
  if (dlopen(FileOf(address).c_str(), RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) == nullptr) dlerror();
}

// Returns null if no copy has mapped a registry.
Registry* MappedRegistry() {
  std::FILE* const maps = std::fopen("/proc/self/maps", "re");
  if (maps == nullptr) {
    std::fprintf(stderr,
                 "optim_test_tools: %s cannot read /proc/self/maps; stopwatches and dumpers of other shared "
                 "objects in this process are not the same as its own\n",
                 ThisFile().c_str());
    return nullptr;
  }
  const std::string mark = absl::StrCat("/memfd:", kMemoryName);
  uintptr_t address = 0;
  char* line = nullptr;
  size_t size = 0;
  while (address == 0 && getline(&line, &size, maps) > 0) {
    if (const char* const found = std::strstr(line, mark.c_str()))
      address = std::strtoull(found + mark.size(), nullptr, 16);
  }
  std::free(line);
  std::fclose(maps);
  return reinterpret_cast<Registry*>(address);
}

// Private: a forked child has one of its own. The file that has the name stays empty, since a limit on the
// size of files holds for it, too.
Registry* MapRegistry() {
  void* const mapped =
      mmap(nullptr, sizeof(Registry), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  OTT_CHECK(mapped != MAP_FAILED) << "no memory for the registry";
  auto* const registry = static_cast<Registry*>(mapped);
  registry->header.abi_version = kAbiVersion;
  static_assert(sizeof(kLibraries) <= sizeof(registry->libraries));
  std::memcpy(registry->libraries, kLibraries, sizeof(kLibraries));
  pthread_mutex_init(&registry->mutex, nullptr);
  std::snprintf(registry->header.file, sizeof(registry->header.file), "%s", ThisFile().c_str());
  const std::string name = absl::StrCat(kMemoryName, absl::Hex(reinterpret_cast<uintptr_t>(registry)));
  const int file = memfd_create(name.c_str(), MFD_CLOEXEC);
  OTT_CHECK(file >= 0 && mmap(nullptr, 1, PROT_NONE, MAP_PRIVATE, file, 0) != MAP_FAILED)
      << "no memory for the registry";
  close(file);
  return registry;
}

// For dl_iterate_phdr.
int MeetRegistry(dl_phdr_info*, size_t, void* result) {
  Registry* const mapped = MappedRegistry();
  *static_cast<RegistryHeader**>(result) = mapped != nullptr ? &mapped->header : &MapRegistry()->header;
  return 1;
}

RegistryHeader& Header() {
  static RegistryHeader* const header = [] {
    RegistryHeader* found = nullptr;
    // All copies know the loader's lock, which it holds meanwhile: only one of them maps a registry.
    dl_iterate_phdr(MeetRegistry, &found);
    return found;
  }();
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
  if (const char* const others = FindRegistry().libraries; std::strcmp(others, kLibraries) != 0) {
    return absl::StrCat("optim_test_tools: ", ThisFile(), " was built with ", kLibraries, ", but ",
                        header.file, " in the same process with ", others, "; build both with the same");
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
  const std::string file = FileOf(this);
  Registry& registry = FindRegistry();
  {
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
    if (!instance.enabled) return true;
  }
  SwitchCopies();
  return true;
}

void ProcessWideBase::Leave() {
  // An instance that is known stays loaded.
  if (instance() != nullptr || refusal() != nullptr) return;
  Registry& registry = FindRegistry();
  const RegistryLock lock(registry);
  if (!joined_) return;
  ProcessWideBase** link = &FindInstance(registry, name_).copies;
  while (*link != this) link = &(*link)->next_;
  *link = next_;
  joined_ = false;
}

void ProcessWideBase::SwitchCopies() {
  Registry& registry = FindRegistry();
  std::vector<ProcessWideBase*> used;
  {
    const RegistryLock lock(registry);
    const Instance& instance = FindInstance(registry, name_);
    for (ProcessWideBase* copy = instance.copies; instance.enabled && copy != nullptr; copy = copy->next_) {
      if (copy->instance() == nullptr) used.push_back(copy);
    }
  }
  // Not under the lock: the loader's own is held by who joins while being loaded.
  for (const ProcessWideBase* copy : used) KeepLoaded(copy);
  const RegistryLock lock(registry);
  const Instance& instance = FindInstance(registry, name_);
  for (ProcessWideBase* copy = instance.copies; copy != nullptr; copy = copy->next_) {
    // A copy that joined meanwhile calls this as well, before its dlopen() ends.
    if (instance.enabled) copy->instance_.store(instance.object, std::memory_order_release);
    copy->enabled_.store(instance.enabled ? instance.object : nullptr, std::memory_order_release);
  }
}

void* ProcessWideBase::Find() {
  if (void* known = instance(); known != nullptr) return known;
  if (!Join()) return nullptr;
  KeepLoaded(this);
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
  if (name_ == nullptr) {
    enabled_.store(enabled ? object : nullptr, std::memory_order_release);
    return;
  }
  Registry& registry = FindRegistry();
  {
    const RegistryLock lock(registry);
    FindInstance(registry, name_).enabled = enabled;
  }
  SwitchCopies();
}

JoinAtLoad::JoinAtLoad(ProcessWideBase& process_wide) : process_wide_(process_wide) {
  if (!process_wide.Join()) std::fprintf(stderr, "%s; its calls are ignored\n", process_wide.refusal());
}

JoinAtLoad::~JoinAtLoad() { process_wide_.Leave(); }

}  // namespace ott::internal
