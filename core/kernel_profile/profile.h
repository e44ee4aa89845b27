// Holds a capture, in columns that stay small for ten million kernels.

#ifndef OTT_CORE_KERNEL_PROFILE_PROFILE_H_
#define OTT_CORE_KERNEL_PROFILE_PROFILE_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ott/core/kernel_profile/growing_array.h"
#include "ott/core/kernel_profile/op_label.h"

namespace ott::kernels {

inline constexpr uint32_t kNone = ~uint32_t{0};

// The beginning of a step's range: "ProfilerStep#12".
inline constexpr std::string_view kStepName = "ProfilerStep#";

// All times are nanoseconds of the capture's clock.
struct Profile {
  struct Kernel {
    int64_t start;
    int64_t end;
    uint32_t name;      // of kernel_names
    uint32_t geometry;  // of geometries
    uint32_t launch;    // of launches; kNone: the kernel has no correlation id
    int32_t stream;
    uint16_t process;
    int16_t device;  // -1: not told
    bool in_graph;
  };

  // The API call that started one kernel, or all those of a graph.
  struct Launch {
    int64_t start = 0;
    uint32_t thread = kNone;   // of threads; kNone: the capture does not have the call
    uint32_t nanoseconds = 0;  // at most 4.29 s; kNone: the call's time is not told, and start is its op's
  };

  // A range that a launch lies in.
  struct RangeOfLaunch {
    uint32_t thread = kNone;  // kNone: the innermost around it in time
    uint32_t range = kNone;   // of the thread
  };

  // A memory copy or a memset.
  struct Transfer {
    int64_t start;
    int64_t end;
    int64_t bytes;    // -1: not told
    uint32_t name;    // of transfer_names
    uint32_t launch;  // as of kernels
    int32_t stream;
    uint16_t process;
    int16_t device;
  };

  struct Range {
    int64_t start;
    int64_t end;
    uint32_t label;            // of labels
    uint32_t sequence_number;  // kNone: none
  };

  struct Thread {
    int64_t tid = 0;
    uint16_t process = 0;
    std::string name;
    GrowingArray<Range> ranges;  // pushed and popped, in the order of the file
  };

  struct Process {
    int64_t pid = 0;
    std::string name;
    int rank = -1;  // -1: not known
  };

  // Describes what ranks do together, as far as it does not change from call to call.
  struct CollectiveKind {
    std::string name;               // "allreduce"
    std::string dtype;              // "float32"; "": not known
    std::string group;              // "Process Group Name": the same on all of its ranks
    std::string group_ranks;        // "[0, 1, 2, 3]", may be shortened; "": not told
    std::string group_description;  // "default_pg"
    int64_t in_elements = -1;
    int64_t out_elements = -1;
    int group_size = -1;

    const std::string& group_name() const { return group_description.empty() ? group : group_description; }
  };

  struct Collective {
    uint32_t kernel;               // of kernels
    uint32_t kind;                 // of collective_kinds
    int64_t sequence_number = -1;  // of the group; -1: not told
  };

  // A collective that the host's CPU does, as gloo's and MPI's: its work, on whatever thread.
  struct HostCollective {
    int64_t start;
    int64_t end;
    uint32_t kind;  // of collective_kinds
  };

  struct Device {
    std::string name;
    int sm_count = 0;
    int compute_major = 0;
    int compute_minor = 0;
    double clock_hz = 0;
    double memory_bytes_per_second = 0;
  };

  struct Geometry {
    std::array<int64_t, 3> grid;
    std::array<int64_t, 3> block;
  };

  std::string path;
  std::string schema;  // "Nsight Systems 3.25.0", "nvprof"
  std::vector<std::string> kernel_names;
  std::vector<Geometry> geometries;
  std::vector<OpLabel> labels;
  std::vector<Kernel> kernels;  // by start
  std::vector<std::string> transfer_names;
  std::vector<Transfer> transfers;  // if asked for
  std::vector<Launch> launches;
  std::vector<RangeOfLaunch> range_of_launch;  // parallel to launches; empty if the capture tells none
  std::vector<CollectiveKind> collective_kinds;
  std::vector<Collective> collectives;           // by kernel
  std::vector<HostCollective> host_collectives;  // by start
  std::vector<Thread> threads;
  std::vector<Process> processes;
  std::map<int, Device> devices;
  int rank = -1;                                       // told by the file's name; -1: not told
  std::optional<int64_t> begin_unix_nanoseconds;       // time 0, since 1970
  std::optional<int64_t> begin_monotonic_nanoseconds;  // time 0, on the machine's clock that is never set
  int64_t first_time = 0;                              // of anything in the capture
  int64_t last_time = 0;
  int64_t num_ranges = 0;
  int64_t num_steps = 0;           // "ProfilerStep#12"
  std::vector<std::string> notes;  // what could not be used, and how much of it
};

// Visits the fields of a kind, to read or to write them (dist/share/archive.h).
template <typename Archive>
void Fields(Archive& archive, Profile::CollectiveKind& kind) {
  archive(kind.name, kind.dtype, kind.group, kind.group_ranks, kind.group_description, kind.in_elements,
          kind.out_elements, kind.group_size);
}

}  // namespace ott::kernels

#endif  // OTT_CORE_KERNEL_PROFILE_PROFILE_H_
