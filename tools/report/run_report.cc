#include "tools/report/run_report.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/far_files.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/base/text_table.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/sound/sound.pb.h"

namespace ott::report {
namespace {

constexpr size_t kMaxProblems = 10;

// Later starts of the same job, here and in directories of their own.
std::string DescribeStarts(const RunReport& report) {
  std::string text;
  for (const Resumption& resumption : report.run.info->resumptions()) {
    absl::StrAppend(&text, ", continued from iteration ", resumption.start_iteration());
  }
  if (!report.starts.empty()) absl::StrAppend(&text, "; ", report.starts);
  return text;
}

std::string DescribeRun(const RunReport& report) {
  if (!report.run.info) return "a run without its run.json";
  const std::set<std::string> hosts(report.run.info->hosts().begin(), report.run.info->hosts().end());
  const int num_ranks = report.run.info->world_size();
  return absl::StrCat(num_ranks, num_ranks == 1 ? " rank on " : " ranks on ",
                      hosts.size() == 1 ? "host " + EscapeControlCharacters(*hosts.begin())
                                        : absl::StrCat(hosts.size(), " hosts"),
                      report.run.info->started().empty() ? "" : ", started ",
                      EscapeControlCharacters(report.run.info->started()), DescribeStarts(report),
                      ", optim_test_tools ", EscapeControlCharacters(report.run.info->version()));
}

// Adds once what several questions cannot read.
void AddProblems(const std::vector<std::string>& more, std::vector<std::string>* problems) {
  for (const std::string& problem : more) {
    if (std::find(problems->begin(), problems->end(), problem) == problems->end())
      problems->push_back(problem);
  }
}

Answer* FindAnswer(const std::string& question, std::vector<Findings>* findings) {
  for (Findings& of_question : *findings) {
    for (Answer& answer : of_question.answers) {
      if (answer.question() == question) return &answer;
    }
  }
  return nullptr;
}

// Says among the cross-checks of replicas that these differed between two of them, which the rules of a sound
// step look at more often. Returns true if they did.
bool AddDifferencesBetweenChecks(const std::string& run_dir, std::vector<Findings>* findings) {
  const Answer* const sound = FindAnswer("sound", findings);
  Answer* const replicas = FindAnswer("replicas", findings);
  SoundVerdict verdict;
  if (sound == nullptr || replicas == nullptr || replicas->finding() != Answer::GOOD ||
      !verdict.ParseFromString(sound->evidence())) {
    return false;
  }
  for (const SoundFinding& finding : verdict.findings()) {
    if (finding.rule() != "replicas_differ") continue;
    replicas->set_finding(Answer::BAD);
    replicas->add_sentences(absl::StrCat("between these checks replicas DIFFER since iteration ",
                                         finding.iteration(), ", by the rules of a sound step"));
    AddNext({"check", run_dir}, replicas);
    return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<RunReport> ReadRunReport(AskedRun run, const std::vector<Question>& questions,
                                        const RunReport* before) {
  RunReport report;
  report.starts = ott::DescribeStarts(run.run_dir);
  run.run_dir = LatestAttempt(run.run_dir);
  OTT_RETURN_IF_ERROR(CheckRunDirectory(run.run_dir));
  // Before they are read, so that what changes meanwhile is seen the next time.
  const bool is_asked_of_others = !run.reference.empty() || !run.before.empty() || GetFarFiles() != nullptr;
  const RunFiles* const files_before = before != nullptr && before->files ? &*before->files : nullptr;
  if (!is_asked_of_others) report.files.emplace(run.run_dir, files_before);
  OTT_ASSIGN_OR_RETURN(run.ranks, ListRanks(run.run_dir));
  std::string unknown;
  if (absl::StatusOr<RunInfo> info = ReadRunInfo(run.run_dir, &unknown); info.ok()) {
    run.info = *std::move(info);
    if (!unknown.empty()) report.problems.push_back("of another version: " + unknown);
  } else {
    report.problems.push_back(std::string(info.status().message()));
  }
  bool is_news = false;
  for (const Question& question : questions) {
    if (question.ask == nullptr) continue;
    Findings findings;
    if (report.files && files_before != nullptr && !question.depends_on_time &&
        report.files->Stay(*files_before, question.reads)) {
      findings = before->findings[report.findings.size()];
    } else {
      OTT_ASSIGN_OR_RETURN(findings, question.ask(run));
    }
    AddProblems(findings.problems, &report.problems);
    is_news = is_news || findings.is_news;
    report.diverged =
        report.diverged || (question.is_about_tensors && FindingOf(findings.answers) == Answer::BAD);
    report.findings.push_back(std::move(findings));
  }
  report.diverged = AddDifferencesBetweenChecks(run.run_dir, &report.findings) || report.diverged;
  if (const size_t num_problems = report.problems.size(); num_problems > kMaxProblems) {
    report.problems.resize(kMaxProblems);
    report.problems.push_back(absl::StrCat("and ", num_problems - kMaxProblems, " more"));
  }
  if (!is_news) {
    return absl::NotFoundError(absl::StrCat(run.run_dir, ": neither statistics nor verdicts of cross-checks",
                                            report.problems.empty() ? "" : ": ",
                                            report.problems.empty() ? "" : report.problems.front()));
  }
  report.run = std::move(run);
  return report;
}

Document MakeDocument(const RunReport& report) {
  Document document;
  document.title = report.run.run_dir;
  document.subject = DescribeRun(report);
  document.problems = report.problems;
  for (const Findings& findings : report.findings) {
    document.answers.insert(document.answers.end(), findings.answers.begin(), findings.answers.end());
    document.details.insert(document.details.end(), findings.details.begin(), findings.details.end());
  }
  return document;
}

void AddPictures(const RunReport& report, Document* document) {
  std::set<int> named;
  for (const Answer& answer : document->answers) named.insert(answer.ranks().begin(), answer.ranks().end());
  for (const Findings& findings : report.findings) {
    if (findings.draw) findings.draw({named.begin(), named.end()}, document);
  }
  RemoveLinksToNothing(document);
}

}  // namespace ott::report
