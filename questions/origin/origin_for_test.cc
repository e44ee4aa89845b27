#include "ott/questions/origin/origin_for_test.h"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <type_traits>
#include <utility>

#include "ott/core/tensor/element.h"
#include "ott/core/tensor/tensor_view.h"
#include "ott/dist/directory/run_directory.h"

namespace ott::origin {

LoggedOps LogOps(const std::vector<std::vector<WrittenOp>>& iterations) {
  const std::string run_dir = testing::TempDir() + "/logged_ops";
  std::filesystem::remove_all(run_dir);
  HandWritten log(run_dir, 0, 1);
  for (size_t i = 0; i < iterations.size(); ++i) {
    log.BeginIteration(static_cast<int64_t>(i));
    for (const WrittenOp& op : iterations[i]) log.Op(op);
  }
  log.Finish();
  return ReadOpLog(OpLogPath(run_dir, 0)).value();
}

HandWritten::HandWritten(const std::string& run_dir, int rank, int world_size) {
  RunInfo info;
  info.set_world_size(world_size);
  std::filesystem::create_directories(RankDirectory(run_dir, rank));
  EXPECT_TRUE(WriteRunInfo(run_dir, info).ok());
  OpLog::Options options;
  options.path = OpLogPath(run_dir, rank);
  options.kept_dir = OpTensorsDirectory(run_dir, rank);
  options.keep = {"kept.*"};
  options.rank = rank;
  options.world_size = world_size;
  auto log = OpLog::Create(options);
  EXPECT_TRUE(log.ok()) << log.status();
  log_ = *std::move(log);
}

void HandWritten::BeginIteration(int64_t iteration) { EXPECT_TRUE(log_->BeginIteration(iteration).ok()); }

void HandWritten::Op(const WrittenOp& written) {
  bool is_lost = false;
  std::vector<std::vector<char>> data;
  std::vector<TensorView> views;
  data.reserve(written.inputs.size() + written.outputs.size());
  views.reserve(data.capacity());
  const auto args_of = [&](const std::vector<WrittenTensor>& tensors) {
    std::vector<OpArg> args;
    for (const WrittenTensor& tensor : tensors) {
      std::vector<char>& bytes = data.emplace_back(tensor.elements.size() * SizeOf(tensor.dtype));
      VisitDType(tensor.dtype, [&](auto element) {
        using T = decltype(element);
        for (size_t i = 0; i < tensor.elements.size(); ++i) {
          T& to = reinterpret_cast<T*>(bytes.data())[i];
          if constexpr (std::is_arithmetic_v<T>) {
            to = static_cast<T>(tensor.elements[i]);
          } else if constexpr (!kIsComplex<T>) {
            to = FromDouble<T>(tensor.elements[i]);
          }
        }
      });
      const auto count = static_cast<int64_t>(tensor.elements.size());
      views.emplace_back(bytes.data(), tensor.dtype, absl::Span<const int64_t>(&count, 1),
                         Device{tensor.is_lost ? Device::Kind::kCuda : Device::Kind::kHost});
      is_lost = is_lost || tensor.is_lost;
      args.push_back(tensor.name.empty() ? OpArg(views.back()) : OpArg(tensor.name.c_str(), views.back()));
    }
    return args;
  };
  std::vector<OpArg> args = args_of(written.inputs);
  if (!written.argument.empty()) args.emplace_back(written.argument);
  const std::vector<OpArg> outputs = args_of(written.outputs);
  ObservedOp op;
  op.name = written.name;
  op.role = written.role;
  op.module = written.module;
  op.phase = written.phase;
  op.is_backward = written.is_backward;
  op.args = args;
  void* const handle = log_->Begin(op);
  log_->AddOutputs(handle, outputs);
  log_->End(handle);
  if (!is_lost) return;
  EXPECT_FALSE(log_->BeginIteration(1000).ok());
}

void HandWritten::Finish() { EXPECT_TRUE(log_->Finish().ok()); }

void WriteRun(const std::string& run_dir, const std::vector<std::string>& ranks) {
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    HandWritten log(run_dir, static_cast<int>(rank), static_cast<int>(ranks.size()));
    if (ranks[rank][0] != '@') log.BeginIteration(0);
    std::istringstream texts(ranks[rank]);
    for (std::string text; std::getline(texts, text, ';');) {
      WrittenOp op;
      bool is_output = false;
      std::istringstream words(text);
      for (std::string word; words >> word;) {
        if (word[0] == '@') {
          log.BeginIteration(std::stoll(word.substr(1)));
        } else if (word == ">") {
          is_output = true;
        } else if (word[0] == '=') {
          op.argument = word.substr(1);
        } else if (op.name.empty()) {
          const char mark = word.back();
          op.role = mark == '!'   ? OpRole::kUpdate
                    : mark == '&' ? OpRole::kCollective
                    : mark == '^' ? OpRole::kLoad
                                  : OpRole::kOperation;
          if (op.role != OpRole::kOperation) word.pop_back();
          const size_t name = word.find(':') + 1;
          op.name = word.substr(name);
          if (name > 0) op.module = word.substr(0, name - 1);
        } else {
          const bool is_lost = word == "?";
          const bool is_view = word[0] == '~';
          std::vector<float> elements = {is_lost ? 0 : std::stof(word.substr(is_view ? 1 : 0)), 1, 2, 3};
          if (is_view) std::reverse(elements.begin(), elements.end());
          (is_output ? op.outputs : op.inputs).push_back({elements, "", DType::kFloat32, is_lost});
        }
      }
      if (!op.name.empty()) log.Op(op);
    }
    log.Finish();
  }
}

void OriginOfHandWrittenLogs::SetUp() { std::filesystem::remove_all(dir_); }

absl::StatusOr<OriginVerdict> OriginOfHandWrittenLogs::FindIn(const std::vector<std::string>& a,
                                                              const std::vector<std::string>& b,
                                                              const std::vector<std::string>& perturbed) {
  SetUp();
  WriteRun(dir_ + "/a", a);
  WriteRun(dir_ + "/b", b);
  if (!perturbed.empty()) WriteRun(dir_ + "/perturbed", perturbed);
  return FindOrigin(dir_ + "/a", dir_ + "/b", perturbed.empty() ? "" : dir_ + "/perturbed");
}

}  // namespace ott::origin
