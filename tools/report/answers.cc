#include "tools/report/answers.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/text_table.h"
#include "ott/questions/faster/faster_answer.h"
#include "ott/questions/faster/report.h"
#include "ott/questions/hang/hang_answer.h"
#include "ott/questions/hang/hang_report.h"
#include "ott/questions/origin/origin_answer.h"
#include "ott/questions/origin/origin_text.h"
#include "ott/questions/saved/saved_answer.h"
#include "ott/questions/saved/what_if_text.h"
#include "ott/questions/slow/cluster_table.h"
#include "ott/questions/slow/slow_answer.h"
#include "ott/questions/waiting/waiting_answer.h"
#include "tools/report/comparison_document.h"

namespace ott::report {
namespace {

// Later starts of the same job, here and in directories of their own.
std::string DescribeStarts(const RunReport& report) {
  std::string text;
  for (const Resumption& resumption : report.info->resumptions()) {
    absl::StrAppend(&text, ", continued from iteration ", resumption.start_iteration());
  }
  if (!report.attempts.empty()) {
    absl::StrAppend(&text, ", started again in attempt_", absl::StrJoin(report.attempts, ", attempt_"),
                    ": runs to report on of their own");
  }
  return text;
}

}  // namespace

std::string DescribeRun(const RunReport& report) {
  if (!report.info) return "a run without its run.json";
  const std::set<std::string> hosts(report.info->hosts().begin(), report.info->hosts().end());
  const int num_ranks = report.info->world_size();
  return absl::StrCat(num_ranks, num_ranks == 1 ? " rank on " : " ranks on ",
                      hosts.size() == 1 ? "host " + EscapeControlCharacters(*hosts.begin())
                                        : absl::StrCat(hosts.size(), " hosts"),
                      report.info->started().empty() ? "" : ", started ",
                      EscapeControlCharacters(report.info->started()), DescribeStarts(report),
                      ", optim_test_tools ", EscapeControlCharacters(report.info->version()));
}

std::vector<Answer> Answers(const RunReport& report) {
  const bool has_collectives =
      report.info && report.info->config().stopwatch().collective_measurements_size() > 0;
  std::vector<Answer> answers = {
      stats::AnswerSlow(report.stats),
      whatif::AnswerSaved(report.what_if),
      waiting::AnswerWaiting(report.stats, has_collectives, report.gather_age.has_value()),
      hang::AnswerHang(report.hang, report.earlier_hang),
      crosscheck::AnswerReplicas(report.checks),
      crosscheck::AnswerReference(report.checks),
  };
  if (!report.checks.distinct.verdicts.empty()) answers.push_back(crosscheck::AnswerDistinct(report.checks));
  if (report.origin) answers.push_back(origin::AnswerOrigin(*report.origin));
  if (report.comparison) answers.push_back(ab::AnswerFaster(*report.comparison, kBeforeAndAfter));
  return answers;
}

std::vector<Details> DetailsOf(const RunReport& report) {
  std::vector<Details> details;
  if (report.stats) details.push_back({"Where the time goes", FormatClusterTable(*report.stats)});
  if (report.what_if.ok()) details.push_back({"What would be saved", whatif::FormatWhatIf(*report.what_if)});
  if (report.hang && report.hang->answer() != HangVerdict::NOT_HANGING) {
    details.push_back({"Where the ranks stand", FormatHangVerdict(*report.hang)});
  }
  if (report.earlier_hang)
    details.push_back({"Where the ranks stood", FormatHangVerdict(*report.earlier_hang)});
  if (const std::string trend = report.checks.error_trend.ToString(); !trend.empty()) {
    details.push_back({"Errors against the reference", trend});
  }
  if (report.origin && report.origin->ok()) {
    details.push_back({"How it spreads", origin::FormatOrigin(**report.origin)});
  }
  if (report.comparison) details.push_back({"Before and after", ab::ToText(*report.comparison)});
  return details;
}

}  // namespace ott::report
