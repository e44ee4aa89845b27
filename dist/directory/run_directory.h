// Says where the files of a run lie:
//
//   RUN/run.json                          RunInfo
//   RUN/cluster_stats.json               ClusterStats of the latest gather
//   RUN/rank_00003/stopwatch.pb, .json    StopwatchStats; .csv and .txt for people
//   RUN/rank_00003/iterations.pb          IterationSample (questions/saved), for ott whatif
//   RUN/rank_00003/sound.json            SoundRecord (questions/sound), for ott check
//   RUN/rank_00003/metrics.jsonl          metrics by iteration, for ott curves
//   RUN/rank_00003/cross_check.jsonl      one verdict a line
//   RUN/rank_00003/cross_check_omitted.json  counts of the verdicts it had no room for
//   RUN/rank_00003/trace.json             what was profiled (rank_trace.h); trace_2.json the second window
//   RUN/rank_00003/torch.rank_00003.json(.gz)  a trace that the program wrote by torch.profiler, or a link to
//                                         it; torch_2.rank_00003.json the second
//   RUN/rank_00003/dumps/<iteration>/     dumps
//   RUN/rank_00003/flight                 flight recorder (core/flight/flight_recorder.h)
//   RUN/rank_00003/op_log.bin             log of operations (core/op_log/op_log.h)
//   RUN/rank_00003/op_log_2.bin           the same since the run was continued
//   RUN/rank_00003/op_tensors/<iteration>/  tensors of operations that were kept
//   RUN/rank_00003/start_1/              the statistics and traces of the first start of a run that was
//                                         continued
//   RUN/hang.json                         HangVerdict of the last time that the job stood
//   RUN/hang.turn                         while a rank looks for why it stands
//   RUN/attempt_2/                        a whole run directory, of the second start of a job
//
// Each rank writes its own folder, and rank 0 what lies beside them. What a run that was cut short left
// behind is readable.

#ifndef OTT_DIST_DIRECTORY_RUN_DIRECTORY_H_
#define OTT_DIST_DIRECTORY_RUN_DIRECTORY_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ott/dist/directory/run_info.pb.h"

namespace ott {

// A larger number of ranks in a file or a folder's name is damage.
inline constexpr int kMaxWorldSize = 1 << 20;

std::string ClusterStatsPath(const std::string& run_dir);
std::string RankDirectory(const std::string& run_dir, int rank);
std::string DumpsDirectory(const std::string& run_dir, int rank);
std::string DumpPath(const std::string& run_dir, int rank, int64_t iteration);
std::string IterationsPath(const std::string& run_dir, int rank);
std::string MetricsPath(const std::string& run_dir, int rank);
std::string SoundPath(const std::string& run_dir, int rank);
std::string OpLogPath(const std::string& run_dir, int rank);
std::string OpTensorsDirectory(const std::string& run_dir, int rank);

absl::Status WriteRunInfo(const std::string& run_dir, const RunInfo& info);

// Makes a directory of its own for the run that info describes and writes its run.json. It is run_dir, or
// where that holds a run already, the first of run_dir/attempt_2, attempt_3 and so on that is free; of jobs
// that begin at once each gets another. A run with a start_iteration goes on in the latest of them whose
// Config is the same otherwise, and whose world size.
absl::StatusOr<std::string> ClaimRunDirectory(const std::string& run_dir, const RunInfo& info);

// Returns the numbers N of run_dir/attempt_N, ascending.
std::vector<int> ListAttempts(const std::string& run_dir);

// Returns the directory of the latest start of a job: run_dir/attempt_N with the largest N, run_dir itself if
// there is none. run_dir/attempt_1 is its first start.
std::string LatestAttempt(const std::string& run_dir);
// Says on standard error, for `ott COMMAND`, which start of a job is looked at if there are several.
// "RUN was started 3 times: this is of the latest, RUN/attempt_3; RUN/attempt_1 is the first"; empty if this
// is not the latest of several.
std::string DescribeStarts(const std::string& run_dir);
void SayLatestAttempt(const char* command, const std::string& run_dir);

// Returns true if both are one dump, by whatever names: one folder, or folders that share the file of the
// tree.
bool IsSameDump(const std::string& a, const std::string& b);
// Returns true if both are one run, dump or folder of dumps, by whatever names: one folder, or folders of
// which one links to a rank of the other, to one of its dumps or to its log of operations.
bool IsSameRun(const std::string& a, const std::string& b);

// Returns NOT_FOUND if there is no run.json, DATA_LOSS if it is damaged or its world size is not in [1,
// kMaxWorldSize]. unknown: as of JsonToProto(), with the file's name.
absl::StatusOr<RunInfo> ReadRunInfo(const std::string& run_dir, std::string* unknown = nullptr);

// Returns true if `dir` has what a run directory has: run.json or a rank's folder.
bool IsRunDirectory(const std::string& dir);
// Returns NOT_FOUND, saying what it lacks, where it has neither.
absl::Status CheckRunDirectory(const std::string& dir);

// Returns the ranks below kMaxWorldSize that have a folder, ascending.
absl::StatusOr<std::vector<int>> ListRanks(const std::string& run_dir);

// Returns the numbered folders of a folder of dumps, ascending.
absl::StatusOr<std::vector<int64_t>> ListDumps(const std::string& dumps_dir);

// The traces that a rank's program wrote by torch.profiler, in that order. A link to a file that is gone is
// among them.
std::vector<std::string> ListTorchTraces(const std::string& run_dir, int rank);
// The latest of each rank that has one, by rank; of the latest start of the job.
std::map<int, std::string> LatestTorchTraces(const std::string& run_dir);
// The same, of the latest window of which all of these ranks have one; where there is none, as above.
std::map<int, std::string> TorchTracesOfOneWindow(const std::string& run_dir);

// Returns true if a rank of the latest start of a job left any.
bool HasDumps(const std::string& run_dir);
bool HasOpLogs(const std::string& run_dir);

// Adds the iterations of which a rank has a dump; none where it has no folder.
void AddDumpedIterations(const std::string& run_dir, int rank, std::set<int64_t>* iterations);

}  // namespace ott

#endif  // OTT_DIST_DIRECTORY_RUN_DIRECTORY_H_
