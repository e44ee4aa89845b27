#include "ott/questions/right/compare/checkpoint_pair.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/checkpoint/torch_objects.h"
#include "ott/dist/share/archive.h"
#include "ott/questions/right/compare/checkpoint_names.h"
#include "ott/questions/right/compare/comparison_fields.h"
#include "ott/questions/right/layout/tree_layout.h"

namespace ott::compare {
namespace {

// Takes requires_grad out of what a state has beside its tensors, by their path.
void TakeRequiresGrad(const std::string& path, Value* value, std::map<std::string, bool>* taken) {
  if (value->is_list()) {
    for (size_t i = 0; i < value->list().size(); ++i)
      TakeRequiresGrad(JoinPath(path, absl::StrCat(i)), &value->list()[i], taken);
  }
  if (!value->is_map()) return;
  ValueMap kept;
  for (const auto& [name, child] : value->map()) {
    const size_t size = std::max(name.size(), kAttributesEnd.size()) - kAttributesEnd.size();
    const bool is_attributes =
        child.is_map() && name.compare(size, name.npos, std::string(kAttributesEnd)) == 0;
    if (!is_attributes) {
      TakeRequiresGrad(JoinPath(path, name), kept.Insert(name, child), taken);
      continue;
    }
    ValueMap others;
    for (const auto& [attribute, of_tensor] : child.map()) {
      if (attribute == "requires_grad" && of_tensor.kind() == Value::Kind::kBool) {
        (*taken)[JoinPath(path, name.substr(0, size))] = of_tensor.bool_value();
      } else {
        others.Insert(attribute, of_tensor);
      }
    }
    if (!others.empty()) kept.Insert(name, std::move(others));
  }
  *value = std::move(kept);
}

struct PairTask {
  CheckpointPaths paths;
  CompareOptions options;
  // Tells the first process's files from others of the same names.
  std::string files;
};

template <typename Archive>
void Fields(Archive& archive, PairTask& task) {
  archive(task.paths.reference, task.paths.current, task.paths.names, task.options, task.files);
}

// The tensors [begin, end) of those that CompareTrees() compares.
struct TensorsTask {
  PairTask whole;
  size_t begin = 0;
  size_t end = 0;
  int64_t num_bytes = 0;  // does not travel
};

template <typename Archive>
void Fields(Archive& archive, TensorsTask& task) {
  archive(task.whole, task.begin, task.end);
}

std::string FilesOf(const std::string& path) {
  constexpr int kDepth = 4;  // folders that ReadCheckpoint() reads, and the files in them
  const std::filesystem::path file(path);
  // An index names others beside it.
  if (file.extension() != ".json") return DescribeFiles(path, kDepth);
  return DescribeFiles(file.has_parent_path() ? file.parent_path().string() : ".", 1);
}

std::string FilesOf(const CheckpointPaths& paths) {
  return absl::StrCat(FilesOf(paths.reference), "\n", FilesOf(paths.current));
}

// The pair that this process has, which serves all pieces of a comparison.
class KeptPair {
 public:
  void Set(std::string task, std::shared_ptr<const CheckpointPair> pair) {
    const std::lock_guard<std::mutex> lock(mutex_);
    task_ = std::move(task);
    pair_ = std::move(pair);
  }

  absl::StatusOr<std::shared_ptr<const CheckpointPair>> Get(const PairTask& task) {
    std::string asked = ToBytes(task);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (pair_ != nullptr && asked == task_) return pair_;
    pair_ = nullptr;
    if (FilesOf(task.paths) != task.files)
      return absl::NotFoundError(
          absl::StrCat(task.paths.reference, " or ", task.paths.current, ": is another one here"));
    OTT_ASSIGN_OR_RETURN(CheckpointPair pair, ReadCheckpointPair(task.paths));
    pair_ = std::make_shared<const CheckpointPair>(std::move(pair));
    task_ = std::move(asked);
    return pair_;
  }

 private:
  std::mutex mutex_;
  std::string task_;
  std::shared_ptr<const CheckpointPair> pair_;
};

KeptPair& Kept() {
  static auto& kept = *new KeptPair;
  return kept;
}

absl::StatusOr<std::string> CompareTensorsTask(const std::string& argument, int num_threads) {
  TensorsTask task;
  if (!FromBytes(argument, &task)) return absl::InternalError("no TensorsTask");
  OTT_ASSIGN_OR_RETURN(const std::shared_ptr<const CheckpointPair> pair, Kept().Get(task.whole));
  std::vector<TensorComparison> comparisons;
  CompareTrees(pair->reference.state, pair->current.state, task.whole.options,
               [&](absl::Span<const ComparedTensors> tensors) {
                 if (task.begin <= task.end && task.end <= tensors.size())
                   comparisons =
                       ComparePairs(tensors.subspan(task.begin, task.end - task.begin), num_threads);
                 return std::vector<TensorComparison>(tensors.size());
               });
  return ToBytes(comparisons);
}

// Returns pieces of about equal size.
std::vector<TensorsTask> Cut(const PairTask& whole, absl::Span<const ComparedTensors> tensors) {
  constexpr int64_t kPiecesAProcess = 8;
  const auto bytes_of = [](const ComparedTensors& pair) {
    return pair.reference.view.num_bytes() + pair.current.view.num_bytes();
  };
  int64_t num_bytes = 0;
  for (const ComparedTensors& pair : tensors) num_bytes += bytes_of(pair);
  const int64_t bytes_a_piece = num_bytes / (kPiecesAProcess * NumProcesses());
  std::vector<TensorsTask> pieces;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (pieces.empty() || pieces.back().num_bytes > bytes_a_piece) pieces.push_back({whole, i});
    pieces.back().end = i + 1;
    pieces.back().num_bytes += bytes_of(tensors[i]);
  }
  return pieces;
}

std::vector<TensorComparison> CompareOnProcesses(const PairTask& whole,
                                                 absl::Span<const ComparedTensors> tensors) {
  const std::vector<TensorsTask> pieces = Cut(whole, tensors);
  std::vector<SharePiece> work;
  for (const TensorsTask& piece : pieces)
    work.push_back({ToBytes(piece), {whole.paths.reference, whole.paths.current}, piece.num_bytes});
  const std::vector<absl::StatusOr<std::string>> results = RunShared(kCompareTensors, work);
  std::vector<TensorComparison> comparisons(tensors.size());
  for (size_t i = 0; i < pieces.size(); ++i) {
    const TensorsTask& piece = pieces[i];
    absl::Status status = results[i].status();
    std::vector<TensorComparison> of_piece;
    if (status.ok() && (!FromBytes(*results[i], &of_piece) || of_piece.size() != piece.end - piece.begin))
      status = absl::InternalError("no comparisons of these tensors");
    for (size_t tensor = piece.begin; tensor < piece.end; ++tensor) {
      if (status.ok()) {
        comparisons[tensor] = std::move(of_piece[tensor - piece.begin]);
      } else {
        comparisons[tensor].dtype = tensors[tensor].current.view.dtype();
        comparisons[tensor].shape = tensors[tensor].current.view.shape();
        comparisons[tensor].detail = std::string(status.message());
      }
    }
  }
  return comparisons;
}

}  // namespace

const ShareTask kCompareTensors = {"compare_tensors", &CompareTensorsTask};

absl::StatusOr<CheckpointPair> ReadCheckpointPair(const CheckpointPaths& paths) {
  CheckpointPair pair;
  OTT_ASSIGN_OR_RETURN(pair.reference, ReadCheckpoint(paths.reference));
  OTT_ASSIGN_OR_RETURN(pair.current, ReadCheckpoint(paths.current));
  if (pair.reference.format != pair.current.format) {
    pair.notes.push_back(
        absl::StrCat("the reference is ", pair.reference.format, ", the current ", pair.current.format));
  }
  if (!paths.names.has_value()) AlignNames(&pair.reference.state, &pair.current.state, &pair.notes);
  TakeRequiresGrad("", &pair.reference.state, &pair.reference_requires_grad);
  TakeRequiresGrad("", &pair.current.state, &pair.current_requires_grad);
  if (!paths.names.has_value()) return pair;
  for (const auto& [side, run, checkpoint] : {std::tuple("reference", &paths.names->a(), &pair.reference),
                                              {"current", &paths.names->b(), &pair.current}}) {
    std::vector<std::string> problems;
    RunLayout layout = *run;
    layout.mutable_tensors()->MergeFrom(paths.names->tensors());
    OTT_ASSIGN_OR_RETURN(checkpoint->state, crosscheck::ToWholes(checkpoint->state, layout, &problems));
    for (const std::string& problem : problems)
      pair.problems.push_back(absl::StrCat("names of the ", side, ": ", problem));
  }
  return pair;
}

TreeComparison CompareShared(const CheckpointPaths& paths, const CheckpointPair& pair,
                             const CompareOptions& options) {
  if (NumProcesses() == 1) return CompareTrees(pair.reference.state, pair.current.state, options);
  const PairTask whole = {paths, options, FilesOf(paths)};
  // `pair` outlives it.
  Kept().Set(ToBytes(whole), std::shared_ptr<const CheckpointPair>(std::shared_ptr<void>(), &pair));
  TreeComparison comparison = CompareTrees(
      pair.reference.state, pair.current.state, options,
      [&](absl::Span<const ComparedTensors> tensors) { return CompareOnProcesses(whole, tensors); });
  Kept().Set("", nullptr);
  return comparison;
}

}  // namespace ott::compare
