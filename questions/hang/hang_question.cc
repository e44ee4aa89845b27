#include "ott/questions/hang/hang_question.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ott/core/base/file.h"
#include "ott/questions/answer/picture.h"
#include "ott/questions/hang/diagnosis.h"
#include "ott/questions/hang/found_hang.h"
#include "ott/questions/hang/hang_answer.h"
#include "ott/questions/hang/hang_command.h"
#include "ott/questions/hang/hang_report.h"
#include "ott/questions/hang/run_state.h"

namespace ott::hang {
namespace {

constexpr int kMaxHangRanks = 256;

struct Hangs {
  // Nullopt if no rank kept a flight recorder.
  std::optional<HangVerdict> now;
  // The verdict that a rank found while the run stood; nullopt if it never did.
  std::optional<HangVerdict> earlier;
};

Hangs ReadHangs(const AskedRun& run, std::vector<std::string>* problems) {
  Hangs hangs;
  const bool is_recorded = std::any_of(run.ranks.begin(), run.ranks.end(),
                                       [&](int rank) { return PathExists(FlightPath(run.run_dir, rank)); });
  HangOptions options;
  if (run.info && run.info->config().hang().after_seconds() > 0) {
    options.after_seconds = run.info->config().hang().after_seconds();
  }
  if (is_recorded) {
    const absl::StatusOr<JobState> job = ReadRunState(run.run_dir, RunStateEnvironment::Real());
    if (job.ok()) {
      hangs.now = DiagnoseHang(*job, options);
    } else {
      problems->push_back(std::string(job.status().message()));
    }
  }
  absl::StatusOr<std::optional<HangVerdict>> found = ReadFoundHang(run.run_dir);
  if (!found.ok()) {
    problems->push_back(std::string(found.status().message()));
  } else if (*found && (!hangs.now || StillHolds(**found, *hangs.now))) {
    hangs.now = *std::move(found);
  } else {
    hangs.earlier = *std::move(found);
  }
  return hangs;
}

void AddHang(const HangVerdict& hang, Document* document) {
  HangVerdict drawn;
  *drawn.mutable_ranks() = hang.ranks();
  *drawn.mutable_culprits() = hang.culprits();
  KeepFirst(kMaxHangRanks, drawn.mutable_ranks());
  document->pictures["hang"] = DrawMessage(drawn);
  if (hang.ranks_size() > kMaxHangRanks) {
    document->thinned.push_back(
        absl::StrCat("where ", kMaxHangRanks, " of ", hang.ranks_size(), " ranks stand is shown"));
  }
}

absl::StatusOr<Findings> Ask(const AskedRun& run) {
  Findings findings;
  const Hangs hangs = ReadHangs(run, &findings.problems);
  findings.answers = {AnswerHang(hangs.now, hangs.earlier)};
  AddStacksOf(run.run_dir, &findings.answers[0]);
  AddNextOf(run.run_dir, &findings.answers[0]);
  if (hangs.now) {
    if (hangs.now->answer() != HangVerdict::NOT_HANGING) {
      findings.is_news = true;
      findings.details.push_back({"Where the ranks stand", FormatHangVerdict(*hangs.now)});
    }
    if (hangs.now->answer() != HangVerdict::CANNOT_TELL) {
      findings.metrics.push_back({"ott_hanging",
                                  "1 if the job stands still.",
                                  {{hangs.now->answer() == HangVerdict::HANGING ? 1.0 : 0.0, {}}}});
    }
    findings.draw = [now = *hangs.now](const std::vector<int>&, Document* document) {
      AddHang(now, document);
    };
  }
  if (hangs.earlier) {
    findings.is_news = true;
    findings.details.push_back({"Where the ranks stood", FormatHangVerdict(*hangs.earlier)});
  }
  return findings;
}

}  // namespace

Question HangQuestion() {
  return {kQuestion.title, AddHangCommand, Ask, /*is_about_tensors=*/false, /*depends_on_time=*/true};
}

}  // namespace ott::hang
