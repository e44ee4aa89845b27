// The tables of a capture file: names and columns of the SQLite export of Nsight Systems 2026.4,
// schema 3.28.1
// ("SQLite Schema Reference" of its documentation), as far as a capture fills them.

#ifndef OTT_TOOLS_PROFILE_CAPTURE_SCHEMA_H_
#define OTT_TOOLS_PROFILE_CAPTURE_SCHEMA_H_

#include <cstdint>
#include <vector>

namespace ott::profile {

inline constexpr char kSchemaVersion[] = "3.28.1";

enum class Table {
  kStringIds,
  kThreadNames,
  kProcesses,
  kSessionStartTime,
  kAnalysisDetails,
  kMetaDataCapture,
  kMetaDataExport,
  kDiagnosticEvent,
  kNvtxEvents,
  // Made when there is something to put in, as Nsight Systems does: scripts take a table that is there for
  // data.
  kGpu,
  kCudaDevice,
  kNvtxCudaDevice,
  kKernel,
  kRuntime,
  kMemcpy,
  kMemset,
  kSynchronization,
  kGraphNodeEvents,
};
inline constexpr int kNumTables = static_cast<int>(Table::kGraphNodeEvents) + 1;

struct TableSchema {
  const char* name;
  const char* columns;  // as in CREATE TABLE
  bool is_made_at_once;
};

const TableSchema& SchemaOf(Table table);

// A table of names that others refer to: columns id, name and label.
struct EnumTable {
  struct Row {
    int64_t id;
    const char* name;
    const char* label;
  };
  const char* name;
  std::vector<Row> rows;
};

const std::vector<EnumTable>& EnumTables();

// Values of ENUM_NSYS_EVENT_TYPE.
enum NvtxEventType : int64_t {
  kNvtxCategory = 33,
  kNvtxMark = 34,
  kNvtxThread = 39,
  kNvtxPushPopRange = 59,
  kNvtxStartEndRange = 60,
  kNvtxDomainCreate = 75,
  kNvtxDomainDestroy = 76,
};

// A value of ENUM_NSYS_EVENT_CLASS.
inline constexpr int64_t kCudaGraphNodeCreation = 77;

}  // namespace ott::profile

#endif  // OTT_TOOLS_PROFILE_CAPTURE_SCHEMA_H_
